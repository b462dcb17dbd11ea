"""Screens and points: the one place that says what a coordinate means."""

import math
from dataclasses import dataclass
from typing import Literal

from wmkit.domain.errors import InvalidAction

Orientation = Literal["portrait", "landscape"]


@dataclass(frozen=True, slots=True)
class Point:
    """A place on the screen: `x` from the left, `y` from the top, both in [0, 1].

    Raises InvalidAction when a coordinate is not a finite number inside [0, 1].
    """

    x: float
    y: float

    def __post_init__(self) -> None:
        for name, value in (("x", self.x), ("y", self.y)):
            if not math.isfinite(value):
                raise InvalidAction(f"point {name}={value} is not a number", field=f"point.{name}")
            if not 0.0 <= value <= 1.0:
                raise InvalidAction(
                    f"point {name}={value:g} lies outside the screen; points are in [0, 1]",
                    field=f"point.{name}",
                )

    def to_px(self, width_px: int, height_px: int) -> tuple[int, int]:
        """The pixel that holds this point: min(floor(p * size), size - 1) on each axis."""
        return (
            min(math.floor(self.x * width_px), width_px - 1),
            min(math.floor(self.y * height_px), height_px - 1),
        )


@dataclass(frozen=True, slots=True)
class Screen:
    """A device's screen. `scale` is physical pixels per CSS pixel."""

    width_px: int = 1080
    height_px: int = 2400
    scale: float = 1.0

    @property
    def orientation(self) -> Orientation:
        return "portrait" if self.height_px >= self.width_px else "landscape"


@dataclass(frozen=True, slots=True)
class View:
    """What a model saw: the device's screen and the size after the model's own resize, in px.

    `marks` = the middles of numbered elements, for agents that may answer with a number.
    """

    screen_px: tuple[int, int]
    model_px: tuple[int, int]
    marks: tuple[Point, ...] = ()
