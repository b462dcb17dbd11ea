"""UI-R1: `<think>..</think><answer>[{'action': 'click', 'coordinate': [336, 742]}]</answer>`.

Python literals; coordinates are pixels of the resized picture. Directions come from
AndroidControl: `down` is taken as revealing what lies below. The list around the object may
be missing.
"""

from collections.abc import Mapping

from wmkit.domain.actions import Action, Back, OpenApp, Scroll, Tap, Type
from wmkit.domain.dialects.arguments import REVEALS, Arguments
from wmkit.domain.dialects.grids import Grid
from wmkit.domain.dialects.objects import ObjectDialect
from wmkit.domain.dialects.reader import quote
from wmkit.domain.screen import View


class UiR1(ObjectDialect):
    name = "ui_r1"
    names = ("click", "open_app", "scroll", "navigate_back", "input_text")
    keys = frozenset(("coordinate", "app_name", "direction", "text"))
    opening = "<answer>"

    def read(self, args: Arguments) -> Action:
        match args.action:
            case "click":
                return Tap(args.point("coordinate"))
            case "open_app":
                return OpenApp(args.text("app_name"))
            case "scroll":
                reveal = args.choice(REVEALS, "direction")
                return Scroll(reveal, args.optional_point("coordinate"))
            case "navigate_back":
                return Back()
            case "input_text":
                return Type(args.text("text"), args.optional_point("coordinate"))
        raise args.reject(f"unknown action {args.action!r}")

    def write(self, action: Action, grid: Grid) -> str | None:
        match action:
            case Tap(point):
                return _object("click", {"coordinate": list(grid.write(point))})
            case OpenApp(app):
                return _object("open_app", {"app_name": app})
            case Scroll(reveal, point):
                at = {} if point is None else {"coordinate": list(grid.write(point))}
                return _object("scroll", {"direction": reveal, **at})
            case Back():
                return _object("navigate_back", {})
            case Type(text, point, False, False):
                at = {} if point is None else {"coordinate": list(grid.write(point))}
                return _object("input_text", {"text": text, **at})
        return None

    def answer(self, action: Action, view: View) -> str:
        return f"<answer>{self.render(action, view)}</answer>"

    def describe(self, view: View | None = None) -> str:
        return (
            "<answer>[{'action': 'click', 'coordinate': [x, y]}]</answer>\n"
            "<answer>[{'action': 'open_app', 'app_name': '...'}]</answer>\n"
            "<answer>[{'action': 'scroll', 'direction': 'down'}]</answer>  # down shows what"
            " lies below\n"
            "<answer>[{'action': 'input_text', 'text': '...'}]</answer>\n"
            "<answer>[{'action': 'navigate_back'}]</answer>\n"
            "[x, y] are pixels of the picture."
        )


def _object(name: str, fields: Mapping[str, object]) -> str:
    written = [f"'action': '{name}'"]
    for key, value in fields.items():
        written.append(f"'{key}': {quote(value) if isinstance(value, str) else value}")
    return f"[{{{', '.join(written)}}}]"
