"""Which Chromium is taken: the one named, then the PATH, then playwright's own."""

import subprocess
import sys
from pathlib import Path

import pytest

from services.renderer.chromium import find_browser
from wmkit.domain.errors import InvalidRequest

ROOT = Path(__file__).parents[2]


def program(path: Path) -> str:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("#!/bin/sh\n")
    path.chmod(0o755)
    return str(path)


@pytest.fixture
def bare(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A machine without any browser."""
    monkeypatch.setenv("PATH", str(tmp_path / "bin"))
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    monkeypatch.delenv("PLAYWRIGHT_BROWSERS_PATH", raising=False)
    monkeypatch.setattr("services.renderer.chromium._MAC", tmp_path / "none")
    return tmp_path


def test_the_one_named_wins(bare: Path) -> None:
    program(bare / "bin/chromium")
    named = program(bare / "elsewhere/my-chrome")
    assert find_browser(named) == named
    with pytest.raises(InvalidRequest, match="WMR1_BROWSER=gone is no program"):
        find_browser("gone")


def test_a_headless_shell_is_preferred_on_the_path(bare: Path) -> None:
    program(bare / "bin/chromium")
    shell = program(bare / "bin/chromium-headless-shell")
    assert find_browser() == shell


def test_the_newest_of_playwrights_own_comes_last(bare: Path) -> None:
    cache = bare / "home/.cache/ms-playwright"
    program(cache / "chromium_headless_shell-1100/chrome-linux/headless_shell")
    newest = program(cache / "chromium_headless_shell-1200/chrome-linux/headless_shell")
    assert find_browser() == newest
    on_path = program(bare / "bin/google-chrome")
    assert find_browser() == on_path


def test_none_is_a_sentence_on_how_to_get_one(bare: Path) -> None:
    with pytest.raises(InvalidRequest, match="apt install chromium-headless-shell"):
        find_browser()


def test_the_search_runs_before_anything_is_installed(bare: Path) -> None:
    """As scripts/setup.sh calls it: an isolated Python without site packages."""
    browser = program(bare / "bin/chromium-browser")
    environment = {"PATH": str(bare / "bin"), "HOME": str(bare / "home")}

    def search(**more: str) -> tuple[int, str, str]:
        words = (sys.executable, "-S", "-m", "services.renderer.chromium")
        done = subprocess.run(
            words, env=environment | more, cwd=ROOT, capture_output=True, text=True
        )
        return done.returncode, done.stdout, done.stderr

    assert search() == (0, f"{browser}\n", "")
    code, found, sentence = search(WMR1_BROWSER="gone")
    assert (code, found) == (1, "")
    assert sentence == "WMR1_BROWSER=gone is no program that can be run\n"
