"""AndroidWorld's JSON actions: `{"action_type": "click", "x": 540, "y": 1200}` or an `index`.

Coordinates are device pixels. An `index` is the number of a listed element; its middle comes
from `view.marks`. `scroll` names what it *reveals*, `swipe` where the *finger* goes. An
`input_text` presses enter by itself.
"""

from wmkit.domain.actions import (
    Action,
    Answer,
    Back,
    DoubleTap,
    Enter,
    Finish,
    Home,
    LongPress,
    OpenApp,
    Scroll,
    Tap,
    Type,
    Wait,
)
from wmkit.domain.dialects.arguments import FINGER_TO_REVEAL, REVEALS, STATUSES, Arguments
from wmkit.domain.dialects.grids import Grid, PixelGrid
from wmkit.domain.dialects.objects import ObjectDialect, dump
from wmkit.domain.screen import Point, View


class AndroidWorld(ObjectDialect):
    name = "android_world"
    names = (
        "click",
        "double_tap",
        "long_press",
        "input_text",
        "keyboard_enter",
        "navigate_home",
        "navigate_back",
        "scroll",
        "swipe",
        "open_app",
        "wait",
        "answer",
        "status",
    )
    keys = frozenset(("x", "y", "direction", "app_name", "text", "goal_status", "clear_text"))
    key = "action_type"

    def grid(self, view: View) -> Grid:
        return PixelGrid(*view.screen_px)

    def find(self, text: str, view: View) -> Arguments:
        args = super().find(text, view)
        if args.is_named("index"):
            args.set_point("index", _mark(args, view))
        return args

    def read(self, args: Arguments) -> Action:
        match args.action:
            case "click":
                return Tap(args.point("index"))
            case "double_tap":
                return DoubleTap(args.point("index"))
            case "long_press":
                return LongPress(args.point("index"))
            case "input_text":
                point = args.optional_point("index")
                return Type(args.text("text"), point, submit=True, clear=args.flag("clear_text"))
            case "keyboard_enter":
                return Enter()
            case "navigate_home":
                return Home()
            case "navigate_back":
                return Back()
            case "scroll":
                return Scroll(args.choice(REVEALS, "direction"), args.optional_point("index"))
            case "swipe":
                reveal = args.choice(FINGER_TO_REVEAL, "direction")
                return Scroll(reveal, args.optional_point("index"))
            case "open_app":
                return OpenApp(args.text("app_name"))
            case "wait":
                return Wait()
            case "answer":
                return Answer(args.text("text"))
            case "status":
                return Finish(args.choice(STATUSES, "goal_status"))
        raise args.reject(f"unknown action {args.action!r}")

    def write(self, action: Action, grid: Grid) -> str | None:
        match action:
            case Tap(point):
                return _dump("click", **_xy(point, grid))
            case DoubleTap(point):
                return _dump("double_tap", **_xy(point, grid))
            case LongPress(point, None):
                return _dump("long_press", **_xy(point, grid))
            case Type(text, point, True, clear):
                cleared = {"clear_text": True} if clear else {}
                return _dump("input_text", text=text, **_xy(point, grid), **cleared)
            case Enter():
                return _dump("keyboard_enter")
            case Home():
                return _dump("navigate_home")
            case Back():
                return _dump("navigate_back")
            case Scroll(reveal, point):
                return _dump("scroll", direction=reveal, **_xy(point, grid))
            case OpenApp(app):
                return _dump("open_app", app_name=app)
            case Wait(None):
                return _dump("wait")
            case Answer(text):
                return _dump("answer", text=text)
            case Finish(status):
                word = "complete" if status == "success" else "infeasible"
                return _dump("status", goal_status=word)
        return None

    def answer(self, action: Action, view: View) -> str:
        return f"Action: {self.render(action, view)}"

    def describe(self, view: View | None = None) -> str:
        return (
            'Where an action has "index": i, the element with that number is meant; "x": x,'
            ' "y": y in pixels of the screen may stand in its place.\n'
            '{"action_type": "click", "index": i}\n'
            '{"action_type": "double_tap", "index": i}\n'
            '{"action_type": "long_press", "index": i}\n'
            '{"action_type": "input_text", "text": "...", "index": i}  # presses enter at the'
            ' end; "clear_text": true empties the field first\n'
            '{"action_type": "keyboard_enter"}\n'
            '{"action_type": "navigate_home"}\n'
            '{"action_type": "navigate_back"}\n'
            '{"action_type": "scroll", "direction": "down"}  # down shows what lies below; with'
            ' "index" inside one element\n'
            '{"action_type": "open_app", "app_name": "..."}\n'
            '{"action_type": "wait"}\n'
            '{"action_type": "answer", "text": "..."}  # the answer to a question\n'
            '{"action_type": "status", "goal_status": "complete"}  # or "infeasible"'
        )


def _mark(args: Arguments, view: View) -> Point:
    index = args.integer("index")
    if not 0 <= index < len(view.marks):
        raise args.reject(f"there is no element {index}; the screen has {len(view.marks)}")
    return view.marks[index]


def _dump(action_type: str, **fields: object) -> str:
    return dump({"action_type": action_type, **fields})


def _xy(point: Point | None, grid: Grid) -> dict[str, object]:
    if point is None:
        return {}
    x, y = grid.write(point)
    return {"x": x, "y": y}
