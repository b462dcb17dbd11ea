"""The canonical action vocabulary: what every dialect is read into and written from.

Points are fractions of the screen, never pixels. `scroll(reveal=down)` shows what lies
*below* (the finger moves up); dialects state how their own words map to it.
"""

import math
from collections.abc import Mapping
from dataclasses import dataclass, fields
from typing import Any, ClassVar, Literal, get_args

from wmkit.domain.errors import InvalidAction
from wmkit.domain.screen import Point

Reveal = Literal["up", "down", "left", "right"]
FinishStatus = Literal["success", "infeasible"]


@dataclass(frozen=True, slots=True)
class Tap:
    name: ClassVar[str] = "tap"
    point: Point


@dataclass(frozen=True, slots=True)
class DoubleTap:
    name: ClassVar[str] = "double_tap"
    point: Point


@dataclass(frozen=True, slots=True)
class LongPress:
    name: ClassVar[str] = "long_press"
    point: Point
    duration_ms: int | None = None


@dataclass(frozen=True, slots=True)
class Swipe:
    """The finger moves from `point` to `to`."""

    name: ClassVar[str] = "swipe"
    point: Point
    to: Point
    duration_ms: int | None = None


@dataclass(frozen=True, slots=True)
class Scroll:
    """Reveal what lies in a direction, at `point` or anywhere on the screen."""

    name: ClassVar[str] = "scroll"
    reveal: Reveal
    point: Point | None = None


@dataclass(frozen=True, slots=True)
class Type:
    """Type into the focused field, or into the one at `point`."""

    name: ClassVar[str] = "type"
    text: str
    point: Point | None = None
    submit: bool = False
    clear: bool = False


@dataclass(frozen=True, slots=True)
class Key:
    name: ClassVar[str] = "key"
    key: str


@dataclass(frozen=True, slots=True)
class Enter:
    name: ClassVar[str] = "enter"


@dataclass(frozen=True, slots=True)
class Back:
    name: ClassVar[str] = "back"


@dataclass(frozen=True, slots=True)
class Home:
    name: ClassVar[str] = "home"


@dataclass(frozen=True, slots=True)
class Recents:
    name: ClassVar[str] = "recents"


@dataclass(frozen=True, slots=True)
class OpenApp:
    name: ClassVar[str] = "open_app"
    app: str


@dataclass(frozen=True, slots=True)
class Wait:
    name: ClassVar[str] = "wait"
    ms: int | None = None


@dataclass(frozen=True, slots=True)
class Answer:
    """The agent's answer to a question. Ends the episode; never reaches the world model."""

    name: ClassVar[str] = "answer"
    text: str


@dataclass(frozen=True, slots=True)
class Finish:
    """The agent declares the task done or infeasible. Never reaches the world model."""

    name: ClassVar[str] = "finish"
    status: FinishStatus = "success"


Action = (
    Tap
    | DoubleTap
    | LongPress
    | Swipe
    | Scroll
    | Type
    | Key
    | Enter
    | Back
    | Home
    | Recents
    | OpenApp
    | Wait
    | Answer
    | Finish
)

ACTIONS: dict[str, type[Any]] = {cls.name: cls for cls in get_args(Action)}
TERMINAL = (Answer, Finish)


def to_dict(action: Action) -> dict[str, Any]:
    """A JSON-ready dict; fields that are None are left out. Inverse of `from_dict`."""
    out: dict[str, Any] = {"action": action.name}
    for field in fields(action):
        value = getattr(action, field.name)
        if value is not None:
            out[field.name] = [value.x, value.y] if isinstance(value, Point) else value
    return out


def from_dict(data: Mapping[str, Any]) -> Action:
    """Read an action dict.

    Raises InvalidAction for an unknown name, a missing, unknown or mistyped argument, or
    a point outside the screen.
    """
    args = dict(data)
    name = args.pop("action", None)
    cls = ACTIONS.get(str(name))
    if cls is None:
        raise InvalidAction(f"unknown action {name!r}; known: {', '.join(ACTIONS)}", field="action")
    known = {field.name: field for field in fields(cls)}
    for arg in args:
        if arg not in known:
            raise InvalidAction(f"{name} takes no argument {arg!r}", field=arg)
    try:
        action: Action = cls(**{arg: _read(arg, value) for arg, value in args.items()})
    except TypeError as error:
        raise InvalidAction(f"{name}: {error}", field=str(name)) from None
    return action


def _read(arg: str, value: Any) -> Any:
    match arg:
        case "point" | "to":
            if isinstance(value, Point):
                return value
            if not isinstance(value, (list, tuple)) or len(value) != 2:
                raise InvalidAction(f"{arg} must be two numbers, not {value!r}", field=arg)
            return Point(*(_number(arg, v) for v in value))
        case "text" | "app" | "key":
            if not isinstance(value, str):
                raise InvalidAction(f"{arg} must be a string, not {value!r}", field=arg)
        case "submit" | "clear":
            if not isinstance(value, bool):
                raise InvalidAction(f"{arg} must be true or false, not {value!r}", field=arg)
        case "duration_ms" | "ms":
            if _number(arg, value) < 0 or not math.isfinite(value):
                raise InvalidAction(f"{arg} must not be negative, is {value!r}", field=arg)
            return int(value)
        case "reveal":
            if value not in get_args(Reveal):
                raise InvalidAction(
                    f"reveal is one of {get_args(Reveal)}, not {value!r}", field=arg
                )
        case "status":
            if value not in get_args(FinishStatus):
                raise InvalidAction(
                    f"status is one of {get_args(FinishStatus)}, not {value!r}", field=arg
                )
    return value


def _number(arg: str, value: Any) -> float:
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        raise InvalidAction(f"{arg} must be a number, not {value!r}", field=arg)
    return float(value)
