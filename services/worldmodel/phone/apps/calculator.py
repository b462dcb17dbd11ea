"""Calculator: a keypad of whole cells, exact arithmetic, and a history that can be cleared.

What is being typed is part of the page, not of the data: `Entry` is the expression, `Result`
what the last "=" gave for it. Only finished calculations are kept.
"""

from dataclasses import dataclass, replace
from random import Random

from services.worldmodel.phone.app import App, Listing, Reply, ask, pop, push
from services.worldmodel.phone.apps.arithmetic import (
    REASONS,
    CannotCompute,
    canonical,
    evaluate,
    printed,
)
from services.worldmodel.phone.geometry import WIDTH, Element, cell, cell_box, square
from services.worldmodel.phone.look import BLUE, INK, ORANGE, RED, SLATE
from services.worldmodel.phone.state import Frame, Part, Stack
from services.worldmodel.phone.widgets import Elements, app_bar, dialog, row, scroll_bar, text

NAME = "Calculator"
KEYS = ("C()÷", "789×", "456-", "123+", "0.<=")
FIRST_LINE = 5
VISIBLE = 9
MAX_ENTRY = 40
MAX_HISTORY = 20
LINE = 20
FIELDS = ("Entry", "Result")


@dataclass(frozen=True)
class Calculation:
    """A finished calculation, numbers in their shortest form."""

    expression: str
    result: str


@dataclass(frozen=True)
class Calculator(Part):
    """`history` has the latest calculation last."""

    history: tuple[Calculation, ...] = ()

    def calculating(self, expression: str) -> "Calculator":
        """The calculator after one more calculation. Raises CannotCompute."""
        done = Calculation(canonical(expression), printed(evaluate(expression)))
        return Calculator((*self.history, done)[-MAX_HISTORY:])

    def eased(self, start: "Calculator", want: "Calculator") -> "Calculator":
        """Calculations on the way are free: only the latest counts, where one is asked for."""
        if start.history == want.history:
            return want
        last = want.history[-1:]
        return want if last and self.history[-1:] == last else self


def boot(rng: Random) -> Calculator:
    """Up to three calculations made before."""
    data = Calculator()
    for _ in range(rng.randrange(4)):
        a, b, sign = rng.randint(2, 99), rng.randint(2, 99), rng.choice("+-×")
        data = data.calculating(f"{a}{sign}{b}")
    return data


def title(_data: Calculator, frame: Frame) -> str:
    """The word in the app bar."""
    return "History" if frame.page == "history" else NAME


def draw(data: Calculator, stack: Stack) -> list[Element]:
    """The page on top of the stack."""
    frame = stack[-1]
    if frame.page == "keypad":
        out = app_bar(NAME, NAME, False, ("history", "clock"))
        out += _display(frame)
        for i, keys in enumerate(KEYS):
            for column, sign in enumerate(keys):
                out += _key(column, FIRST_LINE + i, sign)
        return out
    if frame.page != "history":
        raise ValueError(f"Calculator has no page {frame.page!r}")
    action = ("clear-history", "trash") if data.history else None
    out = app_bar(NAME, "History", True, action)
    latest = data.history[::-1]
    for i, done in enumerate(latest[frame.scroll : frame.scroll + VISIBLE]):
        out += row(
            "calculator",
            1 + i,
            done.expression[:LINE],
            key=f"reuse:{len(latest) - 1 - frame.scroll - i}",
            sub=f"= {done.result}",
            icon=(SLATE, "=="),
        )
    out += scroll_bar("calculator", frame.scroll, VISIBLE, len(latest), 1)
    if not latest:
        out.append(text("calculator/empty", "No history yet", (80, 300, 920, 120), "body"))
    if frame.dialog:
        out += dialog("Delete?", frame.dialog)
    return out


def _display(frame: Frame) -> Elements:
    """The expression in two lines, the result below it."""
    entry, result = frame.field("Entry"), frame.field("Result")
    out: Elements = []
    for i, start in enumerate(range(0, min(len(entry), 2 * LINE), LINE)):
        box = (60, 280 + 110 * i, WIDTH - 120, 100)
        out.append(text(f"calculator/entry-{i}", entry[start : start + LINE], box, "end"))
    if result or not entry:
        shown = result or "0"
        tone = "big" if len(shown) <= 9 else "row"
        out.append(text("calculator/result", shown, (60, 680, WIDTH - 120, 200), tone))
    return out


def _key(column: int, line: int, sign: str) -> Elements:
    color = {"C": RED, "<": SLATE, "=": BLUE}.get(sign, ORANGE if sign in "()÷×-+" else INK)
    glyph = "erase" if sign == "<" else f"={sign}"
    at = cell(column, line)
    name = {"C": "Clear", "<": "Erase", "=": "Equals"}.get(sign, sign)
    id = f"calculator/key-{name}"
    return [
        Element(id, "button", name, cell_box(column, line), at, True, key=f"k:{sign}", tone="cell"),
        Element(f"{id}:icon", "glyph", "", square(column, line, 196), at, color=color, glyph=glyph),
    ]


def tap(data: Calculator, stack: Stack, key: str) -> Reply[Calculator]:
    """React to a key of the page on top."""
    verb, _, name = key.partition(":")
    if verb == "history":
        return Reply(data, push(stack, "history"))
    if verb == "clear-history":
        return Reply(data, ask(stack, "History"))
    if verb == "confirm":
        return Reply(Calculator(), ask(stack, ""))
    if verb == "reuse":
        return Reply(data, _showing(pop(stack), data.history[int(name)].result))
    assert verb == "k", key
    frame = stack[-1]
    if name != "=":
        return Reply(data, _showing(stack, _typed(frame, name)))
    entry = frame.field("Entry")
    if not entry or frame.field("Result"):
        return Reply(data, stack)
    try:
        after = data.calculating(entry)
    except CannotCompute as error:
        return Reply(data, _showing(stack, entry, str(error)))
    return Reply(after, _showing(stack, entry, after.history[-1].result))


def _typed(frame: Frame, sign: str) -> str:
    """The expression after a key other than "="."""
    entry, result = frame.field("Entry"), frame.field("Result")
    if sign == "C":
        return ""
    if sign == "<":
        return entry[:-1]
    if result:
        carries = sign in "+-×÷" and result not in REASONS
        entry = result if carries else ""
    last = entry[-1:]
    if sign in "+×÷" and (not last or last == "("):
        return entry
    if sign in "+×÷" and last in "+-×÷":
        entry = entry.rstrip("+-×÷")
    if sign == "-" and last in ("+", "-"):
        entry = entry[:-1]
    number = entry[len(entry.rstrip("0123456789.")) :]
    if sign == "." and "." in number:
        return entry
    if sign == "." and not number:
        sign = "0."
    if sign == ")" and (entry.count("(") <= entry.count(")") or last in tuple("+-×÷(")):
        return entry
    return (entry + sign)[:MAX_ENTRY]


def _showing(stack: Stack, entry: str, result: str = "") -> Stack:
    fields = tuple((k, v) for k, v in (("Entry", entry), ("Result", result)) if v)
    return (*stack[:-1], replace(stack[-1], fields=fields))


def listing(data: Calculator, frame: Frame) -> Listing | None:
    """The history scrolls."""
    if frame.page != "history":
        return None
    keys = tuple(f"reuse:{i}" for i in reversed(range(len(data.history))))
    return Listing(keys, VISIBLE)


def fields(frame: Frame) -> tuple[str, ...]:
    """What the keypad page remembers; nothing here brings up the keyboard."""
    return FIELDS if frame.page == "keypad" else ()


def door(_frame: Frame) -> str:
    """The key that opens the history."""
    return "history"


def pages(_data: Calculator) -> tuple[Stack, ...]:
    """The keypad, empty and in use, and the history."""
    root = Frame("keypad")
    return (root,), (replace(root, fields=(("Entry", "12+"),)),), (root, Frame("history"))


APP = App(
    NAME, Calculator, Frame("keypad"), boot, title, draw, tap, listing, door, pages, fields=fields
)
