"""WM-R1's own dialect: `Action: tap(start_box='<|box_start|>(546,1204)<|box_end|>')`.

Coordinates are integer pixels of the picture that the model saw. A scroll's direction is
where the *finger* goes: `direction='up'` reveals what lies below.
"""

from wmkit.domain.actions import (
    Action,
    Answer,
    Back,
    Finish,
    Home,
    LongPress,
    OpenApp,
    Scroll,
    Tap,
    Type,
    Wait,
)
from wmkit.domain.dialects.arguments import (
    FINGER_TO_REVEAL,
    REVEAL_TO_FINGER,
    STATUSES,
    Arguments,
)
from wmkit.domain.dialects.functions import FunctionDialect
from wmkit.domain.dialects.grids import Grid
from wmkit.domain.dialects.reader import quote
from wmkit.domain.screen import Point, View

_BOX = "start_box='<|box_start|>({},{})<|box_end|>'"
_POINT = ("start_box", "point", "box", "coordinate", "position")


class Wmr1Android(FunctionDialect):
    name = "wmr1_android"
    names = (
        "tap",
        "long_press",
        "type",
        "scroll",
        "open_app",
        "press_back",
        "press_home",
        "wait",
        "finished",
    )

    def read(self, args: Arguments) -> Action:
        match args.action:
            case "tap":
                return Tap(args.point(*_POINT))
            case "long_press":
                return LongPress(args.point(*_POINT))
            case "type":
                return Type(args.text("content", "text"))
            case "scroll":
                reveal = args.find_choice(FINGER_TO_REVEAL, "direction")
                return Scroll(reveal, args.optional_point(*_POINT))
            case "open_app":
                return OpenApp(args.text("app_name", "app", "name"))
            case "press_back":
                return Back()
            case "press_home":
                return Home()
            case "wait":
                return Wait()
            case "finished":
                return _read_finished(args)
        raise args.reject(f"unknown action {args.action!r}")

    def write(self, action: Action, grid: Grid) -> str | None:
        match action:
            case Tap(point):
                return f"tap({_box(point, grid)})"
            case LongPress(point, None):
                return f"long_press({_box(point, grid)})"
            case Type(text, None, False, False):
                return f"type(content={quote(text)})"
            case Scroll(reveal, point):
                box = "" if point is None else f"{_box(point, grid)}, "
                return f"scroll({box}direction='{REVEAL_TO_FINGER[reveal]}')"
            case OpenApp(app):
                return f"open_app(app_name={quote(app)})"
            case Back():
                return "press_back()"
            case Home():
                return "press_home()"
            case Wait(None):
                return "wait()"
            case Answer(text) if text:
                return f"finished(content={quote(text)})"
            case Finish("success"):
                return "finished()"
            case Finish(status):
                return f"finished(status='{status}')"
        return None

    def describe(self, view: View | None = None) -> str:
        box = _BOX.format("x", "y")
        return (
            f"tap({box})  # touch a point\n"
            f"long_press({box})  # touch and hold a point\n"
            "type(content='...')  # type into the focused field; write \\' and \\n inside\n"
            "scroll(direction='up')  # move the finger up, down, left or right: up shows what"
            f" lies below; where it matters, start at scroll({box}, direction='up')\n"
            "open_app(app_name='...')  # start an app by its name\n"
            "press_back()\n"
            "press_home()\n"
            "wait()  # give the screen time to change\n"
            "finished()  # the task is done\n"
            "finished(content='...')  # the task is a question and this is the answer\n"
            "finished(status='infeasible')  # the task cannot be done\n"
            "x and y are pixels of the newest screen, counted from its upper left corner."
        )


def _box(point: Point, grid: Grid) -> str:
    return _BOX.format(*grid.write(point))


def _read_finished(args: Arguments) -> Action:
    status = args.choice(STATUSES, "status") if args.is_named("status") else None
    content = args.optional_text("content", "answer", "text")
    if status == "infeasible":
        return Finish("infeasible")
    return Answer(content) if content else Finish("success")
