"""Mail: an inbox and folders, reading, starring, archiving, deleting, replying and writing.

Subjects are unique among what was received. What was sent stays sent.
"""

from dataclasses import dataclass, replace
from random import Random

from services.worldmodel.phone.app import App, Listing, Reply, ask, pop, push
from services.worldmodel.phone.apps import letters
from services.worldmodel.phone.effects import Toast
from services.worldmodel.phone.geometry import CELL_H, WIDTH, Element
from services.worldmodel.phone.look import (
    AMBER,
    BLUE,
    BROWN,
    GREEN,
    INK,
    LOOK,
    NAMES,
    RED,
    TEAL,
    look,
)
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

NAME = "Mail"
COLOR = LOOK[NAME][0]
VISIBLE = 7
FOUND = 4
MAX_SENT = 20
FOLDERS = ("Starred", "Archive", "Sent", "Trash")
ICONS = {"Starred": (AMBER, "star"), "Archive": (TEAL, "box"), "Sent": (BLUE, "outbox"),
         "Trash": (RED, "trash")}  # fmt: skip
TABS = (("Inbox", "envelope"), ("Folders", "box"))
SEND = ("send", "outbox")
ACTIONS = {"compose": SEND, "reply": SEND, "Inbox": ("search", "search")}
FIELDS = {"compose": ("To", "Subject", "Text"), "reply": ("Text",), "search": ("Search",)}
_LINE = '<path d="{}" fill="none" stroke="currentColor" stroke-width="2.8" stroke-linecap="round" '
_LINE += 'stroke-linejoin="round"/>'
GLYPHS = {
    "box": '<rect x="2" y="3" width="20" height="5" rx="1"/>'
    '<path d="M3.5 9.5h17V21h-17zM8.5 12v2.6h7V12z"/>',
    "outbox": '<path d="M2 3l21 9l-21 9l3-9z"/>',
    "reply": _LINE.format("M9 5L3 11l6 6M3 11h10c5 0 8 3 8 8"),
}


@dataclass(frozen=True)
class Letter:
    """A mail that came. `folder` is Inbox, Archive or Trash."""

    subject: str
    sender: str
    lines: tuple[str, ...]
    unread: bool = False
    starred: bool = False
    folder: str = "Inbox"

    def detail(self, word: str) -> str:
        """The value of a line. Raises KeyError when there is no such line."""
        return {first: rest for first, _, rest in (x.partition(" ") for x in self.lines)}[word]


@dataclass(frozen=True)
class Sent:
    """A mail that was sent."""

    to: str
    subject: str
    text: str


@dataclass(frozen=True)
class Mail(Part):
    """Received mails, the newest first, in all folders; `sent` has the latest last."""

    letters: tuple[Letter, ...]
    sent: tuple[Sent, ...] = ()

    def eased(self, start: "Mail", want: "Mail") -> "Mail":
        """Reading is free: a mail that was opened on the way may be read."""
        before, after = start.unread, want.unread
        free = {name for name in before if name in after}
        letters = (
            replace(x, unread=True) if x.subject in free and not x.unread else x
            for x in self.letters
        )
        return replace(self, letters=tuple(letters))

    @property
    def unread(self) -> frozenset[str]:
        """Subjects that were not read yet."""
        return frozenset(x.subject for x in self.letters if x.unread)

    def letter(self, subject: str) -> Letter | None:
        """The received mail of that subject."""
        return next((x for x in self.letters if x.subject == subject), None)

    def changing(self, subject: str, **changes: object) -> "Mail":
        """The mails with fields of one of them replaced."""
        letters = (
            replace(x, **changes) if x.subject == subject else x  # type: ignore[arg-type]
            for x in self.letters
        )
        return replace(self, letters=tuple(letters))

    def without(self, subject: str) -> "Mail":
        """The mails with one gone for good."""
        return replace(self, letters=tuple(x for x in self.letters if x.subject != subject))

    def sending(self, to: str, subject: str, text: str) -> "Mail":
        """The mails after one more was sent."""
        return replace(self, sent=(*self.sent, Sent(to, subject, text))[-MAX_SENT:])

    def within(self, folder: str) -> tuple[Letter, ...]:
        """What a folder shows."""
        if folder == "Starred":
            return tuple(x for x in self.letters if x.starred and x.folder != "Trash")
        return tuple(x for x in self.letters if x.folder == folder)

    def found(self, words: str) -> tuple[Letter, ...]:
        """Mails outside the trash whose sender or subject holds the words."""
        needle = words.strip().lower()
        return tuple(
            x
            for x in self.letters
            if needle and x.folder != "Trash" and needle in f"{x.sender} {x.subject}".lower()
        )


def boot(rng: Random) -> Mail:
    """Nine mails in the inbox, two archived and one in the trash."""
    subjects = rng.sample(tuple(letters.SUBJECTS), 12)
    places = ["Inbox"] * 9 + ["Archive"] * 2 + ["Trash"]
    return Mail(
        tuple(
            Letter(
                subject,
                rng.choice(NAMES),
                letters.lines(rng, subject),
                place == "Inbox" and rng.random() < 0.4,
                place != "Trash" and rng.random() < 0.25,
                place,
            )
            for subject, place in zip(subjects, places, strict=True)
        )
    )


def title(_data: Mail, frame: Frame) -> str:
    """The word in the app bar."""
    names = {"Inbox": "Inbox", "Folders": "Folders", "compose": "New mail", "search": "Search"}
    return names.get(frame.page, frame.item if frame.page != "sent" else "Sent")


def draw(data: Mail, stack: Stack) -> list[Element]:
    """The page on top of the stack."""
    frame = stack[-1]
    out: Elements = app_bar(NAME, title(data, frame), len(stack) > 1, ACTIONS.get(frame.page))
    if frame.page in ("Inbox", "folder", "search"):
        out += _list(data, frame)
        if frame.page == "Inbox":
            out += fab("mail", 3, 8, COLOR)
    elif frame.page == "Folders":
        for i, name in enumerate(FOLDERS):
            count = len(data.sent) if name == "Sent" else len(data.within(name))
            key, sub = f"folder:{name}", f"{count} mails" if count != 1 else "1 mail"
            out += row("mail", 1 + i, name, key=key, sub=sub, icon=ICONS[name])
    elif frame.page == "letter":
        out += _letter(data, frame)
    elif frame.page == "sent":
        mail = _sent(data, frame)
        out += row("mail", 1, mail.to, sub="To", icon=look(mail.to))
        out += row("mail", 2, mail.subject[:20] or "No subject", icon=(INK, "envelope"))
        for i in range(0, len(mail.text), 30):
            box = (80, 3 * CELL_H + 40 + 100 * (i // 30), WIDTH - 160, 90)
            out.append(text(f"mail/text-{i}", mail.text[i : i + 30], box, "body"))
    elif frame.page in ("compose", "reply"):
        glyphs = {"To": "person", "Subject": "envelope", "Text": "page"}
        for i, name in enumerate(FIELDS[frame.page]):
            value, focused = frame.field(name), frame.focus == name
            out += field("mail", 1 + i, name, value, focused, glyphs[name])
    else:
        raise ValueError(f"Mail has no page {frame.page!r}")
    if len(stack) == 1:
        out += tabs("mail", COLOR, frame.page, TABS)
    if frame.dialog:
        out += dialog("Delete?", frame.dialog)
    return out


def _list(data: Mail, frame: Frame) -> Elements:
    out: Elements = []
    if frame.page == "folder" and frame.item == "Sent":
        latest = data.sent[::-1]
        for i, mail in enumerate(latest[frame.scroll : frame.scroll + VISIBLE]):
            at = len(latest) - frame.scroll - i
            out += row("mail", 1 + i, mail.to[:20], key=f"sent:{at}", sub=mail.subject[:24])
        if not latest:
            out.append(text("mail/empty", "Nothing here", (80, 300, 920, 120), "body"))
        return out + scroll_bar("mail", frame.scroll, VISIBLE, len(latest), 1)
    shown, visible, top = _shown(data, frame), VISIBLE, 1
    if frame.page == "search":
        words = frame.field("Search")
        out += field("mail", 1, "Search", words, frame.focus == "Search", "search")
        visible, top = FOUND, 2
    if not shown and (frame.page != "search" or frame.field("Search").strip()):
        words = "Nothing found" if frame.page == "search" else "Nothing here"
        out.append(text("mail/empty", words, (80, top * CELL_H + 60, 920, 120), "body"))
    for i, letter in enumerate(shown[frame.scroll : frame.scroll + visible]):
        mark = "star" if letter.starred else "dot" if letter.unread else ""
        sub = f"{letter.sender}, new" if letter.unread else letter.sender
        tone = "gold" if letter.starred else ""
        name, icon = letter.subject, letters.LOOKS.get(letter.subject)
        key = f"letter:{name}"
        out += row("mail", top + i, name, key=key, sub=sub, mark=mark, tone=tone, icon=icon)
    return out + scroll_bar("mail", frame.scroll, visible, len(shown), top)


def _shown(data: Mail, frame: Frame) -> tuple[Letter, ...]:
    if frame.page == "search":
        return data.found(frame.field("Search"))
    if frame.page == "folder" and frame.item not in FOLDERS:
        raise ValueError(f"there is no folder {frame.item!r}")
    return data.within(frame.item or "Inbox")


def _letter(data: Mail, frame: Frame) -> Elements:
    letter = _known(data, frame)
    mark, tone = ("star", "gold") if letter.starred else ("", "")
    sub = f"From, in {letter.folder}"
    out = row("mail", 1, letter.sender, sub=sub, mark=mark, tone=tone)
    for i, line in enumerate(letter.lines):
        box = (80, 2 * CELL_H + 60 + 120 * i, WIDTH - 160, 100)
        out.append(text(f"mail/line-{i}", line, box, "body"))
    out += button("mail", 0, 7, "Unstar" if letter.starred else "Star", "star", AMBER, "star")
    if letter.folder == "Inbox":
        out += button("mail", 1, 7, "Archive", "archive", TEAL, "box")
    else:
        out += button("mail", 1, 7, "To inbox", "inbox", BROWN, "envelope")
    out += button("mail", 2, 7, "Unread", "unread", BLUE, "dot")
    out += button("mail", 3, 7, "Delete", "delete", RED, "trash")
    return out + pill("mail", 8, "Reply", "reply", GREEN, "reply")


def _known(data: Mail, frame: Frame) -> Letter:
    letter = data.letter(frame.item)
    if letter is None:
        raise ValueError(f"there is no mail {frame.item!r}")
    return letter


def _sent(data: Mail, frame: Frame) -> Sent:
    at = int(frame.item) if frame.item in map(str, range(1, len(data.sent) + 1)) else 0
    if not at:
        raise ValueError(f"there is no sent mail {frame.item!r}")
    return data.sent[at - 1]


def tap(data: Mail, stack: Stack, key: str) -> Reply[Mail]:
    """React to a key of the page on top."""
    verb, _, name = key.partition(":")
    frame = stack[-1]
    match verb:
        case "tab":
            return Reply(data, stack if frame.page == name else (Frame(name),))
        case "search":
            return Reply(data, (*stack, Frame("search", focus="Search")))
        case "add":
            return Reply(data, (*stack, Frame("compose", focus="To")))
        case "folder" | "sent":
            return Reply(data, push(stack, verb, name))
        case "letter":
            return Reply(data.changing(name, unread=False), push(stack, "letter", name))
        case "star":
            starred = not _known(data, frame).starred
            return Reply(data.changing(frame.item, starred=starred), stack)
        case "archive":
            after = data.changing(frame.item, folder="Archive")
            return Reply(after, pop(stack), (Toast("Archived"),))
        case "inbox":
            after = data.changing(frame.item, folder="Inbox")
            return Reply(after, pop(stack), (Toast("Moved to inbox"),))
        case "unread":
            return Reply(data.changing(frame.item, unread=True), pop(stack))
        case "delete":
            if _known(data, frame).folder == "Trash":
                return Reply(data, ask(stack, frame.item))
            after = data.changing(frame.item, folder="Trash")
            return Reply(after, pop(stack), (Toast("Moved to trash"),))
        case "confirm":
            return Reply(data.without(frame.item), pop(stack), (Toast("Deleted"),))
        case "reply":
            return Reply(data, (*stack, Frame("reply", frame.item, focus="Text")))
    assert verb == "send", key
    return _send(data, stack)


def _send(data: Mail, stack: Stack) -> Reply[Mail]:
    frame = stack[-1]
    words = frame.field("Text").strip()
    if frame.page == "reply":
        to, subject = _known(data, frame).sender, f"Re: {frame.item}"
    else:
        to, subject = frame.field("To").strip(), frame.field("Subject").strip()
    if not to or not (words or (subject and frame.page == "compose")):
        return Reply(data, stack, (Toast("Write something first" if to else "To whom?"),))
    return Reply(data.sending(to, subject, words), pop(stack), (Toast("Sent"),))


def listing(data: Mail, frame: Frame) -> Listing | None:
    """Lists of mails scroll."""
    if frame.page == "folder" and frame.item == "Sent":
        return Listing(tuple(f"sent:{at}" for at in range(len(data.sent), 0, -1)), VISIBLE)
    if frame.page in ("Inbox", "folder", "search"):
        keys = tuple(f"letter:{letter.subject}" for letter in _shown(data, frame))
        return Listing(keys, FOUND if frame.page == "search" else VISIBLE)
    return None


def fields(frame: Frame) -> tuple[str, ...]:
    """The fields of a page, in the order that Enter walks through."""
    return FIELDS.get(frame.page, ())


def door(frame: Frame) -> str:
    """The key that opens a page."""
    if frame.page in ("Inbox", "Folders"):
        return f"tab:{frame.page}"
    names = {"compose": "add", "reply": "reply", "search": "search"}
    return names.get(frame.page, f"{frame.page}:{frame.item}")


def pages(data: Mail) -> tuple[Stack, ...]:
    """Both tabs, the folders, mails that were read, search and the editor."""
    inbox, folders = (Frame("Inbox"),), (Frame("Folders"),)
    read = tuple(x for x in data.within("Inbox") if not x.unread)
    return (
        inbox,
        folders,
        *(push(folders, "folder", name) for name in FOLDERS),
        *(push(inbox, "letter", letter.subject) for letter in read),
        (*inbox, Frame("compose", focus="To")),
        (*inbox, Frame("search", focus="Search")),
    )


APP = App(
    NAME,
    Mail,
    Frame("Inbox"),
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
