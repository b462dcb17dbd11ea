"""Notes: a list of titled notes that can be read, pinned, deleted and written."""

from dataclasses import dataclass, replace
from random import Random

from services.worldmodel.phone.app import App, Listing, Reply, ask, pop, push
from services.worldmodel.phone.geometry import CELL_W, WIDTH, Element
from services.worldmodel.phone.look import AMBER, LOOK, RED
from services.worldmodel.phone.state import Frame, Part, Stack
from services.worldmodel.phone.widgets import (
    Elements,
    app_bar,
    button,
    dialog,
    fab,
    field,
    row,
    scroll_bar,
    text,
)

NAME = "Notes"
BODIES = {
    "Recipes": ("Soup with leeks", "Flat bread"),
    "Travel": ("Night train", "Window seat"),
    "Budget": ("Rent 640", "Food 210"),
    "Ideas": ("A lamp of paper", "Moss wall"),
    "Books": ("Dune", "Emma"),
    "Garden": ("Sow beans", "Cut the hedge"),
    "Movies": ("Alien", "Heat"),
    "Gifts": ("Scarf", "Puzzle"),
}
VISIBLE = 7
FIELDS = ("Title", "Text")


@dataclass(frozen=True)
class Note:
    """A note; titles are unique."""

    title: str
    body: tuple[str, ...] = ()
    pinned: bool = False


@dataclass(frozen=True)
class Notes(Part):
    """Notes in drawn order, the newest first."""

    notes: tuple[Note, ...]

    def note(self, title: str) -> Note | None:
        """The note of that title."""
        return next((note for note in self.notes if note.title == title), None)

    def having(self, title: str, pinned: bool) -> "Notes":
        """The notes with one pinned or not."""
        return Notes(
            tuple(replace(n, pinned=pinned) if n.title == title else n for n in self.notes)
        )

    def without(self, title: str) -> "Notes":
        """The notes with one deleted."""
        return Notes(tuple(n for n in self.notes if n.title != title))

    def adding(self, title: str, body: str = "") -> "Notes":
        """The notes with a new one on top."""
        return Notes((Note(title, (body,) if body else ()), *self.notes))


def boot(rng: Random) -> Notes:
    """Six of the titles in random order, a third of them pinned."""
    return Notes(
        tuple(Note(t, BODIES[t], rng.random() < 0.35) for t in rng.sample(tuple(BODIES), 6))
    )


def title(_data: Notes, frame: Frame) -> str:
    """The word in the app bar."""
    return {"list": NAME, "edit": "New note"}.get(frame.page, frame.item)


def draw(data: Notes, stack: Stack) -> list[Element]:
    """The page on top of the stack."""
    frame = stack[-1]
    action = ("save", "check") if frame.page == "edit" else None
    out: Elements = app_bar(NAME, title(data, frame), len(stack) > 1, action)
    if frame.page == "list":
        for i, note in enumerate(data.notes[frame.scroll : frame.scroll + VISIBLE]):
            out += row(
                "notes",
                1 + i,
                note.title,
                key=f"open:{note.title}",
                mark="pin" if note.pinned else "",
                tone="gold" if note.pinned else "",
            )
        out += scroll_bar("notes", frame.scroll, VISIBLE, len(data.notes), 1)
        out += fab("notes", 3, 8, LOOK[NAME][0])
    elif frame.page == "note":
        note = _shown(data, frame)
        out += row(
            "notes",
            1,
            note.title,
            mark="pin" if note.pinned else "",
            tone="gold" if note.pinned else "",
        )
        for i, line in enumerate(note.body):
            box = (80, 540 + 110 * i, WIDTH - 160, 100)
            out.append(text(f"notes/body-{i}", line, box, "body"))
        word = "Unpin" if note.pinned else "Pin"
        out += button("notes", 0, 8, word, "pin", AMBER, "pin")
        out += button("notes", 3, 8, "Delete", "delete", RED, "trash")
    elif frame.page == "edit":
        for i, name in enumerate(FIELDS):
            out += field(
                "notes",
                1 + i,
                name,
                frame.field(name),
                frame.focus == name,
                ("page", "book")[i],
            )
        if data.note(frame.field("Title")) is not None:
            box = (CELL_W, 3 * 240 + 20, 760, 70)
            out.append(text("notes/error", "There is a note of that title", box, "error"))
    else:
        raise ValueError(f"Notes has no page {frame.page!r}")
    if frame.dialog:
        out += dialog("Delete?", frame.dialog)
    return out


def _shown(data: Notes, frame: Frame) -> Note:
    note = data.note(frame.item)
    if note is None:
        raise ValueError(f"there is no note {frame.item!r}")
    return note


def tap(data: Notes, stack: Stack, key: str) -> Reply[Notes]:
    """React to a key of the page on top."""
    verb, _, name = key.partition(":")
    frame = stack[-1]
    if verb == "open":
        return Reply(data, push(stack, "note", name))
    if verb == "add":
        return Reply(data, (*stack, Frame("edit", focus="Title")))
    if verb == "pin":
        return Reply(data.having(frame.item, not _shown(data, frame).pinned), stack)
    if verb == "delete":
        return Reply(data, ask(stack, frame.item))
    if verb == "confirm":
        return Reply(data.without(frame.item), pop(stack))
    assert verb == "save", key
    words = frame.field("Title").strip()
    if not words or data.note(words) is not None:
        return Reply(data, stack)
    return Reply(data.adding(words, frame.field("Text").strip()), pop(stack))


def listing(data: Notes, frame: Frame) -> Listing | None:
    """The list of notes scrolls."""
    if frame.page != "list":
        return None
    return Listing(tuple(f"open:{note.title}" for note in data.notes), VISIBLE)


def fields(frame: Frame) -> tuple[str, ...]:
    """The fields of a page, in the order that Enter walks through."""
    return FIELDS if frame.page == "edit" else ()


def door(frame: Frame) -> str:
    """The key that opens a page."""
    return "add" if frame.page == "edit" else f"open:{frame.item}"


def pages(data: Notes) -> tuple[Stack, ...]:
    """The list, every note and the editor."""
    root = (Frame("list"),)
    inner = tuple(push(root, "note", note.title) for note in data.notes)
    return (root, *inner, (*root, Frame("edit", focus="Title")))


APP = App(NAME, Notes, Frame("list"), boot, title, draw, tap, listing, door, pages, fields=fields)
