"""The home screen: where a phone's icons lie, and how its pages and dock are drawn.

Not here: what a swipe or a tap on it does (`reducer`).
"""

from random import Random

from services.worldmodel.phone.apps import APPS
from services.worldmodel.phone.geometry import (
    CELL_H,
    CELL_W,
    COLUMNS,
    WIDTH,
    Element,
    cell,
    cell_box,
    centre,
    slug,
)
from services.worldmodel.phone.look import look
from services.worldmodel.phone.state import Icon, Launcher, Nav
from services.worldmodel.phone.widgets import Elements, text

# The apps that every phone came with, in the order in which icons are dealt out. Apps that
# are added later follow them on the last page, so that they move no icon.
PRELOADED = (
    "Settings", "Clock", "Notes", "Contacts", "Messages", "Phone", "Calendar", "Files",
    "Gallery", "Calculator", "Music", "Shop", "Mail", "Browser",
)  # fmt: skip
DOCK_ROW = 8
TOP_ROW, ROWS = 2, 5
"""Icons of a page lie in rows 2 to 6."""
FIRST_PAGE = 7


def boot_launcher(rng: Random) -> Launcher:
    """Four apps in the dock, seven on the first page, the others on the second."""
    apps = rng.sample(PRELOADED, len(PRELOADED))
    dock, rest = tuple(apps[:COLUMNS]), apps[COLUMNS:]
    pages = tuple(_dealt(rng, names) for names in (rest[:FIRST_PAGE], rest[FIRST_PAGE:]))
    added = [name for name in APPS if name not in PRELOADED]
    free = [c for c in _cells() if c not in [(x, y) for _, x, y in pages[-1]]]
    extra = tuple((name, x, y) for name, (x, y) in zip(added, reversed(free), strict=False))
    return Launcher((*pages[:-1], (*pages[-1], *extra)), dock)


def _cells() -> list[tuple[int, int]]:
    return [(x, y) for y in range(TOP_ROW, TOP_ROW + ROWS) for x in range(COLUMNS)]


def _dealt(rng: Random, names: list[str]) -> tuple[Icon, ...]:
    """Icons in reading order, from some row on."""
    spare = ROWS - -(-len(names) // COLUMNS)
    first = TOP_ROW + rng.randint(0, spare)
    return tuple((name, i % COLUMNS, first + i // COLUMNS) for i, name in enumerate(names))


def page_of(launcher: Launcher, app: str) -> int | None:
    """The page on which an app's icon lies, None for the dock and for unknown apps."""
    for i, icons in enumerate(launcher.pages):
        if any(name == app for name, _, _ in icons):
            return i
    return None


def check_launcher(launcher: Launcher, nav: Nav) -> None:
    """Raises ValueError where icons cannot lie like this."""
    placed = [name for icons in launcher.pages for name, _, _ in icons]
    known = {*PRELOADED, *APPS}
    if not launcher.pages or not 0 <= nav.page < len(launcher.pages):
        raise ValueError(f"not a phone: the launcher has no page {nav.page}")
    if len(launcher.dock) > COLUMNS or not {*placed, *launcher.dock} <= known:
        raise ValueError("not a phone: the launcher shows apps that are not there")
    for icons in launcher.pages:
        places = [(column, row) for _, column, row in icons]
        if len(set(places)) != len(places) or not set(places) <= set(_cells()):
            raise ValueError("not a phone: icons have no place on the grid")


def draw_home(launcher: Launcher, page: int, time: str, day: str) -> Elements:
    """One page of the launcher; the clock stands on the first."""
    wallpaper = (0, 0, WIDTH, 2400)
    out = [Element("home/wallpaper", "wallpaper", "", wallpaper, centre(wallpaper))]
    if page == 0:
        out += [
            text("home/clock", time, (70, CELL_H, 620, 190), "clock"),
            text("home/date", day, (76, CELL_H + 184, 620, 56), "date"),
        ]
    for app, column, line in launcher.pages[page]:
        out += _icon(app, column, line)
    dots = len(launcher.pages)
    for i in range(dots):
        box = (WIDTH // 2 - 24 * dots + 48 * i + 12, 1860, 24, 24)
        out.append(Element(f"home/dot-{i}", "dot", "", box, centre(box), tone="on" * (i == page)))
    for column, app in enumerate(launcher.dock):
        out += _icon(app, column, DOCK_ROW)
    search = (60, 2186, 960, 148)
    out.append(Element("home/search", "search", "", search, cell(1, 9), glyph="search"))
    return out


def _icon(app: str, column: int, line: int) -> Elements:
    id = f"home/{slug(app)}"
    at = cell(column, line)
    color, glyph = look(app)
    disc = (column * CELL_W + 49, line * CELL_H + 8, 172, 172)
    label = (column * CELL_W, line * CELL_H + 184, CELL_W, 52)
    return [
        Element(id, "icon", app, cell_box(column, line), at, True, key=f"app:{app}", tone="cell"),
        Element(f"{id}:icon", "glyph", "", disc, at, color=color, glyph=glyph, tone="app"),
        text(f"{id}:text", app, label, "label"),
    ]
