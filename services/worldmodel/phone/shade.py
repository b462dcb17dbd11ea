"""The notification shade: quick-settings tiles and notifications, over whole rows of cells."""

from services.worldmodel.phone.geometry import (
    CELL_H,
    CELL_W,
    HEIGHT,
    WIDTH,
    Element,
    cell,
    cell_box,
    centre,
    slug,
    square,
)
from services.worldmodel.phone.look import look
from services.worldmodel.phone.state import Notice, Phone
from services.worldmodel.phone.widgets import Elements, button, text

CANDIDATES = (
    "Wi-Fi", "Bluetooth", "Airplane", "Silent", "Location", "Night", "Rotate", "Saver",
)  # fmt: skip
"""Tiles in drawn order; each is a toggle of Settings."""
TILES = 6
FIRST_NOTICE = 4


def tiles(phone: Phone) -> tuple[str, ...]:
    """The toggles on the shade: the first six that this phone has."""
    have = {name for name, _ in phone.of("Settings").toggles}
    return tuple(name for name in CANDIDATES if name in have)[:TILES]


def draw_shade(phone: Phone, day: str) -> Elements:
    """The shade over the whole screen."""
    panel = (0, 0, WIDTH, HEIGHT)
    out = [
        Element("shade", "shade", "", panel, centre(panel)),
        text("shade/date", day, (60, 110, 700, 90), "body"),
    ]
    settings = phone.of("Settings")
    for i, name in enumerate(tiles(phone)):
        out += _tile(2 * (i % 2), 1 + i // 2, name, settings.on(name))
    notices = phone.system.notices
    for i, notice in enumerate(notices):
        out += _card(FIRST_NOTICE + i, i, notice)
    if notices:
        out += button("shade", 3, 9, "Clear all", "os.clear-notices", "neutral", "close")
    else:
        box = (60, FIRST_NOTICE * CELL_H + 60, 960, 120)
        out.append(text("shade/empty", "No notifications", box, "hint"))
    return out


def _tile(column: int, line: int, name: str, on: bool) -> Elements:
    id = f"shade/{slug(name)}"
    at = cell(column, line)
    x, y, w, h = cell_box(column, line, 2)
    color, glyph = look(name)
    tone = "on" if on else ""
    return [
        Element(
            id,
            "tile",
            name,
            (x + 20, y + 20, w - 40, h - 40),
            at,
            True,
            on,
            key=f"os.tile:{name}",
            tone=tone,
        ),
        Element(f"{id}:icon", "glyph", "", square(column, line, 130), at, color=color, glyph=glyph),
        text(f"{id}:text", name, (x + 220, y + 75, w - 260, 90), "tile" + tone),
    ]


def _card(line: int, i: int, notice: Notice) -> Elements:
    id = f"shade/notice-{i}"
    at = cell(0, line)
    color, glyph = look(notice.app)
    top = line * CELL_H
    return [
        Element(
            id,
            "notice",
            f"{notice.app}: {notice.title}",
            (20, top + 8, 3 * CELL_W - 20, CELL_H - 16),
            at,
            True,
            key=f"os.notice:{i}",
        ),
        Element(f"{id}:icon", "glyph", "", square(0, line, 140), at, color=color, glyph=glyph),
        text(f"{id}:title", notice.title, (CELL_W, top + 44, 520, 84), "notice"),
        text(f"{id}:text", notice.text, (CELL_W, top + 128, 520, 62), "sub"),
        Element(
            f"{id}:close",
            "button",
            "Dismiss",
            cell_box(3, line),
            cell(3, line),
            True,
            key=f"os.dismiss:{i}",
            glyph="close",
            tone="bare",
        ),
    ]
