"""Gallery: pictures in albums, favourites, a bin, a camera, and pictures that are seen once.

A picture sent to be seen once is gone when its tile was tapped; `seen` keeps whose it was.
"""

from dataclasses import dataclass, replace
from random import Random

from services.worldmodel.phone.app import App, Listing, Reply, ask, pop, push
from services.worldmodel.phone.effects import Ask, Toast
from services.worldmodel.phone.geometry import (
    CELL_H,
    COLUMNS,
    WIDTH,
    Element,
    cell,
    cell_box,
    centre,
    slug,
)
from services.worldmodel.phone.look import (
    AMBER,
    BLUE,
    BROWN,
    CYAN,
    GREEN,
    INDIGO,
    INK,
    LIME,
    NAMES,
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
    pill,
    row,
    scroll_bar,
    tabs,
    text,
)

NAME = "Gallery"
SCENES: dict[str, tuple[str, str]] = {
    "Beach": (AMBER, "wave"),
    "Forest": (GREEN, "tree"),
    "Peak": (INDIGO, "peak"),
    "Boat": (BLUE, "boat"),
    "House": (BROWN, "house"),
    "Moon": (INK, "moon"),
    "Cake": (PINK, "cake"),
    "Rose": (RED, "flower"),
    "Leaf": (LIME, "leaf"),
    "Dinner": (ORANGE, "fork"),
    "Plane": (CYAN, "plane"),
    "Fish": (TEAL, "fish"),
    "Book": (VIOLET, "book"),
    "Rain": (SLATE, "drop"),
}
ALBUMS = {
    "Camera": (TEAL, "camera"),
    "Holiday": (ORANGE, "plane"),
    "Family": (PINK, "person"),
    "Bin": (SLATE, "trash"),
}
BIN = "Bin"
LINES = 8
MAX_SHOTS = 12
TABS = (("Photos", "picture"), ("Albums", "stack"), ("Once", "eye"))
GLYPHS = {
    "wave": '<path d="M2 9c3-4 5 3 8 0s5 3 8 0s3 0 4 1M2 16c3-4 5 3 8 0s5 3 8 0s3 0 4 1" '
    'fill="none" stroke="currentColor" stroke-width="3" stroke-linecap="round"/>',
    "tree": '<path d="M12 1.5l7 9h-4l5 7.5h-6.5v5h-3v-5H4l5-7.5H5z"/>',
    "peak": '<path d="M1 20L9 4l5 9l2.5-4L23 20z"/>',
    "boat": '<path d="M11 2v12H3zM13 5l7 9h-7zM2 16h20l-4 6H6z"/>',
    "house": '<path d="M12 2l10 9h-3v11h-5v-7h-4v7H5V11H2z"/>',
    "cake": '<path d="M4 11h16v4H4zM3 17h18v5H3zM11 4h2v6h-2z"/>',
    "fish": '<path d="M2 12c4-7 11-7 15-1l5-4v10l-5-4c-4 6-11 6-15-1z"/>',
    "stack": '<path d="M6 2h12v2.5H6zM4 6h16v2.5H4zM2 10h20v12H2z"/>',
    "eye": '<path d="M1 12c5-8 17-8 22 0c-5 8-17 8-22 0zM12 7.5a4.5 4.5 0 1 0 0 9'
    'a4.5 4.5 0 1 0 0-9z"/>',
    "move": '<path d="M3 12h17M13 5l7 7l-7 7" fill="none" stroke="currentColor" '
    'stroke-width="3.2" stroke-linecap="round" stroke-linejoin="round"/>',
    "undo": '<path d="M8 4L3 9l5 5M4 9h10a6 6 0 0 1 0 12H9" fill="none" stroke="currentColor" '
    'stroke-width="3" stroke-linecap="round" stroke-linejoin="round"/>',
}


@dataclass(frozen=True)
class Photo:
    """A picture, named by what it shows; names are unique. `origin` is its album before the bin."""

    name: str
    album: str
    favourite: bool = False
    origin: str = ""


@dataclass(frozen=True)
class Gallery(Part):
    """Pictures, the newest first; whose picture lies behind which tile; what was seen."""

    photos: tuple[Photo, ...]
    once: Tiles
    seen: tuple[str, ...] = ()
    shots: int = 0

    def photo(self, name: str) -> Photo | None:
        """The picture of that name."""
        return next((photo for photo in self.photos if photo.name == name), None)

    @property
    def shown(self) -> tuple[Photo, ...]:
        """Every picture that is not in the bin."""
        return tuple(photo for photo in self.photos if photo.album != BIN)

    def inside(self, album: str) -> tuple[Photo, ...]:
        """The pictures of an album."""
        return tuple(photo for photo in self.photos if photo.album == album)

    def having(self, photo: Photo) -> "Gallery":
        """The data with one picture in its new form."""
        photos = tuple(photo if p.name == photo.name else p for p in self.photos)
        return replace(self, photos=photos)

    def favouring(self, name: str, favourite: bool) -> "Gallery":
        """The data with a picture among the favourites or not."""
        return self.having(replace(self._found(name), favourite=favourite))

    def moving(self, name: str, album: str) -> "Gallery":
        """The data with a picture in another album."""
        photo = self._found(name)
        origin = photo.album if album == BIN else ""
        return self.having(replace(photo, album=album, origin=origin))

    def without(self, name: str) -> "Gallery":
        """The data with a picture gone for good."""
        return replace(self, photos=tuple(p for p in self.photos if p.name != name))

    def shooting(self) -> "Gallery":
        """The data after a picture was taken."""
        number = self.shots + 1
        photo = Photo(f"Shot {number}", "Camera")
        return replace(self, photos=(photo, *self.photos), shots=number)

    def seeing(self, name: str) -> "Gallery":
        """The data after a picture was seen that is seen once."""
        left = tuple((place, sender) for place, sender in self.once if sender != name)
        return replace(self, once=left, seen=(*self.seen, name))

    def _found(self, name: str) -> Photo:
        photo = self.photo(name)
        assert photo is not None
        return photo


def boot(rng: Random) -> Gallery:
    """Eleven pictures in three albums or the bin, and three that are seen once."""
    photos = []
    for name in rng.sample(tuple(SCENES), 11):
        album = rng.choices(tuple(ALBUMS), (3, 3, 3, 1))[0]
        origin = "Camera" if album == BIN else ""
        photos.append(Photo(name, album, album != BIN and rng.random() < 0.35, origin))
    return Gallery(tuple(photos), scatter(rng, rng.sample(NAMES, 3)))


def scene(name: str) -> tuple[str, str]:
    """Colour and glyph of a picture."""
    return SCENES.get(name) or (look(name)[0], "picture")


def title(_data: Gallery, frame: Frame) -> str:
    """The word in the app bar."""
    return {"move": "Move to", "camera": "Camera"}.get(frame.page, frame.item or NAME)


def draw(data: Gallery, stack: Stack) -> list[Element]:
    """The page on top of the stack."""
    frame = stack[-1]
    out: Elements = app_bar(NAME, title(data, frame), len(stack) > 1)
    match frame.page:
        case "Photos":
            out += _grid(data.shown, frame)
            out += fab("gallery", 3, 8, PINK)
        case "Albums":
            for i, (name, icon) in enumerate(ALBUMS.items()):
                count = len(data.inside(name))
                sub = f"{count} photo" if count == 1 else f"{count} photos"
                out += row("gallery", 1 + i, name, key=f"album:{name}", sub=sub, icon=icon)
        case "album":
            out += _grid(data.inside(frame.item), frame)
        case "photo":
            out += _photo(_shown(data, frame))
        case "move":
            here = _shown(data, frame).album
            for i, name in enumerate(n for n in ALBUMS if n not in (here, BIN)):
                out += row("gallery", 1 + i, name, key=f"to:{name}", icon=ALBUMS[name])
        case "camera":
            out += _picture("gallery/view", "Street", (SLATE, "house"), full=True)
            out += pill("gallery", 8, "Shoot", "shoot", INK, "camera")
        case "Once":
            hint = (80, CELL_H + 60, WIDTH - 160, 120)
            out.append(text("gallery/hint", "Each is shown only once", hint, "body"))
            out += tiles("gallery", (place for place, _ in data.once))
        case "seen":
            out += row("gallery", 2, frame.item, sub="Seen once")
        case _:
            raise ValueError(f"Gallery has no page {frame.page!r}")
    if len(stack) == 1:
        out += tabs("gallery", PINK, frame.page, TABS)
    if frame.dialog:
        out += dialog("Delete?", frame.dialog, icon=scene(frame.dialog))
    return out


def _grid(photos: tuple[Photo, ...], frame: Frame) -> Elements:
    """Four pictures a line, each in a cell with its name below."""
    out: Elements = []
    lines = LINES if frame.page == "album" else LINES - 1
    first = frame.scroll * COLUMNS
    for i, photo in enumerate(photos[first : first + lines * COLUMNS]):
        out += _thumbnail(i % COLUMNS, 1 + i // COLUMNS, photo)
    if not photos:
        out.append(text("gallery/empty", "No photos", (80, 300, 920, 120), "body"))
    total = -(-len(photos) // COLUMNS)
    return out + scroll_bar("gallery", frame.scroll, lines, total, 1)


def _thumbnail(column: int, line: int, photo: Photo) -> Elements:
    id = f"gallery/{slug(photo.name)}"
    at = cell(column, line)
    x, y, w, _ = box = cell_box(column, line)
    color, glyph = scene(photo.name)
    words = f"[IMG: {photo.name}]"
    out = [
        Element(id, "button", words, box, at, True, key=f"open:{photo.name}", tone="cell"),
        Element(
            f"{id}:icon", "picture", "", (x + 10, y + 8, w - 20, 170), at, color=color, glyph=glyph
        ),
        text(f"{id}:text", photo.name, (x, y + 182, w, 54), "label"),
    ]
    if photo.favourite:
        star = (x + w - 80, y + 14, 60, 60)
        out.append(Element(f"{id}:star", "mark", "", star, centre(star), glyph="star"))
    return out


def _picture(id: str, name: str, icon: tuple[str, str], full: bool = False) -> Elements:
    """A picture over the width of the screen, rows 1 to 4 (or 7)."""
    box = (20, CELL_H + 20, WIDTH - 40, (7 if full else 4) * CELL_H - 40)
    color, glyph = icon
    words = f"[IMG: {name}]"
    return [Element(id, "picture", words, box, centre(box), color=color, glyph=glyph)]


def _photo(photo: Photo) -> Elements:
    out = _picture("gallery/picture", photo.name, scene(photo.name))
    mark = "star" if photo.favourite else ""
    tone = "gold" if photo.favourite else ""
    icon = ALBUMS[photo.album]
    out += row("gallery", 5, photo.album, mark=mark, tone=tone, icon=icon)
    if photo.album == BIN:
        out += button("gallery", 0, 8, "Restore", "restore", GREEN, "undo")
    else:
        word = "Unstar" if photo.favourite else "Star"
        out += button("gallery", 0, 8, word, "star", AMBER, "star")
        out += button("gallery", 1, 8, "Move", "move", BLUE, "move")
    return out + button("gallery", 3, 8, "Delete", "delete", RED, "trash")


def _shown(data: Gallery, frame: Frame) -> Photo:
    photo = data.photo(frame.item)
    if photo is None or photo.album not in ALBUMS:
        raise ValueError(f"there is no picture {frame.item!r}")
    return photo


def tap(data: Gallery, stack: Stack, key: str) -> Reply[Gallery]:
    """React to a key of the page on top."""
    verb, _, name = key.partition(":")
    frame = stack[-1]
    match verb:
        case "tab":
            return Reply(data, stack if frame.page == name else (Frame(name),))
        case "album":
            return Reply(data, push(stack, "album", name))
        case "open":
            return Reply(data, push(stack, "photo", name))
        case "tile":
            sender = dict(data.once)[int(name)]
            return Reply(data.seeing(sender), push(stack, "seen", sender))
        case "add":
            return Reply(data, stack, (Ask("Camera", "camera"),))
        case "camera":
            return Reply(data, push(stack, "camera"))
        case "shoot":
            if data.shots >= MAX_SHOTS:
                return Reply(data, stack, (Toast("Storage is full"),))
            return Reply(data.shooting(), pop(stack), (Toast("Photo saved"),))
        case "star":
            favourite = not _shown(data, frame).favourite
            return Reply(data.favouring(frame.item, favourite), stack)
        case "move":
            return Reply(data, push(stack, "move", frame.item))
        case "to" | "restore":
            return _moved(data, stack, name)
        case "delete":
            if _shown(data, frame).album == BIN:
                return Reply(data, ask(stack, frame.item))
            toast = Toast("Moved to Bin")
            return Reply(data.moving(frame.item, BIN), pop(stack), (toast,))
        case _:
            assert verb == "confirm", key
            return Reply(data.without(frame.item), pop(stack))


def _moved(data: Gallery, stack: Stack, album: str) -> Reply[Gallery]:
    """Into the named album, or back to where a binned picture came from."""
    frame = stack[-1]
    target = album or _shown(data, frame).origin
    left = pop(pop(stack)) if album else pop(stack)
    return Reply(data.moving(frame.item, target), left, (Toast(f"Moved to {target}"),))


def listing(data: Gallery, frame: Frame) -> Listing | None:
    """Grids scroll by their lines."""
    if frame.page not in ("Photos", "album"):
        return None
    photos = data.shown if frame.page == "Photos" else data.inside(frame.item)
    lines = LINES if frame.page == "album" else LINES - 1
    return Listing(tuple(f"open:{photo.name}" for photo in photos), lines, COLUMNS)


def door(frame: Frame) -> str:
    """The key that opens a page."""
    keys = {"album": f"album:{frame.item}", "photo": f"open:{frame.item}"}
    keys |= {"move": "move", "camera": "add"}
    return keys.get(frame.page, f"tab:{frame.page}")


def pages(data: Gallery) -> tuple[Stack, ...]:
    """The tabs, every album and every picture."""
    photos, albums = (Frame("Photos"),), (Frame("Albums"),)
    inner = tuple(push(photos, "photo", photo.name) for photo in data.shown)
    folders = tuple(push(albums, "album", name) for name in ALBUMS)
    return (photos, albums, (Frame("Once"),), *folders, *inner)


APP = App(
    NAME,
    Gallery,
    Frame("Photos"),
    boot,
    title,
    draw,
    tap,
    listing,
    door,
    pages,
    glyphs=GLYPHS,
)
