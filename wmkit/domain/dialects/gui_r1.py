"""GUI-R1: `<think>..</think><answer>[{'action': 'click', 'point': [336, 742], ...}]</answer>`.

Python literals with single quotes; coordinates are pixels of the resized picture, and
[-100, -100] means none. Typed text, app name and scroll direction all stand in `input_text`,
`no input text` means none. The published data does not say what a direction means; it mixes
in AndroidControl, so `down` is taken as revealing what lies below.
"""

from wmkit.domain.actions import (
    Action,
    Back,
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
from wmkit.domain.dialects.arguments import REVEALS, Arguments
from wmkit.domain.dialects.base import Span
from wmkit.domain.dialects.grids import Grid
from wmkit.domain.dialects.objects import ObjectDialect
from wmkit.domain.dialects.reader import Value, quote
from wmkit.domain.screen import Point, View

_NO_POINT = "[-100,-100]"
_NO_TEXT = "no input text"
_WORDS: dict[str, Action] = {
    "press_home": Home(),
    "press_back": Back(),
    "enter": Enter(),
    "wait": Wait(),
    "complete": Finish("success"),
}


class GuiR1(ObjectDialect):
    name = "gui_r1"
    names = ("click", "long_press", "type", "scroll", "open_app", *_WORDS)
    keys = frozenset(("point", "input_text"))
    opening = "<answer>"

    def unwrap(self, found: dict[str, Value], span: Span) -> dict[str, Value]:
        named = super().unwrap(found, span)
        if str(named.get("point", "")).replace("'", "").replace(" ", "") == _NO_POINT:
            del named["point"]
        if named.get("input_text") == _NO_TEXT:
            del named["input_text"]
        return named

    def read(self, args: Arguments) -> Action:
        if args.action in _WORDS:
            return _WORDS[args.action]
        match args.action:
            case "click":
                return Tap(args.point("point"))
            case "long_press":
                return LongPress(args.point("point"))
            case "type":
                return Type(args.text("input_text"), args.optional_point("point"))
            case "scroll":
                return Scroll(args.choice(REVEALS, "input_text"), args.optional_point("point"))
            case "open_app":
                return OpenApp(args.text("input_text"))
        raise args.reject(f"unknown action {args.action!r}")

    def write(self, action: Action, grid: Grid) -> str | None:
        match action:
            case Tap(point):
                return _object("click", point, None, grid)
            case LongPress(point, None):
                return _object("long_press", point, None, grid)
            case Type(text, point, False, False) if text != _NO_TEXT:
                return _object("type", point, text, grid)
            case Scroll(reveal, point):
                return _object("scroll", point, reveal, grid)
            case OpenApp(app) if app != _NO_TEXT:
                return _object("open_app", None, app, grid)
        word = next((word for word, known in _WORDS.items() if known == action), None)
        return _object(word, None, None, grid) if word else None

    def answer(self, action: Action, view: View) -> str:
        return f"<answer>{self.render(action, view)}</answer>"

    def describe(self, view: View | None = None) -> str:
        return (
            "<answer>[{'action': ACTION, 'point': [x, y], 'input_text': 'no input text'}]"
            "</answer>, ACTION being one of\n"
            "click, long_press: at point\n"
            "type: input_text is the text\n"
            "scroll: input_text is down, up, right or left, the side on which more is shown\n"
            "open_app: input_text is the app's name\n"
            "press_home, press_back, enter, wait\n"
            "complete: the task is done\n"
            "[x, y] are pixels of the picture, [-100, -100] where no point is needed;"
            " input_text is 'no input text' where none is needed."
        )


def _object(name: str, point: Point | None, text: str | None, grid: Grid) -> str:
    x, y = (-100, -100) if point is None else grid.write(point)
    written = quote(_NO_TEXT if text is None else text)
    return f"[{{'action': '{name}', 'point': [{x}, {y}], 'input_text': {written}}}]"
