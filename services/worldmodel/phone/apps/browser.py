"""Browser: an address bar over a made-up web, with bookmarks, tabs, downloads and a form.

The back stack of the app is the page stack of the tab in front; the other tabs keep their
address. Downloads need the permission to store files. A message that was sent stays sent.
"""

from dataclasses import dataclass, replace
from random import Random

from services.worldmodel.phone.app import App, Listing, Reply, ask, pop, push
from services.worldmodel.phone.apps.sites import ARTICLES, SUFFIX, Site, build
from services.worldmodel.phone.effects import Ask, Toast
from services.worldmodel.phone.geometry import Element
from services.worldmodel.phone.look import AMBER, GREEN, INK, LOOK, SLATE, TEAL, look
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
    text,
)

NAME = "Browser"
COLOR = LOOK[NAME][0]
TOP = 2
VISIBLE = 6
BESIDE_KEYBOARD = 4
LISTED = 7
DEEPEST = 12
MAX_TABS = 7
MAX_SENT = 10
PERMISSION = "Files"
FIELDS = {"start": ("Address",), "results": ("Address",), "page": ("Name", "Text", "Address")}
_LINE = '<path d="{}" fill="none" stroke="currentColor" stroke-width="2.6" stroke-linecap="round" '
_LINE += 'stroke-linejoin="round"/>'
GLYPHS = {
    "download": _LINE.format("M12 3v11M6.5 9.5L12 15l5.5-5.5M4 20.5h16"),
    "tabs": '<rect x="2" y="2" width="13" height="13" rx="2"/><path d="M9 17v5h13V9h-5v8z"/>',
    "link": _LINE.format("M10 14l9-9M12 4.5h7.5V12M8 5H4.5v14.5H19V16"),
    "home": '<path d="M12 2L1.5 11.5H5V22h5v-6h4v6h5V11.5h3.5z"/>',
}


@dataclass(frozen=True)
class Message:
    """What was sent through a form."""

    address: str
    name: str
    text: str


@dataclass(frozen=True)
class Browser(Part):
    """`sites` is the whole web. `tabs` are addresses ("" is the start page), `tab` an index."""

    sites: tuple[Site, ...]
    bookmarks: tuple[str, ...]
    downloads: tuple[str, ...] = ()
    sent: tuple[Message, ...] = ()
    tabs: tuple[str, ...] = ("",)
    tab: int = 0

    def facts(self) -> "Browser":
        """Where one has surfed to, and the order of bookmarks and downloads, is left out."""
        return replace(
            self,
            bookmarks=tuple(sorted(self.bookmarks)),
            downloads=tuple(sorted(self.downloads)),
            tabs=(),
            tab=0,
        )

    def site(self, address: str) -> Site | None:
        """The page of an address."""
        return next((site for site in self.sites if site.address == address), None)

    def marking(self, address: str, marked: bool) -> "Browser":
        """The browser with one address bookmarked, as the last one, or not."""
        kept = tuple(other for other in self.bookmarks if other != address)
        return replace(self, bookmarks=(*kept, address) if marked else kept)

    def loading(self, name: str) -> "Browser":
        """The browser after a download."""
        return replace(self, downloads=(*self.downloads, name))

    def sending(self, address: str, name: str, text: str) -> "Browser":
        """The browser after a form was sent."""
        return replace(self, sent=(*self.sent, Message(address, name, text))[-MAX_SENT:])

    def name(self, address: str) -> str:
        """The title of a page, as lists show it."""
        site = self.site(address)
        return site.title if site else address or "Start"


def boot(rng: Random) -> Browser:
    """The web, three to four bookmarks of its front pages, and up to one download."""
    sites = build(rng)
    fronts = [site.address for site in sites if site.title not in ARTICLES]
    files = [target[5:] for site in sites for _, target in site.links if target[:5] == "file:"]
    return Browser(
        sites,
        tuple(rng.sample(fronts, rng.randint(3, 4))),
        tuple(rng.sample(files, rng.randint(0, 1))),
    )


def title(data: Browser, frame: Frame) -> str:
    """The word in the app bar."""
    if frame.page == "page":
        return data.name(frame.item)
    return NAME if frame.page == "start" else frame.page.capitalize()


def draw(data: Browser, stack: Stack) -> list[Element]:
    """The page on top of the stack."""
    frame = stack[-1]
    typing = bool(frame.field("Address"))
    out: Elements = app_bar(
        NAME, title(data, frame), len(stack) > 1, ("go", "search") if typing else None
    )
    if frame.page in FIELDS:
        address = frame.field("Address") or ("" if frame.page == "start" else frame.item)
        out += field("browser", 1, "Address", address, frame.focus == "Address", "globe")
        out += _page(data, frame)
        if not frame.focus:
            out += _buttons(data, frame)
    elif frame.page == "tabs":
        for i, address in enumerate(data.tabs):
            here = "This tab" if i == data.tab else address or "Start page"
            icon = _icon(data, address)
            tone = "on" if i == data.tab else ""
            key, name = f"tab:{i}", data.name(address)
            out += row("browser", 1 + i, name, key=key, sub=here, tone=tone, icon=icon)
        if len(data.tabs) < MAX_TABS:
            out += fab("browser", 3, 8, COLOR)
    elif frame.page == "downloads":
        latest = data.downloads[::-1]
        for i, name in enumerate(latest[frame.scroll : frame.scroll + LISTED]):
            out += row("browser", 1 + i, name, key=f"load:{name}", sub="Downloaded")
        out += scroll_bar("browser", frame.scroll, LISTED, len(latest), 1)
        if not latest:
            out.append(text("browser/empty", "No downloads yet", (80, 300, 920, 120), "body"))
    else:
        raise ValueError(f"Browser has no page {frame.page!r}")
    if frame.dialog:
        out += dialog("Delete?", frame.dialog)
    return out


def _buttons(data: Browser, frame: Frame) -> Elements:
    """The row of buttons, which gives way to the keyboard."""
    out = button("browser", 1, 8, "Tabs", "tabs", SLATE, "tabs")
    out += button("browser", 3, 8, "Downloads", "downloads", GREEN, "download")
    if frame.page == "page":
        word = "Unmark" if frame.item in data.bookmarks else "Bookmark"
        out += button("browser", 0, 8, word, "bookmark", AMBER, "star")
        out += button("browser", 2, 8, "Start", "start", TEAL, "home")
    return out


def _icon(data: Browser, address: str) -> tuple[str, str]:
    return look(data.name(address)) if data.site(address) else (INK, "globe")


def _page(data: Browser, frame: Frame) -> Elements:
    """What is below the address bar."""
    out: Elements = []
    if frame.page == "page" and (site := _site(data, frame)) and site.form:
        for i, (name, glyph) in enumerate((("Name", "person"), ("Text", "page"))):
            value, focused = frame.field(name), frame.focus == name
            out += field("browser", 2 + i, name, value, focused, glyph)
        return out + pill("browser", 4, "Send", "send", COLOR, "check")
    entries = _entries(data, frame)
    visible = _visible(frame)
    for i, (name, sub, key) in enumerate(entries[frame.scroll : frame.scroll + visible]):
        mark = {"get": "download", "visit": "link"}.get(key.partition(":")[0], "")
        out += row("browser", TOP + i, name, key=key, sub=sub, mark=mark)
    if not entries:
        words = "No bookmarks yet" if frame.page == "start" else "Nothing found"
        out.append(text("browser/empty", words, (80, 540, 920, 120), "body"))
    return out + scroll_bar("browser", frame.scroll, visible, len(entries), TOP)


def _visible(frame: Frame) -> int:
    """How many rows there is room for, above the keyboard or the buttons."""
    return BESIDE_KEYBOARD if frame.focus else VISIBLE


def _entries(data: Browser, frame: Frame) -> list[tuple[str, str, str]]:
    """The rows of a page as (words, words below, key); lines of text have no key."""
    if frame.page == "start":
        return [(data.name(a), a, f"visit:{a}") for a in data.bookmarks]
    if frame.page == "results":
        needle = frame.item.lower()
        found = [site for site in data.sites if needle in f"{site.title} {site.address}".lower()]
        return [(site.title, site.address, f"visit:{site.address}") for site in found]
    site = _site(data, frame)
    entries = [(words, value, "") for words, value in site.lines]
    for words, target in site.links:
        loaded = "Downloaded" if target[5:] in data.downloads else "Download"
        file = target[:5] == "file:"
        key = f"get:{target[5:]}" if file else f"visit:{target}"
        entries.append((words, loaded if file else target, key))
    return entries


def _site(data: Browser, frame: Frame) -> Site:
    site = data.site(frame.item)
    if site is None:
        raise ValueError(f"there is no page {frame.item!r}")
    return site


def tap(data: Browser, stack: Stack, key: str) -> Reply[Browser]:
    """React to a key of the page on top."""
    verb, _, name = key.partition(":")
    frame = stack[-1]
    match verb:
        case "go":
            return submit(data, stack)
        case "visit":
            return Reply(data, _visit(_clean(stack), Frame("page", name)))
        case "start":
            return Reply(data, (Frame("start"),))
        case "bookmark":
            marked = frame.item not in data.bookmarks
            words = "Bookmark added" if marked else "Bookmark removed"
            return Reply(data.marking(frame.item, marked), stack, (Toast(words),))
        case "tabs":
            here = frame.item if frame.page == "page" else ""
            tabs = tuple(here if i == data.tab else a for i, a in enumerate(data.tabs))
            return Reply(replace(data, tabs=tabs), push(_clean(stack), "tabs"))
        case "tab":
            return _switch(data, stack, int(name))
        case "add":
            tabs = (*data.tabs, "")
            return Reply(replace(data, tabs=tabs, tab=len(tabs) - 1), (Frame("start"),))
        case "downloads":
            return Reply(data, push(_clean(stack), "downloads"))
        case "get":
            if name in data.downloads:
                return Reply(data, stack, (Toast("Already downloaded"),))
            return Reply(data, stack, (Ask(PERMISSION, then=f"store:{name}"),))
        case "store":
            return Reply(data.loading(name), stack, (Toast(f"{name} downloaded"),))
        case "confirm":
            kept = tuple(other for other in data.downloads if other != frame.dialog)
            return Reply(replace(data, downloads=kept), ask(stack, ""))
        case "load":
            return Reply(data, stack, (Toast("No app can show this"),))
    assert verb == "send", key
    author, words = frame.field("Name").strip(), frame.field("Text").strip()
    if not author or not words:
        return Reply(data, stack, (Toast("Fill in both fields"),))
    return Reply(data.sending(frame.item, author, words), _clean(stack), (Toast("Message sent"),))


def hold(data: Browser, stack: Stack, key: str) -> Reply[Browser]:
    """A long press on a tab closes it, on a download asks whether to delete it."""
    verb, _, name = key.partition(":")
    if verb == "load":
        return Reply(data, ask(stack, name))
    if verb == "tab" and len(data.tabs) > 1:
        at = int(name)
        if at == data.tab:
            return Reply(data, stack, (Toast("This tab is in use"),))
        tabs = (*data.tabs[:at], *data.tabs[at + 1 :])
        return Reply(replace(data, tabs=tabs, tab=data.tab - (at < data.tab)), stack)
    return Reply(data, stack)


def submit(data: Browser, stack: Stack) -> Reply[Browser]:
    """Go to what stands in the address bar; words that are no address are searched for."""
    frame = stack[-1]
    words = frame.field("Address").strip().lower()
    if frame.focus not in ("", "Address") or not words:
        return Reply(data, (*stack[:-1], replace(frame, focus="")))
    address = words.removeprefix("https://").removeprefix("www.").rstrip("/")
    found = data.site(address) or data.site(address + SUFFIX)
    page = Frame("page", found.address) if found else Frame("results", words)
    return Reply(data, _visit(_clean(stack), page))


def _clean(stack: Stack) -> Stack:
    """The stack with nothing typed into the page on top."""
    return (*stack[:-1], replace(stack[-1], fields=(), focus=""))


def _visit(stack: Stack, page: Frame) -> Stack:
    """Open a page on top; of a deep stack the oldest pages are forgotten."""
    stack = stack if (stack[-1].page, stack[-1].item) != (page.page, page.item) else pop(stack)
    return (*stack[:1], *stack[1:][2 - DEEPEST :], page)


def _switch(data: Browser, stack: Stack, at: int) -> Reply[Browser]:
    """Bring a tab to the front; choosing the one in front goes back to it."""
    if at == data.tab:
        return Reply(data, pop(stack))
    address = data.tabs[at]
    start = (Frame("start"),)
    return Reply(replace(data, tab=at), push(start, "page", address) if address else start)


def listing(data: Browser, frame: Frame) -> Listing | None:
    """Pages, bookmarks, results and downloads scroll."""
    if frame.page == "downloads":
        return Listing(tuple(f"load:{name}" for name in data.downloads[::-1]), LISTED)
    if frame.page not in FIELDS:
        return None
    keys = tuple(key or f"line:{name}" for name, _, key in _entries(data, frame))
    return Listing(keys, _visible(frame))


def fields(frame: Frame) -> tuple[str, ...]:
    """The address bar, and the form where there is one."""
    return FIELDS.get(frame.page, ())


def door(frame: Frame) -> str:
    """The key that opens a page; an address that nothing links to has to be typed."""
    return f"visit:{frame.item}" if frame.page == "page" else frame.page


def pages(data: Browser) -> tuple[Stack, ...]:
    """The start page, some sites, tabs and downloads."""
    start = (Frame("start"),)
    sites = tuple(push(start, "page", address) for address in data.bookmarks)
    return (start, *sites, push(start, "tabs"), push(start, "downloads"))


APP = App(
    NAME,
    Browser,
    Frame("start"),
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
    glyphs=GLYPHS,
)
