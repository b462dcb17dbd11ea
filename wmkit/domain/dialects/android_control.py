"""The action format of the AndroidControl dataset: `{"action_type": "click", "x": 540, "y": 1200}`.

Coordinates are pixels of the screenshot, not of a resized picture. What its scroll directions
mean is documented nowhere; `down` is taken as revealing what lies below. The dataset has no
word for the end of a task.
"""

from wmkit.domain.actions import (
    Action,
    Back,
    Home,
    LongPress,
    OpenApp,
    Scroll,
    Tap,
    Type,
    Wait,
)
from wmkit.domain.dialects.arguments import REVEALS, Arguments
from wmkit.domain.dialects.grids import Grid, PixelGrid
from wmkit.domain.dialects.objects import ObjectDialect, dump
from wmkit.domain.screen import Point, View


class AndroidControl(ObjectDialect):
    name = "android_control"
    names = (
        "click",
        "long_press",
        "scroll",
        "open_app",
        "input_text",
        "navigate_home",
        "navigate_back",
        "wait",
    )
    keys = frozenset(("x", "y", "direction", "app_name", "text"))
    key = "action_type"

    def grid(self, view: View) -> Grid:
        return PixelGrid(*view.screen_px)

    def read(self, args: Arguments) -> Action:
        match args.action:
            case "click":
                return Tap(args.point("coordinate"))
            case "long_press":
                return LongPress(args.point("coordinate"))
            case "scroll":
                return Scroll(args.choice(REVEALS, "direction"))
            case "open_app":
                return OpenApp(args.text("app_name"))
            case "input_text":
                return Type(args.text("text"))
            case "navigate_home":
                return Home()
            case "navigate_back":
                return Back()
            case "wait":
                return Wait()
        raise args.reject(f"unknown action {args.action!r}")

    def write(self, action: Action, grid: Grid) -> str | None:
        match action:
            case Tap(point):
                return _dump("click", **_xy(point, grid))
            case LongPress(point, None):
                return _dump("long_press", **_xy(point, grid))
            case Scroll(reveal, None):
                return _dump("scroll", direction=reveal)
            case OpenApp(app):
                return _dump("open_app", app_name=app)
            case Type(text, None, False, False):
                return _dump("input_text", text=text)
            case Home():
                return _dump("navigate_home")
            case Back():
                return _dump("navigate_back")
            case Wait(None):
                return _dump("wait")
        return None

    def describe(self, view: View | None = None) -> str:
        return (
            '{"action_type": "click", "x": x, "y": y}\n'
            '{"action_type": "long_press", "x": x, "y": y}\n'
            '{"action_type": "scroll", "direction": "down"}  # down shows what lies below\n'
            '{"action_type": "open_app", "app_name": "..."}\n'
            '{"action_type": "input_text", "text": "..."}  # into the focused field\n'
            '{"action_type": "navigate_home"}\n'
            '{"action_type": "navigate_back"}\n'
            '{"action_type": "wait"}\n'
            "x and y are pixels of the screenshot."
        )


def _dump(action_type: str, **fields: object) -> str:
    return dump({"action_type": action_type, **fields})


def _xy(point: Point, grid: Grid) -> dict[str, object]:
    x, y = grid.write(point)
    return {"x": x, "y": y}
