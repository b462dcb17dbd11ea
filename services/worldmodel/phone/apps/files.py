"""Files: folders of files that can be renamed, moved, binned and restored, and sealed files.

A sealed file has three buttons without a word. Each does something else, at once and for
good: `unsealed` keeps what became of it.
"""

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
    field,
    row,
    scroll_bar,
    tabs,
    text,
)

NAME = "Files"
FOLDERS = {
    "Documents": (BLUE, "page"),
    "Downloads": (GREEN, "down"),
    "Shared": (VIOLET, "person"),
    "Private": (RED, "shield"),
    "Bin": (SLATE, "trash"),
}
BIN = "Bin"
WORDS: dict[str, tuple[str, str]] = {
    "Rent": (BROWN, "case"),
    "Report": (INDIGO, "bars"),
    "Invoice": (GREEN, "coin"),
    "Map": (TEAL, "target"),
    "Menu": (ORANGE, "fork"),
    "Ticket": (PINK, "plane"),
    "Letter": (AMBER, "page"),
    "Plan": (CYAN, "bulb"),
    "Manual": (SLATE, "gear"),
    "Thesis": (VIOLET, "cap"),
    "Recipe": (RED, "bowl"),
    "Novel": (LIME, "book"),
    "Poem": (PINK, "flower"),
    "Tax": (BROWN, "percent"),
}
FATES = {"Keep": (GREEN, "check"), "Shred": (RED, "close"), "Share": (BLUE, "person")}
DONE = {"Keep": "Kept", "Shred": "Shredded", "Share": "Shared"}
VISIBLE = 8
TABS = (("Folders", "folder"), ("Sealed", "lock"))
GLYPHS = {
    "lock": '<path d="M5 10h14v11H5z"/><path d="M8 10V7a4 4 0 0 1 8 0v3" fill="none" '
    'stroke="currentColor" stroke-width="2.6"/>',
    "sort": '<path d="M7 4v15M3 15l4 5l4-5M14 6h8M14 12h6M14 18h4" fill="none" '
    'stroke="currentColor" stroke-width="2.8" stroke-linecap="round"/>',
    "pen": '<path d="M3 21l1.5-5.5L16 4l4 4L8.5 19.5z"/>',
    "move": '<path d="M3 12h17M13 5l7 7l-7 7" fill="none" stroke="currentColor" '
    'stroke-width="3.2" stroke-linecap="round" stroke-linejoin="round"/>',
    "undo": '<path d="M8 4L3 9l5 5M4 9h10a6 6 0 0 1 0 12H9" fill="none" stroke="currentColor" '
    'stroke-width="3" stroke-linecap="round" stroke-linejoin="round"/>',
}


@dataclass(frozen=True)
class File:
    """A file; names are unique. `origin` is the folder that a binned file came from."""

    name: str
    folder: str
    megabytes: int
    origin: str = ""

    @property
    def size(self) -> str:
        """As drawn."""
        return f"{self.megabytes} MB"


@dataclass(frozen=True)
class Sealed:
    """A sealed file and which fate lies behind which button."""

    name: str
    fates: Tiles


@dataclass(frozen=True)
class Files(Part):
    """Files in the order of their names; sealed ones; (name, fate) of those no longer sealed."""

    files: tuple[File, ...]
    sealed: tuple[Sealed, ...]
    unsealed: tuple[tuple[str, str], ...] = ()
    by_size: bool = False

    def eased(self, start: "Files", want: "Files") -> "Files":
        """Sorting is harmless where the goal does not speak of it."""
        return replace(self, by_size=want.by_size) if start.by_size == want.by_size else self

    def file(self, name: str) -> File | None:
        """The file of that name."""
        return next((file for file in self.files if file.name == name), None)

    def inside(self, folder: str) -> tuple[File, ...]:
        """A folder's files, by name or the largest first."""
        found = tuple(file for file in self.files if file.folder == folder)
        if self.by_size:
            return tuple(sorted(found, key=lambda file: (-file.megabytes, file.name)))
        return found

    def adding(self, file: File) -> "Files":
        """The data with a file more."""
        files = sorted((*self.files, file), key=lambda f: (f.name.lower(), f.name))
        return replace(self, files=tuple(files))

    def without(self, name: str) -> "Files":
        """The data with one file gone."""
        return replace(self, files=tuple(f for f in self.files if f.name != name))

    def moving(self, name: str, folder: str) -> "Files":
        """The data with a file in another folder."""
        file = self._found(name)
        origin = file.folder if folder == BIN else ""
        return self.without(name).adding(replace(file, folder=folder, origin=origin))

    def renaming(self, name: str, words: str) -> "Files":
        """The data with a file under another name."""
        return self.without(name).adding(replace(self._found(name), name=words))

    def unsealing(self, name: str, fate: str) -> "Files":
        """The data after a button of a sealed file was pressed."""
        left = tuple(item for item in self.sealed if item.name != name)
        return replace(self, sealed=left, unsealed=(*self.unsealed, (name, fate)))

    def _found(self, name: str) -> File:
        file = self.file(name)
        assert file is not None
        return file


def boot(rng: Random) -> Files:
    """Ten files in the four folders or the bin, and three sealed ones."""
    names = rng.sample(tuple(WORDS), 13)
    sizes = rng.sample(range(2, 99), 10)
    data = Files((), tuple(Sealed(n, scatter(rng, tuple(FATES))) for n in sorted(names[10:])))
    for name, size in zip(names[:10], sizes, strict=True):
        folder = rng.choices(tuple(FOLDERS), (3, 3, 2, 2, 1))[0]
        origin = "Documents" if folder == BIN else ""
        data = data.adding(File(name, folder, size, origin))
    return data


def icon_of(name: str) -> tuple[str, str]:
    """Colour and glyph of a file."""
    return WORDS.get(name) or look(name)


def title(_data: Files, frame: Frame) -> str:
    """The word in the app bar."""
    return {"rename": "Rename", "move": "Move to"}.get(frame.page, frame.item or NAME)


def draw(data: Files, stack: Stack) -> list[Element]:
    """The page on top of the stack."""
    frame = stack[-1]
    action = {"rename": ("save", "check"), "folder": ("sort", "sort")}.get(frame.page)
    out: Elements = app_bar(NAME, title(data, frame), len(stack) > 1, action)
    match frame.page:
        case "Folders":
            for i, (name, icon) in enumerate(FOLDERS.items()):
                count = len(data.inside(name))
                sub = f"{count} file" if count == 1 else f"{count} files"
                out += row("files", 1 + i, name, key=f"folder:{name}", sub=sub, icon=icon)
        case "folder":
            out += _folder(data, frame)
        case "file":
            out += _file(_shown(data, frame))
        case "move":
            here = _shown(data, frame).folder
            for i, name in enumerate(_targets(here)):
                out += row("files", 1 + i, name, key=f"to:{name}", icon=FOLDERS[name])
        case "rename":
            out += _form(data, frame)
        case "Sealed":
            for i, item in enumerate(data.sealed):
                out += row(
                    "files",
                    1 + i,
                    item.name,
                    key=f"seal:{item.name}",
                    sub="Sealed",
                    icon=icon_of(item.name),
                )
            if not data.sealed:
                out.append(text("files/empty", "Nothing is sealed", (80, 300, 920, 120), "body"))
        case "seal":
            out += row("files", 1, frame.item, sub="Sealed", icon=icon_of(frame.item))
            out += tiles("files", (place for place, _ in _sealed(data, frame).fates))
        case "fate":
            fate = dict(data.unsealed).get(frame.item, "")
            if fate not in FATES:
                raise ValueError(f"{frame.item!r} is sealed")
            out += row("files", 2, frame.item, icon=icon_of(frame.item))
            out += row("files", 3, DONE[fate], icon=FATES[fate])
        case _:
            raise ValueError(f"Files has no page {frame.page!r}")
    if len(stack) == 1:
        out += tabs("files", BLUE, frame.page, TABS)
    if frame.dialog:
        out += dialog("Delete?", frame.dialog, icon=icon_of(frame.dialog))
    return out


def _targets(folder: str) -> tuple[str, ...]:
    return tuple(name for name in FOLDERS if name not in (folder, BIN))


def _folder(data: Files, frame: Frame) -> Elements:
    files = data.inside(frame.item)
    out: Elements = []
    for i, file in enumerate(files[frame.scroll : frame.scroll + VISIBLE]):
        out += row(
            "files",
            1 + i,
            file.name,
            key=f"open:{file.name}",
            sub=file.size,
            icon=icon_of(file.name),
        )
    if not files:
        out.append(text("files/empty", "Empty", (80, 300, 920, 120), "body"))
    return out + scroll_bar("files", frame.scroll, VISIBLE, len(files), 1)


def _file(file: File) -> Elements:
    out = row("files", 1, file.name, sub=file.size, icon=icon_of(file.name))
    out += row("files", 2, file.folder, icon=FOLDERS[file.folder])
    if file.folder == BIN:
        out += button("files", 0, 8, "Restore", "restore", GREEN, "undo")
    else:
        out += button("files", 0, 8, "Rename", "rename", AMBER, "pen")
        out += button("files", 1, 8, "Move", "move", BLUE, "move")
    out += button("files", 3, 8, "Delete", "delete", RED, "trash")
    return out


def _form(data: Files, frame: Frame) -> Elements:
    words = frame.field("Name")
    out = field("files", 1, "Name", words, frame.focus == "Name", "page")
    if data.file(words.strip()) is not None:
        box = (CELL_W, 2 * CELL_H + 20, WIDTH - CELL_W - 40, 70)
        out.append(text("files/error", "There is a file of that name", box, "error"))
    return out


def _shown(data: Files, frame: Frame) -> File:
    file = data.file(frame.item)
    if file is None or file.folder not in FOLDERS:
        raise ValueError(f"there is no file {frame.item!r}")
    return file


def _sealed(data: Files, frame: Frame) -> Sealed:
    found = next((item for item in data.sealed if item.name == frame.item), None)
    if found is None:
        raise ValueError(f"there is no sealed file {frame.item!r}")
    return found


def tap(data: Files, stack: Stack, key: str) -> Reply[Files]:
    """React to a key of the page on top."""
    verb, _, name = key.partition(":")
    frame = stack[-1]
    match verb:
        case "tab":
            return Reply(data, stack if frame.page == name else (Frame(name),))
        case "folder":
            return Reply(data, push(stack, "folder", name))
        case "open":
            return Reply(data, push(stack, "file", name))
        case "seal":
            return Reply(data, push(stack, "seal", name))
        case "sort":
            return Reply(replace(data, by_size=not data.by_size), stack)
        case "tile":
            fate = dict(_sealed(data, frame).fates)[int(name)]
            page = Frame("fate", frame.item)
            return Reply(data.unsealing(frame.item, fate), (*stack[:-1], page))
        case "rename":
            return Reply(data, (*stack, Frame("rename", frame.item, focus="Name")))
        case "move":
            return Reply(data, push(stack, "move", frame.item))
        case "to" | "restore":
            folder = name or _shown(data, frame).origin
            left = pop(pop(stack)) if verb == "to" else pop(stack)
            toast = Toast(f"Moved to {folder}")
            return Reply(data.moving(frame.item, folder), left, (toast,))
        case "delete":
            return _delete(data, stack)
        case "confirm":
            return Reply(data.without(frame.item), pop(stack))
        case _:
            assert verb == "save", key
            return _renamed(data, stack)


def _delete(data: Files, stack: Stack) -> Reply[Files]:
    """Into the bin; out of the bin for good, but only after a question."""
    name = stack[-1].item
    if _shown(data, stack[-1]).folder == BIN:
        return Reply(data, ask(stack, name))
    return Reply(data.moving(name, BIN), pop(stack), (Toast("Moved to Bin"),))


def _renamed(data: Files, stack: Stack) -> Reply[Files]:
    frame = stack[-1]
    words = frame.field("Name").strip()
    if not words or data.file(words) is not None:
        return Reply(data, stack)
    below = (*stack[:-2], replace(stack[-2], item=words))
    return Reply(data.renaming(frame.item, words), below)


def listing(data: Files, frame: Frame) -> Listing | None:
    """A folder scrolls."""
    if frame.page != "folder":
        return None
    return Listing(tuple(f"open:{file.name}" for file in data.inside(frame.item)), VISIBLE)


def fields(frame: Frame) -> tuple[str, ...]:
    """The fields of a page."""
    return ("Name",) if frame.page == "rename" else ()


def door(frame: Frame) -> str:
    """The key that opens a page."""
    keys = {"folder": "folder:", "file": "open:", "seal": "seal:"}
    if frame.page in keys:
        return keys[frame.page] + frame.item
    return frame.page if frame.page in ("rename", "move") else f"tab:{frame.page}"


def pages(data: Files) -> tuple[Stack, ...]:
    """Both tabs, every folder, file and sealed file."""
    root, seals = (Frame("Folders"),), (Frame("Sealed"),)
    folders = tuple(push(root, "folder", name) for name in FOLDERS)
    inner = tuple(push(push(root, "folder", file.folder), "file", file.name) for file in data.files)
    return (root, seals, *folders, *inner, *(push(seals, "seal", s.name) for s in data.sealed))


APP = App(
    NAME,
    Files,
    Frame("Folders"),
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
