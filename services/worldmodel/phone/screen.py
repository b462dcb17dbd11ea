"""What is on the screen: the page in front, and the system around it.

Draws the status bar, home screen, recent apps, soft keyboard and gesture bar; pages come
from the apps. `elements` is all there is to see: HTML, hit-testing and the digest of the
screen are derived from it.
"""

import json
from dataclasses import replace
from datetime import date, timedelta

from blake3 import blake3

from services.worldmodel.phone.apps import APPS
from services.worldmodel.phone.geometry import (
    CELL_H,
    CELL_W,
    WIDTH,
    Element,
    cell,
    cell_box,
    centre,
    slug,
)
from services.worldmodel.phone.look import look
from services.worldmodel.phone.state import HOME, RECENTS, Phone
from services.worldmodel.phone.widgets import Elements, button, row, text

FIRST_DAY = date(2024, 5, 6)
# Spelled out, because strftime follows the process's locale.
WEEKDAYS = ("Mon", "Tue", "Wed", "Thu", "Fri", "Sat", "Sun")
MONTHS = ("Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec")
KEYBOARD_TOP = 1440
KEY_H = 180
KEY_LINES = ("1234567890", "qwertyuiop", "asdfghjkl", "zxcvbnm")


def title(phone: Phone) -> str:
    """Short name of the page in front: "home", "recents", or the word in its app bar."""
    frame = phone.frame()
    if frame is None:
        return phone.nav.front
    return APPS[phone.nav.front].title(phone.of(phone.nav.front), frame)


def elements(phone: Phone) -> tuple[Element, ...]:
    """Everything drawn, from back to front. Ids are unique."""
    memo = phone.__dict__.get("_elements")
    if memo is None:
        memo = tuple(_unique(_draw(phone)))
        phone.__dict__["_elements"] = memo
    return memo


def screen_digest(phone: Phone) -> str:
    """Hex BLAKE3 of what can be seen; phones that look alike share it."""
    seen = [
        (e.id, e.role, e.text, e.box, e.checked, e.focused, e.enabled, e.color, e.glyph, e.tone)
        for e in elements(phone)
    ]
    return blake3(json.dumps(seen, separators=(",", ":")).encode()).hexdigest()


def hit(phone: Phone, x_px: int, y_px: int) -> Element | None:
    """The clickable element under a pixel, the one in front where several are drawn."""
    for element in reversed(elements(phone)):
        if element.clickable and element.covers(x_px, y_px):
            return element
    return None


def find(phone: Phone, key: str) -> Element | None:
    """The clickable element that sends `key`, if it is on the screen."""
    return next((e for e in elements(phone) if e.clickable and e.key == key), None)


def _draw(phone: Phone) -> Elements:
    front = phone.nav.front
    if front == HOME:
        page = _home(phone)
    elif front == RECENTS:
        page = _recents(phone)
    else:
        stack = phone.nav.stack(front)
        page = list(APPS[front].draw(phone.of(front), stack))
        if stack[-1].dialog:
            page = _covered(page)
        if stack[-1].focus:
            page += _keyboard()
    return page + _status(phone) + [_gesture()]


def _covered(page: Elements) -> Elements:
    """Under a dialog nothing can be tapped."""
    top = next(i for i, e in enumerate(page) if e.role == "scrim")
    return [replace(e, clickable=False) if e.clickable else e for e in page[:top]] + page[top:]


def _unique(page: Elements) -> Elements:
    seen: dict[str, int] = {}
    out = []
    for element in page:
        n = seen[element.id] = seen.get(element.id, 0) + 1
        out.append(element if n == 1 else replace(element, id=f"{element.id}~{n}"))
    return out


def _time(phone: Phone) -> str:
    minutes = phone.clock // 60 % 1440
    return f"{minutes // 60:02d}:{minutes % 60:02d}"


def _date(phone: Phone) -> str:
    day = FIRST_DAY + timedelta(days=phone.clock // 86400)
    return f"{WEEKDAYS[day.weekday()]}, {day.day} {MONTHS[day.month - 1]}"


def _status(phone: Phone) -> Elements:
    on = phone.of("Settings").on
    out = [text("status/time", _time(phone), (52, 14, 200, 56), "status")]
    x = WIDTH - 96
    shown = [("battery", "battery")]
    shown += [
        (name, look(name)[1])
        for name in ("Wi-Fi", "Airplane", "Bluetooth", "Silent", "Vibrate", "Location")
        if on(name)
    ]
    for name, glyph in shown:
        box = (x, 20, 44, 44)
        out.append(Element(f"status/{slug(name)}", "status", "", box, centre(box), glyph=glyph))
        x -= 58
        if name == "battery" and on("Percent"):
            x -= 52
            out.append(text("status/percent", "84%", (x, 14, 100, 56), "status"))
            x -= 58
    return out


def _gesture() -> Element:
    box = (390, 2374, 300, 12)
    return Element("system/gesture", "gesture", "", box, centre(box))


def _home(phone: Phone) -> Elements:
    wallpaper = (0, 0, WIDTH, 2400)
    out = [
        Element("home/wallpaper", "wallpaper", "", wallpaper, centre(wallpaper)),
        text("home/clock", _time(phone), (70, CELL_H + 10, 620, 180), "clock"),
        text("home/date", _date(phone), (76, CELL_H + 180, 620, 60), "date"),
        Element("home/search", "search", "", (60, 2186, 960, 148), cell(1, 9), glyph="search"),
    ]
    for app, column, line in phone.launcher.icons:
        out += _launcher_icon(app, column, line)
    return out


def _launcher_icon(app: str, column: int, line: int) -> Elements:
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


def _recents(phone: Phone) -> Elements:
    bar = (0, 0, WIDTH, CELL_H)
    out = [
        Element("recents/bar", "bar", "", bar, centre(bar), color="#44474F"),
        text("recents/title", "Recent apps", (56, 80, 744, CELL_H - 80), "title"),
    ]
    apps = [app for app, _ in reversed(phone.nav.stacks)][:7]
    for i, app in enumerate(apps):
        out += row("recents", 1 + i, app, key=f"app:{app}")
    if apps:
        out += button("recents", 3, 9, "Clear", "clear", "#5F6368", "close")
    else:
        out.append(text("recents/empty", "No recent apps", (80, 300, 920, 120), "body"))
    return out


def _keyboard() -> Elements:
    return list(_KEYS)


def _keys() -> Elements:
    tray = (0, KEYBOARD_TOP, WIDTH, 2400 - KEYBOARD_TOP)
    out = [Element("keyboard", "keyboard", "", tray, centre(tray))]

    def key(
        id: str, words: str, x: int, line: int, width: int, event: str, glyph: str = ""
    ) -> None:
        box = (x, KEYBOARD_TOP + line * KEY_H, width, KEY_H)
        out.append(
            Element(
                f"keyboard/{id}",
                "key",
                words,
                box,
                centre(box),
                True,
                key=event,
                glyph=glyph,
                tone="soft" if glyph or len(words) > 1 else "",
            )
        )

    for line, letters in enumerate(KEY_LINES):
        x = (WIDTH - 108 * len(letters)) // 2 if line < 3 else 108
        for letter in letters:
            key(letter, letter, x, line, 108, f"letter:{letter}")
            x += 108
    key("erase", "", 864, 3, 216, "erase", "erase")
    key("comma", ",", 0, 4, 162, "letter:,")
    key("space", "space", 162, 4, 594, "letter: ")
    key("period", ".", 756, 4, 108, "letter:.")
    key("enter", "", 864, 4, 216, "enter", "enter")
    return out


_KEYS = tuple(_keys())
