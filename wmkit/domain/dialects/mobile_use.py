"""Qwen's `mobile_use` tool, in the two forms that Qwen2.5-VL and Qwen3-VL were trained on.

    <tool_call>
    {"name": "mobile_use", "arguments": {"action": "click", "coordinate": [336, 742]}}
    </tool_call>

Qwen2.5 writes pixels of the resized picture, whose resolution its prompt states; Qwen3 writes
0 to 999 on both axes, has `answer`, and a `Thought:` and an `Action:` line before the call.
Times are seconds. There is no scroll: these agents swipe. `Menu` is the key for the recent
apps, `failure` is read as infeasible.
"""

from wmkit.domain.actions import (
    Action,
    Answer,
    Back,
    Enter,
    Finish,
    Home,
    Key,
    LongPress,
    OpenApp,
    Recents,
    Swipe,
    Tap,
    Type,
    Wait,
)
from wmkit.domain.dialects.arguments import STATUSES, Arguments
from wmkit.domain.dialects.base import Reject, Span
from wmkit.domain.dialects.grids import Grid, Scale
from wmkit.domain.dialects.objects import ObjectDialect, dump
from wmkit.domain.dialects.reader import Value, read_value
from wmkit.domain.screen import View

_BUTTONS: dict[str, Action] = {
    "back": Back(),
    "home": Home(),
    "menu": Recents(),
    "enter": Enter(),
}
_MAX_MS = 10**9


class Qwen25MobileUse(ObjectDialect):
    name = "qwen25_mobile_use"
    names: tuple[str, ...] = (
        "click",
        "long_press",
        "swipe",
        "type",
        "key",
        "system_button",
        "open",
        "wait",
        "terminate",
    )
    keys = frozenset(("coordinate", "coordinate2", "text", "time", "button", "status"))
    opening = "<tool_call>"

    def unwrap(self, found: dict[str, Value], span: Span) -> dict[str, Value]:
        if "arguments" not in found:
            return super().unwrap(found, span)
        if found.get("name", "mobile_use") != "mobile_use":
            raise Reject(f"unknown tool {str(found['name'])[:40]!r}; known: mobile_use", *span)
        arguments = found["arguments"]
        if isinstance(arguments, str):  # JSON inside a JSON string
            arguments = _inner(arguments, span)
        if not isinstance(arguments, dict):
            raise Reject("the arguments are not an object", *span)
        return super().unwrap(arguments, span)

    def another_key(self) -> str:
        return "(?:name|action)"

    def read(self, args: Arguments) -> Action:
        match args.action:
            case "click":
                return Tap(args.point("coordinate"))
            case "long_press":
                return LongPress(args.point("coordinate"), args.milliseconds("time"))
            case "swipe":
                return Swipe(args.point("coordinate"), args.point("coordinate2"))
            case "type":
                return Type(args.text("text"))
            case "key":
                return Key(args.text("text"))
            case "system_button":
                return args.choice(_BUTTONS, "button")
            case "open":
                return OpenApp(args.text("text"))
            case "wait":
                return Wait(args.milliseconds("time"))
            case "terminate":
                status = args.choice(STATUSES, "status") if args.is_named("status") else "success"
                return Finish(status)
            case "answer":
                return Answer(args.text("text"))
        raise args.reject(f"unknown action {args.action!r}")

    def write(self, action: Action, grid: Grid) -> str | None:
        fields = self.fields(action, grid)
        if fields is None or fields["action"] not in self.names:
            return None
        call = dump({"name": "mobile_use", "arguments": fields})
        return f"<tool_call>\n{call}\n</tool_call>"

    def fields(self, action: Action, grid: Grid) -> dict[str, object] | None:
        match action:
            case Tap(point):
                return {"action": "click", "coordinate": grid.write(point)}
            case LongPress(point, ms) if _is_time(ms):
                return {
                    "action": "long_press",
                    "coordinate": grid.write(point),
                    **_seconds(ms),
                }
            case Swipe(point, to, None):
                return {
                    "action": "swipe",
                    "coordinate": grid.write(point),
                    "coordinate2": grid.write(to),
                }
            case Type(text, None, False, False):
                return {"action": "type", "text": text}
            case Key(key):
                return {"action": "key", "text": key}
            case Back() | Home() | Recents() | Enter():
                button = next(word for word, known in _BUTTONS.items() if known == action)
                return {"action": "system_button", "button": button.capitalize()}
            case OpenApp(app):
                return {"action": "open", "text": app}
            case Wait(ms) if _is_time(ms):
                return {"action": "wait", **_seconds(ms)}
            case Finish(status):
                word = "success" if status == "success" else "failure"
                return {"action": "terminate", "status": word}
            case Answer(text):
                return {"action": "answer", "text": text}
        return None

    def describe(self, view: View | None = None) -> str:
        where = "pixels of the screen picture"
        if view is not None:
            where += f", which is {view.model_px[0]}x{view.model_px[1]}"
        extra = (
            '{"action": "key", "text": "volume_up"}  # press a key by its name\n'
            '{"action": "open", "text": "app name"}\n'
        )
        return _describe(extra, f"[x, y] are {where}.")


class Qwen3MobileUse(Qwen25MobileUse):
    """Reads and writes `key` and `open` too, which its prompt (the cookbook's list) leaves out."""

    name = "qwen3_mobile_use"
    names = (*Qwen25MobileUse.names, "answer")

    def grid(self, view: View) -> Grid:
        return Scale(999)

    def answer(self, action: Action, view: View) -> str:
        return f"Action: {action.name.replace('_', ' ')}\n{self.render(action, view)}"

    def describe(self, view: View | None = None) -> str:
        extra = '{"action": "answer", "text": "..."}  # the answer to the user\'s question\n'
        where = "[x, y] run from 0 to 999 on both axes, whatever the size of the screen."
        return _describe(extra, f"{where} Write an Action: line in plain words before the call.")


def _describe(extra: str, where: str) -> str:
    return (
        "One call of the tool mobile_use, written as\n"
        '<tool_call>\n{"name": "mobile_use", "arguments": ARGUMENTS}\n</tool_call>\n'
        "with one of these ARGUMENTS:\n"
        '{"action": "click", "coordinate": [x, y]}\n'
        '{"action": "long_press", "coordinate": [x, y], "time": 2}  # seconds\n'
        '{"action": "swipe", "coordinate": [x, y], "coordinate2": [x2, y2]}\n'
        '{"action": "type", "text": "..."}  # into the focused field\n'
        '{"action": "system_button", "button": "Back"}  # Back, Home, Menu or Enter\n'
        '{"action": "wait", "time": 2}\n'
        f'{extra}{{"action": "terminate", "status": "success"}}  # or "failure"\n'
        f"{where}"
    )


def _inner(text: str, span: Span) -> Value:
    try:
        return read_value(text, 0)[0]
    except Reject as reject:
        raise Reject(f"the arguments cannot be read: {reject.reason}", *span) from None


def _is_time(ms: int | None) -> bool:
    return ms is None or 0 <= ms < _MAX_MS


def _seconds(ms: int | None) -> dict[str, object]:
    if ms is None:
        return {}
    return {"time": ms // 1000 if ms % 1000 == 0 else ms / 1000}
