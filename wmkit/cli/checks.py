"""What a machine needs to run WM-R1, looked at without changing anything."""

import importlib.metadata
import importlib.util
import os
import platform
import shutil
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from enum import Enum
from pathlib import Path

from wmkit.cli import places
from wmkit.cli.recipes import checkpoint
from wmkit.cli.stack.layout import HOST, SERVICES, cores
from wmkit.domain.errors import WMError
from wmkit.rpc.ports import holder, is_taken
from wmkit.settings import DEFAULT_PORTS

FONTS = ("Roboto", "Noto Sans Arabic", "Noto Sans CJK", "Noto Color Emoji")


class Level(Enum):
    GOOD = "good"
    NOTE = "note"
    BAD = "bad"


@dataclass(frozen=True, slots=True)
class Check:
    """One finding. BAD means that the stack cannot run; a NOTE that something is less good."""

    level: Level
    name: str
    found: str
    advice: str = ""


def all_checks() -> Iterator[Check]:
    yield python()
    yield browser()
    yield fonts()
    yield redis()
    yield torch()
    yield gpu()
    yield tiny_policy()
    yield ports()


def python() -> Check:
    n = cores()
    return Check(
        Level.GOOD, "Python", f"{platform.python_version()}, {n} core{'s' if n > 1 else ''}"
    )


def browser() -> Check:
    """The browser that the renderer would start, with its version."""
    from services.renderer.chromium import find_browser

    try:
        binary = find_browser(os.environ.get("WMR1_BROWSER", ""))
    except WMError as error:
        return Check(Level.BAD, "browser", error.message, _install("chromium-headless-shell"))
    version = _first_line(binary, "--version")
    if not version:
        return Check(Level.BAD, "browser", f"{binary} does not start", "reinstall it")
    return Check(Level.GOOD, "browser", f"{version} ({binary})")


def fonts() -> Check:
    listed = _output("fc-list", ":", "family")
    if listed is None:
        return Check(Level.NOTE, "fonts", "fc-list is not installed", _install("fontconfig"))
    missing = [name for name in FONTS if name not in listed]
    if missing:
        packages = "fonts-roboto fonts-noto-core fonts-noto-cjk fonts-noto-color-emoji"
        return Check(
            Level.NOTE,
            "fonts",
            f"without {', '.join(missing)}",
            f"{_install(packages)}; screens look different without",
        )
    return Check(Level.GOOD, "fonts", ", ".join(FONTS))


def redis() -> Check:
    binary = shutil.which("redis-server")
    if binary is None:
        return Check(Level.BAD, "Redis", "redis-server is not installed", _install("redis-server"))
    words = _first_line(binary, "--version").split()
    version = next((word[2:] for word in words if word.startswith("v=")), "?")
    return Check(Level.GOOD, "Redis", f"{version} ({binary})")


def torch() -> Check:
    if importlib.util.find_spec("torch") is None:
        return Check(Level.BAD, "torch", "not installed", "make setup")
    return Check(Level.GOOD, "torch", importlib.metadata.version("torch"))


def gpu() -> Check:
    """Looked for with nvidia-smi, so that torch need not be loaded."""
    listed = _output("nvidia-smi", "--query-gpu=name,memory.total", "--format=csv,noheader")
    if not listed or not listed.strip():
        return Check(Level.NOTE, "GPU", "none", "the demo needs none")
    names = "; ".join(line.strip() for line in listed.strip().splitlines())
    if importlib.util.find_spec("torch") and "+cpu" in importlib.metadata.version("torch"):
        return Check(Level.NOTE, "GPU", names, "this torch is a CPU build and does not use it")
    return Check(Level.GOOD, "GPU", names)


def tiny_policy() -> Check:
    path = os.environ.get("WMR1_CHECKPOINT", "examples/tiny-policy")
    try:
        folder = Path(checkpoint(path))
    except WMError as error:
        return Check(
            Level.BAD,
            "checkpoint",
            error.message,
            "git checkout examples/tiny-policy, or correct WMR1_CHECKPOINT",
        )
    size = sum(file.stat().st_size for file in folder.glob("*.safetensors"))
    return Check(Level.GOOD, "checkpoint", f"{places.shown(folder)}, {size / 1e6:.1f} MB")


def ports() -> Check:
    """The ports that `wmr1 up` uses; a demo takes free ones."""
    taken = [DEFAULT_PORTS[name] for name in SERVICES if is_taken(HOST, DEFAULT_PORTS[name])]
    if not taken:
        first, last = (pick(DEFAULT_PORTS[name] for name in SERVICES) for pick in (min, max))
        return Check(Level.GOOD, "ports", f"{first} to {last} are free")
    who = {f"{port} by {holder(port) or 'another process'}" for port in taken}
    return Check(
        Level.NOTE, "ports", "taken: " + ", ".join(sorted(who)), "wmr1 up --free-ports takes others"
    )


def _install(packages: str) -> str:
    if shutil.which("apt-get"):
        return f"sudo apt-get install {packages}"
    if sys.platform == "darwin":
        macs = {"redis-server": "brew install redis", "fontconfig": "brew install fontconfig"}
        return macs.get(packages, "playwright install chromium-headless-shell")
    return f"install {packages} with the package manager of this system"


def _first_line(*command: str) -> str:
    return (_output(*command) or "").strip().partition("\n")[0]


def _output(*command: str) -> str | None:
    """What a command prints, or None when it is not there or fails."""
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=20, check=True)
    except (OSError, subprocess.SubprocessError):
        return None
    return done.stdout
