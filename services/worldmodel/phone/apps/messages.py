"""Messages: conversations by person, writing and replying, and gifts that open only once.

Pages and reactions; the data is in `threads`. A message may arrive while one waits.
"""

from dataclasses import replace
from textwrap import wrap

from services.worldmodel.phone.app import App, Listing, Reply, ask, push
from services.worldmodel.phone.apps.threads import Message, Messages, Thread, boot
from services.worldmodel.phone.effects import Effect, Notify
from services.worldmodel.phone.geometry import (
    CELL_H,
    CELL_W,
    WIDTH,
    Element,
    cell,
    cell_box,
    centre,
)
from services.worldmodel.phone.look import LOOK
from services.worldmodel.phone.state import Frame, Stack
from services.worldmodel.phone.tiles import tiles
from services.worldmodel.phone.widgets import (
    Elements,
    app_bar,
    dialog,
    fab,
    field,
    row,
    scroll_bar,
    text,
)

NAME = "Messages"
VISIBLE = 7
BUBBLES = 8
BUBBLES_TYPING = 4
LINE = 24
BUBBLE_LINE = 21
FIELD_LINE = 18
FIELDS = ("To", "Text")
GLYPHS = {
    "send": '<path d="M2.5 3L22 12L2.5 21l3-9z"/>',
    "hush": '<path d="M12 2.5a6.5 6.5 0 0 1 6.5 6.5V15l2.5 3H3l2.5-3V9A6.5 6.5 0 0 1 12 2.5z"/>'
    '<path d="M2.5 2.5l19 19" stroke="currentColor" stroke-width="2.6"/>',
}


def title(_data: Messages, frame: Frame) -> str:
    """The word in the app bar."""
    return {"list": NAME, "new": "New message", "gifts": "Gifts"}.get(frame.page, frame.item)


def draw(data: Messages, stack: Stack) -> list[Element]:
    """The page on top of the stack."""
    frame = stack[-1]
    out: Elements = app_bar(NAME, title(data, frame), len(stack) > 1, _action(data, frame))
    match frame.page:
        case "list":
            for i, thread in enumerate(data.threads[frame.scroll : frame.scroll + VISIBLE]):
                out += _entry(1 + i, thread)
            if not data.threads:
                out.append(text("messages/empty", "No messages", (80, 300, 920, 120), "body"))
            out += scroll_bar("messages", frame.scroll, VISIBLE, len(data.threads), 1)
            out += fab("messages", 3, 8, LOOK[NAME][0])
        case "thread":
            out += _conversation(_shown(data, frame), frame)
        case "new":
            for i, name in enumerate(FIELDS):
                words, here = frame.field(name), frame.focus == name
                out += field("messages", 1 + i, name, words, here, ("person", "page")[i])
        case "gifts":
            hint = (80, CELL_H + 60, WIDTH - 160, 120)
            out.append(text("messages/hint", "Each opens only once", hint, "body"))
            out += tiles("messages", (place for place, _ in data.gifts))
        case "gift":
            out += row("messages", 2, frame.item, sub="Gift opened")
        case _:
            raise ValueError(f"Messages has no page {frame.page!r}")
    if frame.dialog:
        out += dialog("Delete?", frame.dialog)
    return out


def _action(data: Messages, frame: Frame) -> tuple[str, str] | None:
    """The button in the app bar: gifts, send, or mute with a bell while muted."""
    if frame.page == "thread":
        return ("mute", "bell" if _shown(data, frame).muted else "hush")
    return {"list": ("gifts", "gift"), "new": ("send", "send")}.get(frame.page)


def _entry(line: int, thread: Thread) -> Elements:
    latest = thread.messages[-1].text if thread.messages else ""
    mark = "dot" if thread.unread else "hush" if thread.muted else ""
    return row(
        "messages",
        line,
        thread.name,
        key=f"open:{thread.name}",
        sub=shortened(latest, 17 if mark else LINE),
        mark=mark,
        tone="gold" if thread.unread else "",
    )


def shortened(words: str, limit: int) -> str:
    """The words, or as many letters of them as fit."""
    return words if len(words) <= limit else words[: limit - 1].rstrip() + "…"


def _shown(data: Messages, frame: Frame) -> Thread:
    thread = data.thread(frame.item)
    if thread is None:
        raise ValueError(f"there is no conversation with {frame.item!r}")
    return thread


def _conversation(thread: Thread, frame: Frame) -> Elements:
    """Bubbles from row 1 on; while one types, the latest above field and keyboard."""
    typing = frame.focus != ""
    first = max(0, len(thread.messages) - BUBBLES_TYPING) if typing else frame.scroll
    shown = thread.messages[first : first + (BUBBLES_TYPING if typing else BUBBLES)]
    out: Elements = []
    for i, message in enumerate(shown):
        out += _bubble(1 + i, first + i, message)
    if not typing:
        out += scroll_bar("messages", frame.scroll, BUBBLES, len(thread.messages), 1)
    return out + _reply(5 if typing else 9, frame)


def _bubble(line: int, number: int, message: Message) -> Elements:
    x = WIDTH - 800 if message.mine else 40
    box = (x, line * CELL_H + 12, 760, CELL_H - 24)
    id = f"messages/bubble-{number}"
    tone = "mine" if message.mine else ""
    out = [Element(id, "card", message.text, box, centre(box), tone=tone)]
    lines = wrap(message.text, BUBBLE_LINE)
    top = box[1] + (box[3] - 68 * len(lines)) // 2
    for i, words in enumerate(lines):
        at = (x + 44, top + 68 * i, 680, 68)
        out.append(text(f"{id}-{i}", words, at, "body"))
    return out


def _reply(line: int, frame: Frame) -> Elements:
    """The reply field with its button at the right."""
    top = line * CELL_H
    words, here = frame.field("Reply"), frame.focus == "Reply"
    tone = "focused" if here else ""
    shown = words if len(words) <= FIELD_LINE else "…" + words[-FIELD_LINE:]
    return [
        Element(
            "messages/reply-field",
            "field",
            words,
            cell_box(0, line, 3),
            cell(0, line),
            True,
            None,
            here,
            key="field:Reply",
            tone=tone,
        ),
        text(
            "messages/reply-field:box", shown, (30, top + 45, 3 * CELL_W - 50, 150), "field" + tone
        ),
        text("messages/reply-field:label", "Reply", (70, top + 20, 170, 52), "legend" + tone),
        Element(
            "messages/send",
            "button",
            "Send",
            cell_box(3, line),
            cell(3, line),
            True,
            key="send",
            tone="cell",
        ),
        Element(
            "messages/send:icon",
            "glyph",
            "",
            (3 * CELL_W + 55, top + 40, 160, 160),
            cell(3, line),
            color=LOOK[NAME][0],
            glyph="send",
        ),
    ]


def tap(data: Messages, stack: Stack, key: str) -> Reply[Messages]:
    """React to a key of the page on top."""
    verb, _, name = key.partition(":")
    frame = stack[-1]
    match verb:
        case "open":
            return _opened(data, stack, name)
        case "add":
            return Reply(data, (*stack, Frame("new", focus="To")))
        case "gifts":
            return Reply(data, push(stack, "gifts"))
        case "tile":
            giver = dict(data.gifts)[int(name)]
            return Reply(data.opening(giver), push(stack, "gift", giver))
        case "mute":
            thread = _shown(data, frame)
            return Reply(data.having(replace(thread, muted=not thread.muted)), stack)
        case "confirm":
            return Reply(data.without(frame.dialog), ask(stack, ""))
        case _:
            assert verb == "send", key
            return _sent(data, stack)


def _opened(data: Messages, stack: Stack, name: str) -> Reply[Messages]:
    """A conversation is shown at its end and counts as read."""
    thread = data.thread(name)
    assert thread is not None
    last = max(0, len(thread.messages) - BUBBLES)
    page = Frame("thread", name, scroll=last)
    return Reply(data.having(replace(thread, unread=False)), (*stack, page))


def _sent(data: Messages, stack: Stack) -> Reply[Messages]:
    """Send what is written in the reply field or in the form; nothing where it is not whole."""
    frame = stack[-1]
    if frame.page == "thread":
        name, words = frame.item, frame.field("Reply").strip()
    else:
        name, words = (frame.field(field).strip() for field in FIELDS)
    if not name or not words:
        return Reply(data, stack)
    after = data.sending(name, words)
    thread = after.thread(name)
    assert thread is not None
    page = Frame("thread", name, scroll=max(0, len(thread.messages) - BUBBLES))
    return Reply(after, (*stack[:-1], page))


def submit(data: Messages, stack: Stack) -> Reply[Messages]:
    """Enter sends a reply; in the form it puts the keyboard away."""
    if stack[-1].page == "thread":
        return _sent(data, stack)
    return Reply(data, (*stack[:-1], replace(stack[-1], focus="")))


def hold(data: Messages, stack: Stack, key: str) -> Reply[Messages]:
    """A long press on a conversation asks whether to delete it."""
    verb, _, name = key.partition(":")
    return Reply(data, ask(stack, name) if verb == "open" else stack)


def wait(data: Messages, seconds: int) -> tuple[Messages, tuple[Effect, ...]]:
    """Messages arrive, each with a notification unless its conversation is muted."""
    if not data.pending:
        return data, ()
    effects: list[Effect] = []
    left = []
    for item in data.pending:
        if item.left_s > seconds:
            left.append(replace(item, left_s=item.left_s - seconds))
            continue
        data = data.adding(item.name, Message(item.text, late=True))
        thread = data.thread(item.name)
        if thread is not None and not thread.muted:
            effects.append(Notify(item.name, item.text, "thread", item.name))
    return replace(data, pending=tuple(left)), tuple(effects)


def link(data: Messages, page: str, item: str) -> Reply[Messages]:
    """A notification opens its conversation; `new` opens the form to write to `item`."""
    root = (Frame("list"),)
    if page == "thread" and data.thread(item) is not None:
        return _opened(data, root, item)
    if page == "new":
        written = (("To", item),) if item else ()
        return Reply(data, (*root, Frame("new", fields=written, focus="Text" if item else "To")))
    return Reply(data, root)


def listing(data: Messages, frame: Frame) -> Listing | None:
    """The conversations scroll, and so does one that is long."""
    if frame.page == "list":
        return Listing(tuple(f"open:{thread.name}" for thread in data.threads), VISIBLE)
    thread = data.thread(frame.item) if frame.page == "thread" else None
    if thread is None:
        return None
    return Listing(tuple(f"bubble:{i}" for i in range(len(thread.messages))), BUBBLES)


def fields(frame: Frame) -> tuple[str, ...]:
    """The fields of a page, in the order that Enter walks through."""
    return {"new": FIELDS, "thread": ("Reply",)}.get(frame.page, ())


def door(frame: Frame) -> str:
    """The key that opens a page."""
    return {"new": "add", "gifts": "gifts"}.get(frame.page, f"open:{frame.item}")


def pages(data: Messages) -> tuple[Stack, ...]:
    """The list, every conversation that was read, the form and the gifts."""
    root = (Frame("list"),)
    inner = tuple(
        (*root, Frame("thread", t.name, scroll=max(0, len(t.messages) - BUBBLES)))
        for t in data.threads
        if not t.unread
    )
    return (root, *inner, (*root, Frame("new", focus="To")), push(root, "gifts"))


APP = App(
    NAME,
    Messages,
    Frame("list"),
    boot,
    title,
    draw,
    tap,
    listing,
    door,
    pages,
    hold=hold,
    fields=fields,
    submit=submit,
    wait=wait,
    link=link,
    glyphs=GLYPHS,
)
