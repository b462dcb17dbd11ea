"""Coordinate grids: between the numbers that a dialect writes and points in [0, 1].

Two kinds. A pixel grid of size W has cells [i / W, (i + 1) / W): the pixel of a fraction p is
min(floor(p * W), W - 1), and a pixel is read as its middle, so reading what was written is
never off by more than half a cell. A scale of 0..m (Qwen3: m = 999) has marks i / m: a
fraction is rounded to the nearest mark. One past the edge is clamped in both, since models
write it; anything further is outside the screen.
"""

import math
from dataclasses import dataclass

from wmkit.domain.dialects.base import Reject, Span
from wmkit.domain.screen import Point


@dataclass(frozen=True, slots=True)
class PixelGrid:
    """Pixels of a picture, `width_px` x `height_px`."""

    width_px: int
    height_px: int

    def write(self, point: Point) -> tuple[int, int]:
        return point.to_px(self.width_px, self.height_px)

    def read(self, x: float, y: float, span: Span) -> Point:
        """Raises Reject for a number that is not finite or lies outside the picture."""
        return Point(_pixel(x, self.width_px, span), _pixel(y, self.height_px, span))


@dataclass(frozen=True, slots=True)
class Scale:
    """Integers from 0 to `top` on each axis, `top` being the far edge of the screen."""

    top: int

    def write(self, point: Point) -> tuple[int, int]:
        return math.floor(point.x * self.top + 0.5), math.floor(point.y * self.top + 0.5)

    def read(self, x: float, y: float, span: Span) -> Point:
        """Raises Reject for a number that is not finite or lies outside the scale."""
        return Point(_mark(x, self.top, span), _mark(y, self.top, span))


Grid = PixelGrid | Scale


def _pixel(value: float, size: int, span: Span) -> float:
    _inside(value, size, span)
    return (min(math.floor(value), size - 1) + 0.5) / size


def _mark(value: float, top: int, span: Span) -> float:
    _inside(value, top + 1, span)
    return min(value / top, 1.0)


def _inside(value: float, last: int, span: Span) -> None:
    if math.isnan(value) or math.isinf(value):
        raise Reject(f"the coordinate {value} is not a number", *span)
    if not 0 <= value <= last:
        raise Reject(f"the coordinate {value:g} lies outside the screen", *span)
