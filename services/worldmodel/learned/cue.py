"""The visual cue of an action, drawn on a screenshot for the model to read. Pure.

As Code2World draws them, on the full-resolution picture: a red circle where a finger taps or
presses, a red arrow along the way of a finger that swipes or scrolls. Other actions leave no
mark. Coordinates and lengths are pixels of the picture.
"""

import math

from PIL import Image, ImageDraw

from wmkit.domain.actions import Action, DoubleTap, LongPress, Reveal, Scroll, Swipe, Tap
from wmkit.domain.screen import Point

RADIUS_PX = 40
OUTLINE_PX = 5
FILL = (255, 0, 0, 100)
RED = (255, 0, 0, 255)
LINE_PX = 15
HEAD_PX = 50
"""Length of the arrow's head along its line."""
WING_RAD = math.radians(30)
"""Angle between the line and either side of the head."""

SCROLL_SPAN = 0.4
"""Way of the finger in a scroll, as a fraction of the screen's side along it."""

_FINGER: dict[Reveal, tuple[int, int]] = {
    "down": (0, -1),
    "up": (0, 1),
    "right": (-1, 0),
    "left": (1, 0),
}
"""The finger moves away from what it reveals."""

Path = tuple[Point, Point]


def finger_path(action: Swipe | Scroll) -> Path:
    """From where to where the finger goes.

    A scroll is centred on its point, or on the screen, and pushed inside where it would
    leave the screen.
    """
    if isinstance(action, Swipe):
        return action.point, action.to
    middle = action.point or Point(0.5, 0.5)
    half = SCROLL_SPAN / 2
    dx, dy = _FINGER[action.reveal]
    x = min(max(middle.x, half), 1 - half) if dx else middle.x
    y = min(max(middle.y, half), 1 - half) if dy else middle.y
    return Point(x - dx * half, y - dy * half), Point(x + dx * half, y + dy * half)


def draw(screen: Image.Image, action: Action) -> Image.Image:
    """A copy of the screenshot, RGB, with the action's cue on it."""
    overlay = Image.new("RGBA", screen.size, (0, 0, 0, 0))
    pen = ImageDraw.Draw(overlay)
    match action:
        case Tap(point) | DoubleTap(point) | LongPress(point):
            _circle(pen, point.to_px(*screen.size))
        case Swipe() | Scroll():
            start, end = (point.to_px(*screen.size) for point in finger_path(action))
            if start == end:  # A swipe to nowhere is a press.
                _circle(pen, start)
            else:
                _arrow(pen, start, end)
        case _:
            return screen.convert("RGB")
    return Image.alpha_composite(screen.convert("RGBA"), overlay).convert("RGB")


def _circle(pen: ImageDraw.ImageDraw, at: tuple[int, int]) -> None:
    x, y = at
    box = (x - RADIUS_PX, y - RADIUS_PX, x + RADIUS_PX, y + RADIUS_PX)
    pen.ellipse(box, fill=FILL, outline=RED, width=OUTLINE_PX)


def _arrow(pen: ImageDraw.ImageDraw, start: tuple[int, int], end: tuple[int, int]) -> None:
    length = math.dist(start, end)
    ux, uy = (end[0] - start[0]) / length, (end[1] - start[1]) / length
    base = (end[0] - ux * HEAD_PX, end[1] - uy * HEAD_PX)
    wing = HEAD_PX * math.tan(WING_RAD)
    # The line ends inside the head: its blunt end would stick out beside the tip.
    if length > HEAD_PX:
        pen.line((*start, *base), fill=RED, width=LINE_PX)
    left = (base[0] - uy * wing, base[1] + ux * wing)
    right = (base[0] + uy * wing, base[1] - ux * wing)
    pen.polygon((end, left, right), fill=RED)
