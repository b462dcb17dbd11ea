"""`wmr1 dialect explain`: an agent's text, read aloud."""

import re
import sys
from pathlib import Path

from wmkit.cli.places import read_text
from wmkit.domain import dialects
from wmkit.domain.errors import InvalidRequest
from wmkit.domain.screen import View


def explain(name: str, file: str, screen: str, model: str) -> None:
    """Raises InvalidRequest for an unknown dialect, an unreadable file or a strange size."""
    dialect = dialects.get(name)
    view = View(_size(screen), _size(model))
    text = sys.stdin.read() if file == "-" else read_text(Path(file))
    print(dialects.explain(dialect, text, view))


def _size(text: str) -> tuple[int, int]:
    found = re.fullmatch(r"([1-9]\d{0,4})x([1-9]\d{0,4})", text)
    if found is None:
        raise InvalidRequest(f"{text!r} is no size; write WIDTHxHEIGHT, for example 1080x2400")
    return int(found[1]), int(found[2])
