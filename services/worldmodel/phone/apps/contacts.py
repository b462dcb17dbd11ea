"""Contacts: people with a number, who can be starred, called, deleted and added."""

from dataclasses import dataclass, replace
from random import Random

from services.worldmodel.phone.app import App, Listing, Reply, ask, pop, push
from services.worldmodel.phone.geometry import Element
from services.worldmodel.phone.look import AMBER, GREEN, LOOK, NAMES, RED
from services.worldmodel.phone.state import Frame, Part, Stack
from services.worldmodel.phone.widgets import (
    Elements,
    app_bar,
    button,
    dialog,
    fab,
    field,
    pill,
    row,
    scroll_bar,
    tabs,
    text,
)

NAME = "Contacts"
VISIBLE = 7
LOG_LENGTH = 20
FIELDS = ("Name", "Phone")
TABS = (("People", "person"), ("Calls", "phone"))


@dataclass(frozen=True)
class Contact:
    """A person; names are unique."""

    name: str
    number: str
    starred: bool = False


@dataclass(frozen=True)
class Contacts(Part):
    """People sorted by name; `calls` holds the names that were called, the latest last."""

    people: tuple[Contact, ...]
    calls: tuple[str, ...] = ()

    def person(self, name: str) -> Contact | None:
        """The contact of that name."""
        return next((person for person in self.people if person.name == name), None)

    def having(self, name: str, starred: bool) -> "Contacts":
        """The contacts with one starred or not."""
        return replace(
            self,
            people=tuple(replace(p, starred=starred) if p.name == name else p for p in self.people),
        )

    def without(self, name: str) -> "Contacts":
        """The contacts with one deleted."""
        return replace(self, people=tuple(p for p in self.people if p.name != name))

    def adding(self, name: str, number: str = "") -> "Contacts":
        """The contacts with a new one in its place in the alphabet."""
        people = (*self.people, Contact(name, number))
        return replace(self, people=tuple(sorted(people, key=lambda p: (p.name.lower(), p.name))))

    def calling(self, name: str) -> "Contacts":
        """The contacts after a call; the log keeps the latest entries."""
        return replace(self, calls=(*self.calls, name)[-LOG_LENGTH:])


def boot(rng: Random) -> Contacts:
    """Ten of the names, a third of them starred, and a short call log."""
    names = sorted(rng.sample(NAMES, 10))
    people = tuple(
        Contact(name, f"555-{rng.randrange(10000):04d}", rng.random() < 0.35) for name in names
    )
    return Contacts(people, tuple(rng.choices(names, k=rng.randrange(3))))


def title(_data: Contacts, frame: Frame) -> str:
    """The word in the app bar."""
    return {"People": NAME, "Calls": "Calls", "edit": "New contact"}.get(frame.page, frame.item)


def draw(data: Contacts, stack: Stack) -> list[Element]:
    """The page on top of the stack."""
    frame = stack[-1]
    action = ("save", "check") if frame.page == "edit" else None
    out: Elements = app_bar(NAME, title(data, frame), len(stack) > 1, action)
    color = LOOK[NAME][0]
    if frame.page == "People":
        for i, person in enumerate(data.people[frame.scroll : frame.scroll + VISIBLE]):
            out += row(
                "contacts",
                1 + i,
                person.name,
                key=f"open:{person.name}",
                mark="star" if person.starred else "",
                tone="gold" if person.starred else "",
            )
        out += scroll_bar("contacts", frame.scroll, VISIBLE, len(data.people), 1)
        out += fab("contacts", 3, 8, color)
    elif frame.page == "Calls":
        latest = data.calls[::-1][frame.scroll : frame.scroll + VISIBLE]
        for i, name in enumerate(latest):
            out += row("contacts", 1 + i, name, sub="Outgoing call")
        if not data.calls:
            out.append(text("contacts/empty", "No calls yet", (80, 300, 920, 120), "body"))
        out += scroll_bar("contacts", frame.scroll, VISIBLE, len(data.calls), 1)
    elif frame.page == "contact":
        person = _shown(data, frame)
        out += row(
            "contacts",
            1,
            person.name,
            mark="star" if person.starred else "",
            tone="gold" if person.starred else "",
        )
        out += row("contacts", 2, person.number or "No number", icon=("#5F6368", "phone"))
        word = "Unstar" if person.starred else "Star"
        out += button("contacts", 0, 8, word, "star", AMBER, "star")
        out += button("contacts", 1, 8, "Call", "call", GREEN, "phone")
        out += button("contacts", 3, 8, "Delete", "delete", RED, "trash")
    elif frame.page == "call":
        person = _shown(data, frame)
        out += row("contacts", 2, person.name, sub="Calling")
        out += pill("contacts", 8, "End", "end", RED, "hangup")
    elif frame.page == "edit":
        for i, name in enumerate(FIELDS):
            out += field(
                "contacts",
                1 + i,
                name,
                frame.field(name),
                frame.focus == name,
                ("person", "phone")[i],
            )
        if data.person(frame.field("Name")) is not None:
            box = (270, 3 * 240 + 20, 760, 70)
            out.append(text("contacts/error", "There is a contact of that name", box, "error"))
    else:
        raise ValueError(f"Contacts has no page {frame.page!r}")
    if len(stack) == 1:
        out += tabs("contacts", color, frame.page, TABS)
    if frame.dialog:
        out += dialog("Delete?", frame.dialog)
    return out


def _shown(data: Contacts, frame: Frame) -> Contact:
    person = data.person(frame.item)
    if person is None:
        raise ValueError(f"there is no contact {frame.item!r}")
    return person


def tap(data: Contacts, stack: Stack, key: str) -> Reply[Contacts]:
    """React to a key of the page on top."""
    verb, _, name = key.partition(":")
    frame = stack[-1]
    if verb == "tab":
        return Reply(data, stack if frame.page == name else (Frame(name),))
    if verb == "open":
        return Reply(data, push(stack, "contact", name))
    if verb == "add":
        return Reply(data, (*stack, Frame("edit", focus="Name")))
    if verb == "star":
        return Reply(data.having(frame.item, not _shown(data, frame).starred), stack)
    if verb == "call":
        return Reply(data.calling(frame.item), push(stack, "call", frame.item))
    if verb == "end":
        return Reply(data, pop(stack))
    if verb == "delete":
        return Reply(data, ask(stack, frame.item))
    if verb == "confirm":
        return Reply(data.without(frame.item), pop(stack))
    assert verb == "save", key
    words = frame.field("Name").strip()
    if not words or data.person(words) is not None:
        return Reply(data, stack)
    return Reply(data.adding(words, frame.field("Phone").strip()), pop(stack))


def listing(data: Contacts, frame: Frame) -> Listing | None:
    """People and calls scroll."""
    if frame.page == "People":
        return Listing(tuple(f"open:{person.name}" for person in data.people), VISIBLE)
    if frame.page == "Calls":
        return Listing(tuple(f"call:{name}" for name in data.calls[::-1]), VISIBLE)
    return None


def fields(frame: Frame) -> tuple[str, ...]:
    """The fields of a page, in the order that Enter walks through."""
    return FIELDS if frame.page == "edit" else ()


def door(frame: Frame) -> str:
    """The key that opens a page."""
    if frame.page in ("People", "Calls"):
        return f"tab:{frame.page}"
    return {"edit": "add", "call": "call"}.get(frame.page, f"open:{frame.item}")


def pages(data: Contacts) -> tuple[Stack, ...]:
    """Both tabs, every contact and the editor."""
    root = (Frame("People"),)
    inner = tuple(push(root, "contact", person.name) for person in data.people)
    return (root, (Frame("Calls"),), *inner, (*root, Frame("edit", focus="Name")))


APP = App(
    NAME, Contacts, Frame("People"), boot, title, draw, tap, listing, door, pages, fields=fields
)
