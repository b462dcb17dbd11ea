"""UI-TARS on phones: `Thought: ...` then `Action: click(point='<point>546 1204</point>')`.

Coordinates are pixels of the smart-resized picture; version 1.0 wrote `start_box`, also as a
box whose middle is meant. A scroll's direction is what it *reveals*. A trailing `\\n` in a
typed text submits it. `finished(content='...')` carries the answer of a question, and
whatever the model likes to say after other tasks: it is read as an answer when it is not empty.
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
    Swipe,
    Tap,
    Type,
    Wait,
)
from wmkit.domain.dialects.arguments import REVEALS, Arguments
from wmkit.domain.dialects.functions import FunctionDialect
from wmkit.domain.dialects.grids import Grid
from wmkit.domain.dialects.reader import quote
from wmkit.domain.screen import Point, View

_POINT = ("point", "start_box", "start_point")
_END = ("end_point", "end_box")


class UiTarsMobile(FunctionDialect):
    name = "uitars_mobile"
    names = (
        "click",
        "long_press",
        "type",
        "scroll",
        "open_app",
        "drag",
        "press_home",
        "press_back",
        "wait",
        "finished",
    )

    def read(self, args: Arguments) -> Action:
        match args.action:
            case "click":
                return Tap(args.point(*_POINT))
            case "long_press":
                return LongPress(args.point(*_POINT))
            case "type":
                content = args.text("content", "text")
                if content.endswith("\n"):
                    return Type(content[:-1], submit=True)
                return Type(content)
            case "scroll":
                reveal = args.find_choice(REVEALS, "direction")
                return Scroll(reveal, args.optional_point(*_POINT))
            case "open_app":
                return OpenApp(args.text("app_name"))
            case "drag":
                return Swipe(args.point("start_point", "start_box"), args.point(*_END))
            case "press_home":
                return Home()
            case "press_back":
                return Back()
            case "wait":
                return Wait()
            case "finished":
                content = args.optional_text("content") or ""
                return Answer(content) if content else Finish("success")
        raise args.reject(f"unknown action {args.action!r}")

    def write(self, action: Action, grid: Grid) -> str | None:
        match action:
            case Tap(point):
                return f"click(point={_mark(point, grid)})"
            case LongPress(point, None):
                return f"long_press(point={_mark(point, grid)})"
            case Type(text, None, True, False):
                return f"type(content={quote(text + chr(10))})"
            case Type(text, None, False, False) if not text.endswith("\n"):
                return f"type(content={quote(text)})"
            case Scroll(reveal, point):
                mark = "" if point is None else f"point={_mark(point, grid)}, "
                return f"scroll({mark}direction='{reveal}')"
            case Swipe(point, to, None):
                ends = f"start_point={_mark(point, grid)}, end_point={_mark(to, grid)}"
                return f"drag({ends})"
            case OpenApp(app):
                return f"open_app(app_name={quote(app)})"
            case Home():
                return "press_home()"
            case Back():
                return "press_back()"
            case Wait(None):
                return "wait()"
            case Answer(text) if text:
                return f"finished(content={quote(text)})"
            case Finish("success"):
                return "finished(content='')"
        return None

    def describe(self, view: View | None = None) -> str:
        point = "point='<point>x y</point>'"
        return (
            f"click({point})\n"
            f"long_press({point})\n"
            "type(content='...')  # end with \\n to submit; write \\' and \\\\ inside\n"
            f"scroll({point}, direction='down')  # down, up, right or left: the side on which"
            " more is shown\n"
            "open_app(app_name='...')\n"
            "drag(start_point='<point>x1 y1</point>', end_point='<point>x2 y2</point>')\n"
            "press_home()\n"
            "press_back()\n"
            "wait()\n"
            "finished(content='...')  # the task is done; content holds the answer, if one is asked"
        )


def _mark(point: Point, grid: Grid) -> str:
    x, y = grid.write(point)
    return f"'<point>{x} {y}</point>'"
