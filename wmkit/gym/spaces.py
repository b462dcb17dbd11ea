"""The spaces of the phone: what is seen, and every canonical action as one Dict.

An action's fields that its kind does not read are ignored, so any sample is a valid action.
Pure: nothing here talks to a server.
"""

from collections.abc import Mapping
from typing import Any, get_args

import numpy as np
from gymnasium import spaces

from wmkit.domain.actions import (
    ACTIONS,
    Action,
    Answer,
    Back,
    DoubleTap,
    Enter,
    Finish,
    FinishStatus,
    Home,
    Key,
    LongPress,
    OpenApp,
    Recents,
    Reveal,
    Scroll,
    Swipe,
    Tap,
    Type,
    Wait,
)
from wmkit.domain.screen import Point

KINDS: tuple[str, ...] = tuple(ACTIONS)
"""Names of the actions; their order is the meaning of the number `action`."""
REVEALS: tuple[str, ...] = get_args(Reveal)
STATUSES: tuple[str, ...] = get_args(FinishStatus)

MAX_TEXT = 1_000
MAX_GOAL = 4_000

_ASCII = "".join(map(chr, range(32, 127)))


class AnyText(spaces.Text):
    """Text in any script up to a length. Samples are plain ASCII."""

    def __init__(self, max_length: int) -> None:
        super().__init__(max_length, min_length=0, charset=_ASCII)

    def contains(self, x: Any) -> bool:
        return isinstance(x, str) and len(x) <= self.max_length


def action_space() -> spaces.Dict:
    """All actions: `action` numbers the kind, the rest are its arguments.

    point     where a finger is, as fractions of the screen, x from the left, y from the top
    to        where a swipe ends
    reveal    what a scroll shows: up, down, left, right
    text      what is typed or answered, the name of an app or of a key
    submit    whether typing ends with Enter
    clear     whether typing replaces what is there
    status    how an episode is finished: success, infeasible
    """
    return spaces.Dict(
        {
            "action": spaces.Discrete(len(KINDS)),
            "point": spaces.Box(0.0, 1.0, (2,), np.float32),
            "to": spaces.Box(0.0, 1.0, (2,), np.float32),
            "reveal": spaces.Discrete(len(REVEALS)),
            "text": AnyText(MAX_TEXT),
            "submit": spaces.Discrete(2),
            "clear": spaces.Discrete(2),
            "status": spaces.Discrete(len(STATUSES)),
        }
    )


def observation_space(width_px: int, height_px: int) -> spaces.Dict:
    """`screen` as RGB rows (height, width, 3), and the `goal` in words."""
    return spaces.Dict(
        {
            "screen": spaces.Box(0, 255, (height_px, width_px, 3), np.uint8),
            "goal": AnyText(MAX_GOAL),
        }
    )


def action_from_space(sample: Mapping[str, Any]) -> Action:
    """The canonical action of a point of the space. Raises InvalidAction outside of it."""
    kind = ACTIONS[KINDS[int(sample["action"])]]
    text = str(sample.get("text", ""))
    if kind in (Tap, DoubleTap, LongPress):
        touch: Action = kind(_point(sample["point"]))
        return touch
    if kind is Swipe:
        return Swipe(_point(sample["point"]), _point(sample["to"]))
    if kind is Scroll:
        reveal: Any = REVEALS[int(sample["reveal"])]
        return Scroll(reveal, _point(sample["point"]))
    if kind is Type:
        return Type(text, submit=bool(sample["submit"]), clear=bool(sample["clear"]))
    if kind in (Key, OpenApp, Answer):
        worded: Action = kind(text)
        return worded
    if kind is Finish:
        status: Any = STATUSES[int(sample["status"])]
        return Finish(status)
    assert kind in (Enter, Back, Home, Recents, Wait), kind
    bare: Action = kind()
    return bare


def action_to_space(action: Action) -> dict[str, Any]:
    """A point of the space for an action.

    What the space has no place for is lost: durations, and where a text field is (tap it
    first).
    """
    out: dict[str, Any] = {
        "action": np.int64(KINDS.index(action.name)),
        "point": _pair(getattr(action, "point", None)),
        "to": _pair(getattr(action, "to", None)),
        "reveal": np.int64(0),
        "text": "",
        "submit": np.int64(0),
        "clear": np.int64(0),
        "status": np.int64(0),
    }
    match action:
        case Scroll(reveal):
            out["reveal"] = np.int64(REVEALS.index(reveal))
        case Type(text, _, submit, clear):
            out |= {"text": text, "submit": np.int64(submit), "clear": np.int64(clear)}
        case Key(text) | OpenApp(text) | Answer(text):
            out["text"] = text
        case Finish(status):
            out["status"] = np.int64(STATUSES.index(status))
    return out


def _point(pair: Any) -> Point:
    x, y = (float(value) for value in pair)
    return Point(x, y)


def _pair(point: Point | None) -> np.ndarray[Any, np.dtype[np.float32]]:
    # A scroll anywhere is one at the middle.
    where = point or Point(0.5, 0.5)
    return np.array([where.x, where.y], np.float32)
