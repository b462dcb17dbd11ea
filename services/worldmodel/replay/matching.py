"""Whether an action is the recorded one. Pure; the whole rule is here.

- Touches (tap, double tap, long press) match a touch of the same kind inside the recorded box;
  without a box, one at most `REACH` away, as fractions of the screen's sides (the 14 % rule of
  Android in the Wild).
- Swipes and scrolls match when the finger goes the same main way (up, down, left, right).
- Typing matches the same text, case and runs of white space aside, and the same `submit`.
- Opening an app matches its name without case. A key matches its name; `back`, `home`,
  `recents` and `enter` are the same as the actions of those names.
- Waiting matches waiting. Durations never matter.
"""

import math
from typing import Any

from services.worldmodel.replay.recording import RecordedAction
from wmkit.domain.actions import (
    Action,
    Back,
    DoubleTap,
    Enter,
    Home,
    Key,
    LongPress,
    OpenApp,
    Recents,
    Scroll,
    Swipe,
    Tap,
    Type,
)
from wmkit.domain.screen import Point

RULE = 1
"""Version of the rule; part of the backend's revision."""

REACH = 0.14

_KEYS: dict[str, type[Any]] = {
    "back": Back,
    "escape": Back,
    "home": Home,
    "recents": Recents,
    "app_switch": Recents,
    "enter": Enter,
    "return": Enter,
}
_FINGER = {"up": "down", "down": "up", "left": "right", "right": "left"}


def matches(action: Action, recorded: RecordedAction) -> bool:
    """Does `action` do what was recorded?"""
    done, wanted = _plain(action), _plain(recorded.action)
    match done, wanted:
        case (
            (Tap(point), Tap(other))
            | (DoubleTap(point), DoubleTap(other))
            | (LongPress(point), LongPress(other))
        ):
            return _reaches(point, other, recorded)
        case (Swipe() | Scroll(), Swipe() | Scroll()):
            return _way(done) == _way(wanted)
        case (Type(), Type()):
            return _folded(done.text) == _folded(wanted.text) and done.submit == wanted.submit
        case (OpenApp(app), OpenApp(other_app)):
            return _folded(app) == _folded(other_app)
        case (Key(key), Key(other_key)):
            return _folded(key) == _folded(other_key)
    return done.name == wanted.name and not isinstance(done, (Tap, DoubleTap, LongPress))


def _plain(action: Action) -> Action:
    if isinstance(action, Key) and (cls := _KEYS.get(_folded(action.key))) is not None:
        plain: Action = cls()
        return plain
    return action


def _reaches(point: Point, other: Point, recorded: RecordedAction) -> bool:
    if recorded.box is not None:
        left, top, right, bottom = recorded.box
        return left <= point.x <= right and top <= point.y <= bottom
    return math.hypot(point.x - other.x, point.y - other.y) <= REACH


def _way(action: Swipe | Scroll) -> str:
    """Where the finger goes; a swipe that stays in place goes nowhere."""
    if isinstance(action, Scroll):
        return _FINGER[action.reveal]
    dx, dy = action.to.x - action.point.x, action.to.y - action.point.y
    if dx == dy == 0:
        return ""
    if abs(dx) > abs(dy):
        return "right" if dx > 0 else "left"
    return "down" if dy > 0 else "up"


def _folded(text: str) -> str:
    return " ".join(text.casefold().split())
