"""The grid of the screen and the Element: what is drawn, where, and where to tap it.

All boxes are pixels of a 1080 x 2400 screen, computed here and never by a browser. Things
that can be tapped lie on a grid of 4 columns x 10 rows (cells of 270 x 240 px), so that a
small vision model with one token per cell can tell them apart. Not here: how an element
looks (`render`, `look`) or what tapping it does (`reducer`, `apps`).
"""

from functools import cache
from typing import NamedTuple

from wmkit.domain.screen import Point

WIDTH = 1080
HEIGHT = 2400
COLUMNS = 4
ROWS = 10
CELL_W = WIDTH // COLUMNS
CELL_H = HEIGHT // ROWS

Box = tuple[int, int, int, int]


class Element(NamedTuple):
    """One drawn thing.

    `box` is (x, y, width, height) in px. `at` is where a person would tap: the centre of
    the element's hot cell. `checked` is None for what has no such state. `key` is the
    event that a tap sends to the reducer ("" where a tap does nothing); `color`, `glyph`
    and `tone` (a style variant) are for drawing. Elements are listed from back to front.
    """

    id: str
    role: str
    text: str
    box: Box
    at: Point
    clickable: bool = False
    checked: bool | None = None
    focused: bool = False
    enabled: bool = True
    key: str = ""
    color: str = ""
    glyph: str = ""
    tone: str = ""

    def covers(self, x_px: int, y_px: int) -> bool:
        """Whether a pixel lies inside the box."""
        x, y, w, h = self.box
        return x <= x_px < x + w and y <= y_px < y + h


@cache
def cell(column: int, row: int) -> Point:
    """The centre of a cell."""
    return Point((column + 0.5) / COLUMNS, (row + 0.5) / ROWS)


@cache
def centre(box: Box) -> Point:
    """The centre of a box that lies on the screen."""
    x, y, w, h = box
    return Point((x + w / 2) / WIDTH, (y + h / 2) / HEIGHT)


def cell_box(column: int, row: int, columns: int = 1) -> Box:
    """The box of `columns` cells side by side."""
    return (column * CELL_W, row * CELL_H, columns * CELL_W, CELL_H)


def square(column: int, row: int, size_px: int) -> Box:
    """A square in the middle of a cell."""
    return (
        column * CELL_W + (CELL_W - size_px) // 2,
        row * CELL_H + (CELL_H - size_px) // 2,
        size_px,
        size_px,
    )


@cache
def slug(word: str) -> str:
    """A word as part of an id: lower case, letters and digits only."""
    return "".join(c for c in word.lower() if c.isalnum())
