"""Phone: the log of calls by person, a keypad, and speed dial by tiles without a name.

A call is made as soon as it is dialled. `placed` counts every call that was made and is
kept when history is deleted, so that a wrong call stays made.
"""

from dataclasses import dataclass, replace
from random import Random
from typing import Literal

from services.worldmodel.phone.app import App, Listing, Reply, ask, pop, push
from services.worldmodel.phone.geometry import CELL_H, WIDTH, Element, cell, cell_box
from services.worldmodel.phone.look import GREEN, INK, NAMES, RED
from services.worldmodel.phone.state import Frame, Part, Stack
from services.worldmodel.phone.tiles import Tiles, scatter, tiles
from services.worldmodel.phone.widgets import (
    Elements,
    app_bar,
    button,
    dialog,
    pill,
    row,
    scroll_bar,
    tabs,
    text,
)

NAME = "Phone"
VISIBLE = 8
HISTORY = 12
LOG_LENGTH = 40
DIGITS = 7
KEYS = ("1", "2", "3", "4", "5", "6", "7", "8", "9", "", "0", "")
GLYPHS = {
    "keypad": "".join(
        f'<circle cx="{x}" cy="{y}" r="2.3"/>' for y in (4.5, 12, 19.5) for x in (4.5, 12, 19.5)
    ),
    "bolt": '<path d="M14 1.5L4 14h6.5L9 22.5L20 9.5h-6.5z"/>',
    "missed": '<path d="M3 6l9 9l9-9M3 13V6h7" fill="none" stroke="currentColor" '
    'stroke-width="3" stroke-linecap="round" stroke-linejoin="round"/>',
}
TABS = (("Recents", "clock"), ("Keypad", "keypad"), ("Speed", "bolt"))

Kind = Literal["Outgoing", "Incoming", "Missed"]
Way = Literal["", "recents", "keypad", "speed"]


@dataclass(frozen=True)
class Call:
    """A call; `name` is a person or a number, `way` how an outgoing call was dialled here."""

    name: str
    kind: Kind
    way: Way = ""


@dataclass(frozen=True)
class Calls(Part):
    """The log, the latest last; who lies behind which speed-dial tile; who is blocked."""

    log: tuple[Call, ...]
    speed: Tiles
    blocked: tuple[str, ...] = ()
    placed: int = 0

    @property
    def names(self) -> tuple[str, ...]:
        """Everyone in the log once, the latest first."""
        return tuple(dict.fromkeys(call.name for call in reversed(self.log)))

    def of(self, name: str) -> tuple[Call, ...]:
        """The calls with one person, the latest first."""
        return tuple(call for call in reversed(self.log) if call.name == name)

    def calling(self, name: str, way: Way) -> "Calls":
        """The data after an outgoing call; the log keeps the latest entries."""
        log = (*self.log, Call(name, "Outgoing", way))[-LOG_LENGTH:]
        return replace(self, log=log, placed=self.placed + 1)

    def without(self, name: str) -> "Calls":
        """The data with the history of one person deleted."""
        return replace(self, log=tuple(call for call in self.log if call.name != name))

    def blocking(self, name: str, blocked: bool) -> "Calls":
        """The data with one person blocked or not."""
        others = {n for n in self.blocked if n != name}
        return replace(self, blocked=tuple(sorted(others | ({name} if blocked else set()))))


def boot(rng: Random) -> Calls:
    """A dozen calls with seven people, one of them blocked, and three people on speed dial."""
    people = rng.sample(NAMES, 7)
    kinds: tuple[Kind, ...] = ("Outgoing", "Incoming", "Missed")
    names = [*people, *rng.choices(people, k=rng.randint(3, 6))]
    rng.shuffle(names)
    log = tuple(Call(name, rng.choice(kinds)) for name in names)
    return Calls(log, scatter(rng, rng.sample(NAMES, 3)), (rng.choice(people),))


def written(digits: str) -> str:
    """A dialled number as the phone writes it."""
    return f"{digits[:3]}-{digits[3:]}" if len(digits) > 3 else digits


def title(_data: Calls, frame: Frame) -> str:
    """The word in the app bar."""
    return frame.item or NAME


def draw(data: Calls, stack: Stack) -> list[Element]:
    """The page on top of the stack."""
    frame = stack[-1]
    out: Elements = app_bar(NAME, title(data, frame), len(stack) > 1)
    match frame.page:
        case "Recents":
            names = data.names
            for i, name in enumerate(names[frame.scroll : frame.scroll + VISIBLE]):
                out += _entry(data, 1 + i, name, f"open:{name}")
            if not names:
                out.append(text("phone/empty", "No calls yet", (80, 300, 920, 120), "body"))
            out += scroll_bar("phone", frame.scroll, VISIBLE, len(names), 1)
        case "Keypad":
            out += _keypad(frame.field("Number"))
        case "Speed":
            hint = (80, CELL_H + 60, WIDTH - 160, 120)
            out.append(text("phone/hint", "One tap calls at once", hint, "body"))
            out += tiles("phone", (place for place, _ in data.speed))
        case "history":
            out += _history(data, frame)
        case "call":
            out += row("phone", 2, frame.item, sub="Calling")
            out += pill("phone", 8, "End", "end", RED, "hangup")
        case _:
            raise ValueError(f"Phone has no page {frame.page!r}")
    if len(stack) == 1:
        out += tabs("phone", GREEN, frame.page, TABS)
    if frame.dialog:
        out += dialog("Delete?", frame.dialog)
    return out


def _entry(data: Calls, line: int, name: str, key: str = "") -> Elements:
    latest = data.of(name)[0]
    blocked = name in data.blocked
    missed = latest.kind == "Missed"
    return row(
        "phone",
        line,
        name,
        key=key,
        sub=latest.kind,
        mark="mute" if blocked else "missed" if missed else "",
    )


def _history(data: Calls, frame: Frame) -> Elements:
    calls = data.of(frame.item)
    if not calls:
        raise ValueError(f"there is no call with {frame.item!r}")
    out = _entry(data, 1, frame.item)
    for i, call in enumerate(calls[:HISTORY]):
        box = (80, 2 * CELL_H + 40 + 110 * i, WIDTH - 160, 100)
        out.append(text(f"phone/call-{i}", f"{call.kind} call", box, "body"))
    word = "Unblock" if frame.item in data.blocked else "Block"
    out += button("phone", 0, 8, "Call", "call", GREEN, "phone")
    out += button("phone", 1, 8, word, "block", INK, "mute")
    out += button("phone", 3, 8, "Delete", "delete", RED, "trash")
    return out


def _keypad(digits: str) -> Elements:
    out: Elements = []
    if digits:
        box = (60, CELL_H + 60, WIDTH - 120, 180)
        out.append(text("phone/number", written(digits), box, "big"))
    for i, digit in enumerate(KEYS):
        if digit:
            column, line = i % 3, 3 + i // 3
            out += _digit(digit, column, line)
    out += button("phone", 3, 4, "Erase", "rub", INK, "erase")
    out += button("phone", 3, 6, "Call", "dial", GREEN, "phone")
    return out


def _digit(digit: str, column: int, line: int) -> Elements:
    id = f"phone/digit-{digit}"
    at = cell(column, line)
    box = cell_box(column, line)
    face = (box[0] + 45, box[1] + 30, 180, 180)
    return [
        Element(id, "button", digit, box, at, True, key=f"digit:{digit}", tone="cell"),
        Element(f"{id}:icon", "glyph", "", face, at, color="neutral", glyph=f"={digit}"),
    ]


def tap(data: Calls, stack: Stack, key: str) -> Reply[Calls]:
    """React to a key of the page on top."""
    verb, _, name = key.partition(":")
    frame = stack[-1]
    digits = frame.field("Number")
    match verb:
        case "tab":
            return Reply(data, stack if frame.page == name else (Frame(name),))
        case "open":
            return Reply(data, push(stack, "history", name))
        case "tile":
            person = dict(data.speed)[int(name)]
            return Reply(data.calling(person, "speed"), push(stack, "call", person))
        case "call":
            return Reply(data.calling(frame.item, "recents"), push(stack, "call", frame.item))
        case "dial" if digits:
            number = written(digits)
            page = (replace(frame, fields=()),)
            return Reply(data.calling(number, "keypad"), push(page, "call", number))
        case "digit" if len(digits) < DIGITS:
            return Reply(data, _dialled(frame, digits + name))
        case "rub" if digits:
            return Reply(data, _dialled(frame, digits[:-1]))
        case "dial" | "digit" | "rub":
            return Reply(data, stack)
        case "block":
            return Reply(data.blocking(frame.item, frame.item not in data.blocked), stack)
        case "delete":
            return Reply(data, ask(stack, frame.item))
        case "confirm":
            return Reply(data.without(frame.item), pop(stack))
        case _:
            assert verb == "end", key
            return Reply(data, pop(stack))


def _dialled(frame: Frame, digits: str) -> Stack:
    return (replace(frame, fields=(("Number", digits),) if digits else ()),)


def listing(data: Calls, frame: Frame) -> Listing | None:
    """The log scrolls."""
    if frame.page != "Recents":
        return None
    return Listing(tuple(f"open:{name}" for name in data.names), VISIBLE)


def fields(frame: Frame) -> tuple[str, ...]:
    """What is dialled so far stands in the keypad's page."""
    return ("Number",) if frame.page == "Keypad" else ()


def door(frame: Frame) -> str:
    """The key that opens a page."""
    return {"history": f"open:{frame.item}", "call": "call"}.get(frame.page, f"tab:{frame.page}")


def pages(data: Calls) -> tuple[Stack, ...]:
    """The three tabs and the history of everyone in the log."""
    root = (Frame("Recents"),)
    inner = tuple(push(root, "history", name) for name in data.names)
    return (root, (Frame("Keypad"),), (Frame("Speed"),), *inner)


APP = App(
    NAME,
    Calls,
    Frame("Recents"),
    boot,
    title,
    draw,
    tap,
    listing,
    door,
    pages,
    fields=fields,
    glyphs=GLYPHS,
)
