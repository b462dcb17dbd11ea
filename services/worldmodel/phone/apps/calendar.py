"""Calendar: two weeks of days with events, an agenda, and invitations in blank envelopes.

Opening an envelope accepts the invitation at once; `accepted` keeps it for good.
"""

import re
from dataclasses import dataclass, replace
from random import Random

from services.worldmodel.phone.app import App, Listing, Reply, ask, pop, push
from services.worldmodel.phone.effects import Toast
from services.worldmodel.phone.geometry import CELL_H, CELL_W, WIDTH, Element
from services.worldmodel.phone.look import (
    AMBER,
    BLUE,
    BROWN,
    CYAN,
    GREEN,
    HUES,
    INDIGO,
    LIME,
    ORANGE,
    PINK,
    RED,
    SLATE,
    TEAL,
    VIOLET,
    look,
)
from services.worldmodel.phone.state import Frame, Part, Stack
from services.worldmodel.phone.tiles import Tiles, scatter, tiles
from services.worldmodel.phone.widgets import (
    Elements,
    app_bar,
    button,
    dialog,
    fab,
    field,
    row,
    scroll_bar,
    tabs,
    text,
)

NAME = "Calendar"
TITLES: dict[str, tuple[str, str]] = {
    "Dentist": (TEAL, "cross"),
    "Party": (PINK, "gift"),
    "Meeting": (BROWN, "case"),
    "Concert": (VIOLET, "speaker"),
    "Picnic": (ORANGE, "bowl"),
    "Yoga": (LIME, "flower"),
    "Flight": (BLUE, "plane"),
    "Exam": (INDIGO, "cap"),
    "Haircut": (AMBER, "person"),
    "Match": (GREEN, "target"),
    "Movie": (RED, "play"),
    "Training": (CYAN, "dumbbell"),
}
DAYS = 14
FIRST = 6  # the phone's first day is Monday the 6th
WEEKDAYS = ("Mon", "Tue", "Wed", "Thu", "Fri", "Sat", "Sun")
VISIBLE = 8
VISIBLE_ON_A_DAY = 7
FIELDS = ("Title", "Time")
TABS = (("Days", "grid"), ("Agenda", "lines"), ("Invites", "letter"))
GLYPHS = {
    "grid": '<path d="M3 4h18v17H3zM5.5 9.5h13v9h-13z"/>'
    '<path d="M9 9v10M15 9v10M5 14h14" stroke="currentColor" stroke-width="2"/>',
    "lines": '<path d="M4 6h16M4 12h16M4 18h10" fill="none" stroke="currentColor" '
    'stroke-width="3.4" stroke-linecap="round"/>',
    "letter": '<path d="M2 5h20v14H2z"/><path d="M3 6.5l9 7l9-7" fill="none" stroke="#fff" '
    'stroke-width="2"/>',
    "move": '<path d="M3 12h17M13 5l7 7l-7 7" fill="none" stroke="currentColor" '
    'stroke-width="3.2" stroke-linecap="round" stroke-linejoin="round"/>',
}


@dataclass(frozen=True)
class Event:
    """An event; titles are unique. `day` counts from the first, `minute` from midnight."""

    title: str
    day: int
    minute: int
    remind: bool = False

    @property
    def time(self) -> str:
        """As drawn, 24 hours."""
        return f"{self.minute // 60:02d}:{self.minute % 60:02d}"

    @property
    def when(self) -> str:
        """Day and time, as drawn."""
        return f"{day_name(self.day)}, {self.time}"


@dataclass(frozen=True)
class Calendar(Part):
    """Events by time; what the envelopes invite to; what was accepted."""

    events: tuple[Event, ...]
    invites: Tiles
    accepted: tuple[str, ...] = ()

    def event(self, title: str) -> Event | None:
        """The event of that title."""
        return next((event for event in self.events if event.title == title), None)

    def on(self, day: int) -> tuple[Event, ...]:
        """The events of one day by time."""
        return tuple(event for event in self.events if event.day == day)

    def adding(self, event: Event) -> "Calendar":
        """The calendar with an event more, or with it in place of the one of its title."""
        events = (*self.without(event.title).events, event)
        ordered = sorted(events, key=lambda e: (e.day, e.minute, e.title))
        return replace(self, events=tuple(ordered))

    def without(self, title: str) -> "Calendar":
        """The calendar with one event deleted."""
        return replace(self, events=tuple(e for e in self.events if e.title != title))

    def accepting(self, title: str) -> "Calendar":
        """The calendar after an envelope was opened; the event keeps its tile's day and time."""
        place = {word: place for place, word in self.invites}[title]
        left = tuple((p, word) for p, word in self.invites if word != title)
        event = Event(title, 3 + place, 60 * (10 + place))
        after = replace(self, invites=left, accepted=(*self.accepted, title))
        return after.adding(event)


def boot(rng: Random) -> Calendar:
    """Seven events in two weeks and three invitations to something else."""
    titles = rng.sample(tuple(TITLES), 10)
    calendar = Calendar((), scatter(rng, titles[7:]))
    for title in titles[:7]:
        event = Event(title, rng.randrange(DAYS), 15 * rng.randrange(28, 84), rng.random() < 0.4)
        calendar = calendar.adding(event)
    return calendar


def day_name(day: int) -> str:
    """A day as the app writes it: "Tue 14"."""
    return f"{WEEKDAYS[day % 7]} {FIRST + day}"


def icon_of(title: str) -> tuple[str, str]:
    """Colour and glyph of an event."""
    return TITLES.get(title) or look(title)


def day_icon(day: int) -> tuple[str, str]:
    """Colour by weekday, and the number of the day."""
    return HUES[day % 7 * 5 % 12], f"={FIRST + day}"


def minute_of(words: str) -> int | None:
    """Minutes since midnight of a time such as 9:30; None for what is no time."""
    match = re.fullmatch(r"([0-9]{1,2}):([0-9]{2})", words.strip())
    if match is None or int(match[1]) > 23 or int(match[2]) > 59:
        return None
    return 60 * int(match[1]) + int(match[2])


def title(_data: Calendar, frame: Frame) -> str:
    """The word in the app bar."""
    if frame.page == "day":
        return day_name(int(frame.item))
    return {"edit": "New event", "move": "Move to"}.get(frame.page, frame.item or NAME)


def draw(data: Calendar, stack: Stack) -> list[Element]:
    """The page on top of the stack."""
    frame = stack[-1]
    action = ("save", "check") if frame.page == "edit" else None
    out: Elements = app_bar(NAME, title(data, frame), len(stack) > 1, action)
    match frame.page:
        case "Days":
            for i, day in enumerate(range(frame.scroll, frame.scroll + VISIBLE)):
                out += _day(1 + i, day, data, f"day:{day}")
            out += scroll_bar("calendar", frame.scroll, VISIBLE, DAYS, 1)
        case "Agenda":
            out += _events(data.events, frame, VISIBLE)
        case "Invites":
            hint = (80, CELL_H + 60, WIDTH - 160, 120)
            out.append(text("calendar/hint", "Opening one accepts it", hint, "body"))
            out += tiles("calendar", (place for place, _ in data.invites))
        case "day":
            out += _events(data.on(int(frame.item)), frame, VISIBLE_ON_A_DAY)
            out += fab("calendar", 3, 8, RED)
        case "event":
            out += _event(_shown(data, frame))
        case "move":
            for i, day in enumerate(range(frame.scroll, frame.scroll + VISIBLE)):
                out += _day(1 + i, day, data, f"to:{day}")
            out += scroll_bar("calendar", frame.scroll, VISIBLE, DAYS, 1)
        case "edit":
            out += _form(data, frame)
        case _:
            raise ValueError(f"Calendar has no page {frame.page!r}")
    if len(stack) == 1:
        out += tabs("calendar", RED, frame.page, TABS)
    if frame.dialog:
        out += dialog("Delete?", frame.dialog, icon=icon_of(frame.dialog))
    return out


def _day(line: int, day: int, data: Calendar, key: str) -> Elements:
    count = len(data.on(day))
    sub = "" if not count else "1 event" if count == 1 else f"{count} events"
    return row("calendar", line, day_name(day), key=key, sub=sub, icon=day_icon(day))


def _events(events: tuple[Event, ...], frame: Frame, visible: int) -> Elements:
    out: Elements = []
    for i, event in enumerate(events[frame.scroll : frame.scroll + visible]):
        out += _row(1 + i, event, f"open:{event.title}")
    if not events:
        out.append(text("calendar/empty", "No events", (80, 300, 920, 120), "body"))
    return out + scroll_bar("calendar", frame.scroll, visible, len(events), 1)


def _row(line: int, event: Event, key: str = "") -> Elements:
    mark = "bell" if event.remind else ""
    icon = icon_of(event.title)
    return row("calendar", line, event.title, key=key, sub=event.when, mark=mark, icon=icon)


def _event(event: Event) -> Elements:
    out = _row(1, event)
    out += row("calendar", 2, day_name(event.day), sub=event.time, icon=day_icon(event.day))
    word = "Silence" if event.remind else "Remind"
    out += button("calendar", 0, 8, word, "remind", AMBER, "bell")
    out += button("calendar", 1, 8, "Move", "move", SLATE, "move")
    out += button("calendar", 3, 8, "Delete", "delete", RED, "trash")
    return out


def _form(data: Calendar, frame: Frame) -> Elements:
    out: Elements = []
    for i, name in enumerate(FIELDS):
        words, here = frame.field(name), frame.focus == name
        out += field("calendar", 1 + i, name, words, here, ("page", "clock")[i])
    problem = ""
    if data.event(frame.field("Title").strip()) is not None:
        problem = "There is an event of that title"
    elif frame.field("Time") and minute_of(frame.field("Time")) is None:
        problem = "Write the time like 18:30"
    if problem:
        box = (CELL_W, 3 * CELL_H + 20, 760, 70)
        out.append(text("calendar/error", problem, box, "error"))
    return out


def _shown(data: Calendar, frame: Frame) -> Event:
    event = data.event(frame.item)
    if event is None:
        raise ValueError(f"there is no event {frame.item!r}")
    return event


def tap(data: Calendar, stack: Stack, key: str) -> Reply[Calendar]:
    """React to a key of the page on top."""
    verb, _, name = key.partition(":")
    frame = stack[-1]
    match verb:
        case "tab":
            return Reply(data, stack if frame.page == name else (Frame(name),))
        case "day":
            return Reply(data, push(stack, "day", name))
        case "open":
            return Reply(data, push(stack, "event", name))
        case "add":
            return Reply(data, (*stack, Frame("edit", frame.item, focus="Title")))
        case "tile":
            title = dict(data.invites)[int(name)]
            return Reply(data.accepting(title), push(stack, "event", title))
        case "remind":
            event = _shown(data, frame)
            return Reply(data.adding(replace(event, remind=not event.remind)), stack)
        case "move":
            return Reply(data, push(stack, "move", frame.item))
        case "to":
            event = replace(_shown(data, frame), day=int(name))
            moved = Toast(f"Moved to {day_name(event.day)}")
            return Reply(data.adding(event), pop(stack), (moved,))
        case "delete":
            return Reply(data, ask(stack, frame.item))
        case "confirm":
            return Reply(data.without(frame.item), pop(stack))
        case _:
            assert verb == "save", key
            return _saved(data, stack)


def _saved(data: Calendar, stack: Stack) -> Reply[Calendar]:
    """Save the form; nothing where the title is taken or missing or the time is none."""
    frame = stack[-1]
    words, minute = frame.field("Title").strip(), minute_of(frame.field("Time"))
    if not words or minute is None or data.event(words) is not None:
        return Reply(data, stack)
    return Reply(data.adding(Event(words, int(frame.item), minute)), pop(stack))


def listing(data: Calendar, frame: Frame) -> Listing | None:
    """Days and events scroll."""
    match frame.page:
        case "Days":
            return Listing(tuple(f"day:{day}" for day in range(DAYS)), VISIBLE)
        case "move":
            return Listing(tuple(f"to:{day}" for day in range(DAYS)), VISIBLE)
        case "Agenda":
            return Listing(tuple(f"open:{event.title}" for event in data.events), VISIBLE)
        case "day":
            events = data.on(int(frame.item))
            return Listing(tuple(f"open:{event.title}" for event in events), VISIBLE_ON_A_DAY)
        case _:
            return None


def fields(frame: Frame) -> tuple[str, ...]:
    """The fields of a page, in the order that Enter walks through."""
    return FIELDS if frame.page == "edit" else ()


def door(frame: Frame) -> str:
    """The key that opens a page."""
    keys = {
        "edit": "add",
        "move": "move",
        "day": f"day:{frame.item}",
        "event": f"open:{frame.item}",
    }
    return keys.get(frame.page, f"tab:{frame.page}")


def pages(data: Calendar) -> tuple[Stack, ...]:
    """The tabs, every event and some days."""
    agenda, days = (Frame("Agenda"),), (Frame("Days"),)
    events = tuple(push(agenda, "event", event.title) for event in data.events)
    full = tuple(push(days, "day", str(day)) for day in range(7))
    return (days, agenda, (Frame("Invites"),), *events, *full)


APP = App(
    NAME,
    Calendar,
    Frame("Days"),
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
