"""An action in words for a world model: a sentence, and the data beside it. Pure.

The sentence (`sentence`) is plain English. The data is JSON in one of two vocabularies:
`android_world` with pixels of the screenshot, or `mobile_use` with numbers from 0 to 999 as
the Qwen3-VL models count. Where a vocabulary has no word, the nearest name in its manner is
used, because every action must reach the model: swipes of AndroidWorld carry where the finger
starts and ends, typing says `"enter": false` where nothing is submitted.
"""

import json
from collections.abc import Mapping
from typing import Literal, get_args

from services.worldmodel.learned.cue import finger_path
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
    Wait,
)
from wmkit.domain.dialects.arguments import REVEAL_TO_FINGER
from wmkit.domain.dialects.grids import Grid, PixelGrid, Scale
from wmkit.domain.errors import InvalidAction
from wmkit.domain.screen import Point, Screen

ActionData = Literal["android_world", "mobile_use"]
FORMATS = get_args(ActionData)


def grid(form: ActionData, screen: Screen) -> Grid:
    """The grid on which this vocabulary names points."""
    if form == "mobile_use":
        return Scale(999)
    return PixelGrid(screen.width_px, screen.height_px)


def sentence(action: Action) -> str:
    """What the user does, as one sentence. Raises InvalidAction for one that ends an episode."""
    match action:
        case Tap():
            return "Tap the place marked by the red circle."
        case DoubleTap():
            return "Tap twice, quickly, on the place marked by the red circle."
        case LongPress():
            return "Press and hold the place marked by the red circle."
        case Swipe():
            return "Swipe along the red arrow; the finger goes where the arrow points."
        case Scroll(reveal):
            finger = REVEAL_TO_FINGER[reveal]
            return (
                f"Scroll to reveal what lies {_BEYOND[reveal]}: the finger moves {finger}, "
                "along the red arrow."
            )
        case Type(text, _, submit, clear):
            emptied = "Empty the field, then type" if clear else "Type"
            where = "into it" if clear else "into the text field"
            entered = " and press Enter" if submit else ""
            return f"{emptied} {where}{entered}: {_quoted(text)}."
        case Key(key):
            return f"Press the key: {_quoted(key)}."
        case Enter():
            return "Press the Enter key of the keyboard."
        case Back():
            return "Go back with the system's Back button."
        case Home():
            return "Go to the home screen with the system's Home button."
        case Recents():
            return "Open the overview of recent apps."
        case OpenApp(app):
            return f"Open the app: {app}."
        case Wait(ms):
            how_long = "a moment" if ms is None else f"{ms / 1000:g} s"
            return f"Wait {how_long} without touching the screen."
    raise InvalidAction(f"{action.name} changes no screen", field="action")


_BEYOND = {
    "down": "further down",
    "up": "further up",
    "left": "further left",
    "right": "further right",
}


def data(form: ActionData, action: Action, screen: Screen) -> str:
    """The action as JSON on one line. Raises InvalidAction for one that ends an episode."""
    if form == "mobile_use":
        fields = _mobile_use(action, grid(form, screen))
        return _json({"name": "mobile_use", "arguments": fields})
    return _json(_android_world(action, grid(form, screen)))


def _android_world(action: Action, grid: Grid) -> Mapping[str, object]:
    def at(point: Point | None) -> dict[str, object]:
        return {} if point is None else dict(zip("xy", grid.write(point), strict=True))

    match action:
        case Tap(point):
            return {"action_type": "click", **at(point)}
        case DoubleTap(point):
            return {"action_type": "double_tap", **at(point)}
        case LongPress(point):
            return {"action_type": "long_press", **at(point)}
        case Swipe(point, to):
            x, y = grid.write(to)
            towards = {"direction": _direction(grid.write(point), (x, y)), "to_x": x, "to_y": y}
            return {"action_type": "swipe", **at(point), **towards}
        case Scroll(reveal, point):
            return {"action_type": "scroll", "direction": reveal, **at(point)}
        case Type(text, point, submit, clear):
            cleared = {"clear_text": True} if clear else {}
            entered = {} if submit else {"enter": False}
            return {"action_type": "input_text", "text": text, **at(point), **cleared, **entered}
        case Key(key):
            return {"action_type": "press_key", "keycode": key}
        case Enter():
            return {"action_type": "keyboard_enter"}
        case Back():
            return {"action_type": "navigate_back"}
        case Home():
            return {"action_type": "navigate_home"}
        case Recents():
            return {"action_type": "navigate_recents"}
        case OpenApp(app):
            return {"action_type": "open_app", "app_name": app}
        case Wait():
            return {"action_type": "wait"}
    raise InvalidAction(f"{action.name} changes no screen", field="action")


def _mobile_use(action: Action, grid: Grid) -> Mapping[str, object]:
    match action:
        case Tap(point):
            return {"action": "click", "coordinate": grid.write(point)}
        case DoubleTap(point):
            return {"action": "double_click", "coordinate": grid.write(point)}
        case LongPress(point, ms):
            held = {} if ms is None else {"time": ms / 1000}
            return {"action": "long_press", "coordinate": grid.write(point), **held}
        case Swipe() | Scroll():
            start, end = (grid.write(point) for point in finger_path(action))
            return {"action": "swipe", "coordinate": start, "coordinate2": end}
        case Type(text, point, submit, clear):
            at = {} if point is None else {"coordinate": grid.write(point)}
            cleared = {"clear": True} if clear else {}
            entered = {"enter": True} if submit else {}
            return {"action": "type", "text": text, **at, **cleared, **entered}
        case Key(key):
            return {"action": "key", "text": key}
        case Enter() | Back() | Home():
            return {"action": "system_button", "button": action.name.capitalize()}
        case Recents():
            return {"action": "system_button", "button": "Menu"}
        case OpenApp(app):
            return {"action": "open", "text": app}
        case Wait(ms):
            return {"action": "wait", "time": 1 if ms is None else ms / 1000}
    raise InvalidAction(f"{action.name} changes no screen", field="action")


def _direction(start: tuple[int, int], end: tuple[int, int]) -> str:
    dx, dy = end[0] - start[0], end[1] - start[1]
    if abs(dx) > abs(dy):
        return "right" if dx > 0 else "left"
    return "down" if dy > 0 else "up"


def _quoted(text: str) -> str:
    return json.dumps(text, ensure_ascii=False)


def _json(fields: Mapping[str, object]) -> str:
    return json.dumps(fields, ensure_ascii=False)
