"""GUI-Odyssey's one-line actions: `CLICK: (500, 250)`, `SCROLL: UP`, `TYPE: text`.

Coordinates run from 0 to 1000. A scroll names where the *finger* goes: `UP` reveals what lies
below. A typed text is the rest of its line as it stands, without quotes or escapes, so texts
with line breaks or blanks at their ends cannot be written.
"""

import re

from wmkit.domain.actions import (
    Action,
    Back,
    Finish,
    Home,
    LongPress,
    Recents,
    Scroll,
    Tap,
    Type,
)
from wmkit.domain.dialects.arguments import FINGER_TO_REVEAL, REVEAL_TO_FINGER, Arguments
from wmkit.domain.dialects.base import Reject
from wmkit.domain.dialects.grids import Grid, Scale
from wmkit.domain.dialects.parsing import ParsingDialect
from wmkit.domain.dialects.reader import SPECIAL_TAG
from wmkit.domain.dialects.thoughts import skip_thought
from wmkit.domain.screen import View

_WORDS: dict[str, Action] = {
    "press_home": Home(),
    "press_back": Back(),
    "press_recent": Recents(),
    "complete": Finish("success"),
    "impossible": Finish("infeasible"),
}
_LINE = re.compile(
    r"^[^\S\n]*+(?:Action[^\S\n]*+:[^\S\n]*+)?"
    r"(?:(?P<name>[A-Za-z_]++)[^\S\n]*+:(?P<value>[^\n]*+)"
    rf"|(?P<word>{'|'.join(_WORDS)})[^\S\n]*+\.?[^\S\n]*+)$",
    re.M | re.I,
)


class GuiOdyssey(ParsingDialect):
    name = "gui_odyssey"
    names = ("click", "long_press", "scroll", "type", "text", *_WORDS)

    def grid(self, view: View) -> Grid:
        return Scale(1000)

    def find(self, text: str, view: View) -> Arguments:
        start = skip_thought(text)
        lines = [m for m in _LINE.finditer(text, start) if _name(m) in self.names]
        if not lines:
            end = len(text)
            colon = _LINE.search(text, start)
            if colon is not None:
                raise Reject(f"unknown action {_name(colon)[:40]!r}", *colon.span())
            raise Reject("there is no action: no line like 'CLICK: (x, y)'", start, end)
        if len(lines) > 1:
            raise Reject("the answer holds two actions", lines[1].start(), len(text))
        line = lines[0]
        value = (line.group("value") or "").strip()
        return Arguments(_name(line), {}, [value] if value else [], line.span(), self.grid(view))

    def read(self, args: Arguments) -> Action:
        if args.action in _WORDS:
            return _WORDS[args.action]
        match args.action:
            case "click":
                return Tap(args.point("point"))
            case "long_press":
                return LongPress(args.point("point"))
            case "scroll":
                return Scroll(args.choice(FINGER_TO_REVEAL, "direction"))
            case "type" | "text":
                return Type(args.text("text"))
        raise args.reject(f"unknown action {args.action!r}")

    def write(self, action: Action, grid: Grid) -> str | None:
        match action:
            case Tap(point):
                return "CLICK: ({}, {})".format(*grid.write(point))
            case LongPress(point, None):
                return "LONG_PRESS: ({}, {})".format(*grid.write(point))
            case Scroll(reveal, None):
                return f"SCROLL: {REVEAL_TO_FINGER[reveal].upper()}"
            case Type(text, None, False, False) if _fits_a_line(text):
                return f"TYPE: {text}"
        return next((word.upper() for word, known in _WORDS.items() if known == action), None)

    def describe(self, view: View | None = None) -> str:
        return (
            "CLICK: (x, y)\n"
            "LONG_PRESS: (x, y)\n"
            "SCROLL: UP  # where the finger goes: UP shows what lies below; DOWN, LEFT, RIGHT\n"
            "TYPE: text  # the rest of the line is typed\n"
            "PRESS_HOME\n"
            "PRESS_BACK\n"
            "PRESS_RECENT\n"
            "COMPLETE  # the task is done\n"
            "IMPOSSIBLE  # the task cannot be done\n"
            "x and y run from 0 to 1000 on both axes."
        )


def _name(line: re.Match[str]) -> str:
    name: str = line.group("name") or line.group("word")
    return name.lower()


def _fits_a_line(text: str) -> bool:
    return text != "" and text == text.strip() and "\n" not in text and not SPECIAL_TAG.search(text)
