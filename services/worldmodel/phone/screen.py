"""What is on the screen: the page in front, and the system around it.

Draws the status bar, recent apps and gesture bar; pages come from the apps, the launcher,
keyboard, shade and dialogs from modules of their own. `elements` is all there is to see:
HTML, hit-testing and the digest of the screen are derived from it.
"""

import json
from datetime import date, timedelta

from blake3 import blake3

from services.worldmodel.phone.apps import APPS
from services.worldmodel.phone.geometry import CELL_H, WIDTH, Element, centre, slug
from services.worldmodel.phone.keyboard import keyboard
from services.worldmodel.phone.launcher import draw_home
from services.worldmodel.phone.look import look
from services.worldmodel.phone.overlays import draw_popup, draw_prompt, draw_toast
from services.worldmodel.phone.shade import draw_shade
from services.worldmodel.phone.state import HOME, RECENTS, Frame, Phone
from services.worldmodel.phone.widgets import Elements, button, row, text

FIRST_DAY = date(2024, 5, 6)
# Spelled out, because strftime follows the process's locale.
WEEKDAYS = ("Mon", "Tue", "Wed", "Thu", "Fri", "Sat", "Sun")
MONTHS = ("Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec")
COMPACT = 0.88
"""The size of icons on a compact phone."""


def title(phone: Phone) -> str:
    """Short name of what is in front: "home", "recents", "shade", or the word in the app bar."""
    if phone.nav.shade:
        return "shade"
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


def theme(phone: Phone) -> tuple[bool, int]:
    """Whether the dark theme is on, and the text's size in percent."""
    return phone.of("Settings").on("Night"), phone.system.font_percent


def screen_digest(phone: Phone) -> str:
    """Hex BLAKE3 of what can be seen; phones that look alike share it."""
    seen = [
        (e.id, e.role, e.text, e.box, e.checked, e.focused, e.enabled, e.color, e.glyph, e.tone)
        for e in elements(phone)
    ]
    return blake3(json.dumps([theme(phone), seen], separators=(",", ":")).encode()).hexdigest()


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
    nav = phone.nav
    page = _page(phone)
    if phone.system.compact:
        page = [_shrunk(e) if e.role == "glyph" else e for e in page]
    if nav.shade:
        page = _inert(page) + draw_shade(phone, _date(phone))
    if nav.prompt is not None:
        page = _inert(page) + draw_prompt(nav.prompt)
    if nav.popup:
        page = _inert(page) + draw_popup(nav.popup)
    if nav.toast:
        page += draw_toast(nav.toast)
    return page + _status(phone) + [_gesture()]


def _page(phone: Phone) -> Elements:
    """What is in front, without the system's own overlays."""
    front = phone.nav.front
    if front == HOME:
        return draw_home(phone.launcher, phone.nav.page, _time(phone), _date(phone))
    if front == RECENTS:
        return _recents(phone)
    stack = phone.nav.stack(front)
    page = list(APPS[front].draw(phone.of(front), stack))
    if stack[-1].dialog:
        top = next(i for i, e in enumerate(page) if e.role == "scrim")
        page = _inert(page[:top]) + page[top:]
    if stack[-1].focus:
        page += keyboard(capitals(phone, stack[-1]))
    return page


def capitals(phone: Phone, frame: Frame) -> bool:
    """Whether the keyboard shows capitals: shift is held, or a field is empty."""
    return phone.nav.shift or not frame.field(frame.focus)


def _inert(page: Elements) -> Elements:
    """What lies under a dialog cannot be tapped."""
    return [e._replace(clickable=False) if e.clickable else e for e in page]


def _shrunk(e: Element) -> Element:
    x, y, w, h = e.box
    less = round(w * (1 - COMPACT) / 2), round(h * (1 - COMPACT) / 2)
    return e._replace(box=(x + less[0], y + less[1], w - 2 * less[0], h - 2 * less[1]))


def _unique(page: Elements) -> Elements:
    seen: dict[str, int] = {}
    out = []
    for element in page:
        n = seen[element.id] = seen.get(element.id, 0) + 1
        out.append(element if n == 1 else element._replace(id=f"{element.id}~{n}"))
    return out


def _time(phone: Phone) -> str:
    minutes = phone.clock // 60 % 1440
    return f"{minutes // 60:02d}:{minutes % 60:02d}"


def _date(phone: Phone) -> str:
    day = FIRST_DAY + timedelta(days=phone.clock // 86400)
    return f"{WEEKDAYS[day.weekday()]}, {day.day} {MONTHS[day.month - 1]}"


def _status(phone: Phone) -> Elements:
    on = {name for name, on in phone.of("Settings").toggles if on}
    out = [text("status/time", _time(phone), (52, 14, 130, 56), "status")]
    for i, notice in enumerate(phone.system.notices[:3]):
        box = (190 + 58 * i, 20, 44, 44)
        glyph = look(notice.app)[1]
        out.append(Element(f"status/notice-{i}", "status", "", box, centre(box), glyph=glyph))
    x = WIDTH - 96
    shown = [("battery", "battery")]
    shown += [
        (name, look(name)[1])
        for name in ("Wi-Fi", "Airplane", "Bluetooth", "Silent", "Vibrate", "Location")
        if name in on
    ]
    for name, glyph in shown:
        box = (x, 20, 44, 44)
        out.append(Element(f"status/{slug(name)}", "status", "", box, centre(box), glyph=glyph))
        x -= 58
        if name == "battery" and "Percent" in on:
            x -= 52
            out.append(text("status/percent", "84%", (x, 14, 100, 56), "status"))
            x -= 58
    return out


def _gesture() -> Element:
    box = (390, 2374, 300, 12)
    return Element("system/gesture", "gesture", "", box, centre(box))


def _recents(phone: Phone) -> Elements:
    bar = (0, 0, WIDTH, CELL_H)
    out = [
        Element("recents/bar", "bar", "", bar, centre(bar), color="neutral"),
        text("recents/title", "Recent apps", (56, 80, 744, CELL_H - 80), "title"),
    ]
    apps = [app for app, _ in reversed(phone.nav.stacks)][:7]
    for i, app in enumerate(apps):
        out += row("recents", 1 + i, app, key=f"app:{app}")
    if apps:
        out += button("recents", 3, 9, "Clear", "os.clear", "neutral", "close")
    else:
        out.append(text("recents/empty", "No recent apps", (80, 300, 920, 120), "body"))
    return out
