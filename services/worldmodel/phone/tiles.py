"""Tiles without a word: alike, scattered, and only a tap (or imagining one) tells what they do.

For places where looking ahead pays: what lies behind a tile is drawn nowhere, neither as
text nor as an accessible name, and its key names a place only.
"""

from collections.abc import Iterable, Sequence
from random import Random

from services.worldmodel.phone.geometry import Element, cell, cell_box, square
from services.worldmodel.phone.widgets import Elements

CELLS = tuple((column, line) for line in (3, 5) for column in range(4))
GREY = "#80868B"
Tiles = tuple[tuple[int, str], ...]


def scatter(rng: Random, things: Sequence[str]) -> Tiles:
    """A place for each thing: (index into `CELLS`, thing), by place."""
    return tuple(sorted(zip(rng.sample(range(len(CELLS)), len(things)), things, strict=True)))


def tiles(app: str, places: Iterable[int]) -> Elements:
    """The tiles at their places; a tap sends `tile:PLACE`."""
    out: Elements = []
    for place in places:
        column, line = CELLS[place]
        at = cell(column, line)
        id = f"{app}/tile-{place}"
        key = f"tile:{place}"
        out += [
            Element(id, "button", "", cell_box(column, line), at, True, key=key, tone="cell"),
            Element(
                f"{id}:icon", "glyph", "", square(column, line, 172), at, color=GREY, glyph="dot"
            ),
        ]
    return out


def key_of(places: Tiles, thing: str) -> str:
    """The key of the tile behind which a thing lies. Raises KeyError when there is none."""
    place = {word: place for place, word in places}[thing]
    return f"tile:{place}"
