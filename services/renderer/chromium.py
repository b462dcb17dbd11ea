"""Which Chromium is used. Finds it, does not start it (`browser`), needs no browser library.

`python -m services.renderer.chromium` prints its path, or one sentence and exit code 1; it
needs nothing but Python, so that `scripts/setup.sh` looks where the renderer will look.
"""

import os
import shutil
import sys
from collections.abc import Iterator
from pathlib import Path

from wmkit.domain.errors import InvalidRequest

NAMES = (
    "chromium-headless-shell",
    "chrome-headless-shell",
    "chromium",
    "chromium-browser",
    "google-chrome",
    "google-chrome-stable",
)
_MAC = Path("/Applications/Google Chrome.app/Contents/MacOS/Google Chrome")


def find_browser(named: str = "") -> str:
    """Path of the Chromium to use: the one named, else one on the PATH, else playwright's.

    Raises InvalidRequest with a sentence on how to get one.
    """
    if named:
        if (path := shutil.which(named)) is None:
            raise InvalidRequest(f"WMR1_BROWSER={named} is no program that can be run", "browser")
        return path
    if (found := next(_known(), None)) is None:
        raise InvalidRequest(
            "no Chromium was found: install one (Debian, Ubuntu: apt install "
            "chromium-headless-shell; elsewhere: pip install playwright, "
            "then playwright install chromium-headless-shell), or name one in WMR1_BROWSER",
            "browser",
        )
    return found


def _known() -> Iterator[str]:
    yield from filter(None, map(shutil.which, NAMES))
    named = os.environ.get("PLAYWRIGHT_BROWSERS_PATH")
    folders = [Path(named)] if named else []
    folders += [Path.home() / ".cache/ms-playwright", Path.home() / "Library/Caches/ms-playwright"]
    for folder in folders:
        for name in ("headless_shell", "chrome-headless-shell"):
            newest = sorted(folder.glob(f"chromium_headless_shell-*/*/{name}"), reverse=True)
            yield from map(str, newest)
    if _MAC.exists():
        yield str(_MAC)


def main() -> int:
    try:
        print(find_browser(os.environ.get("WMR1_BROWSER", "")))
    except InvalidRequest as error:
        print(error.message, file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
