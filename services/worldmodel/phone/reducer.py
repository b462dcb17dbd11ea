"""What an action does to a phone: a pure and total function.

`answer` and `finish` end an episode and never get here. Nothing but `wait` moves the clock.
An action without effect gives back the phone it was given.
"""

import math
from dataclasses import replace

from services.worldmodel.phone.apps import APPS
from services.worldmodel.phone.geometry import CELL_H, HEIGHT, WIDTH, Element
from services.worldmodel.phone.keyboard import KEYBOARD_TOP
from services.worldmodel.phone.moves import (
    bring,
    carry_out,
    go_to,
    leave,
    navigate,
    reply,
    tapped,
    top,
)
from services.worldmodel.phone.screen import capitals, hit
from services.worldmodel.phone.shade import FIRST_NOTICE
from services.worldmodel.phone.state import HOME, MAX_CLOCK_S, RECENTS, Frame, Phone
from services.worldmodel.phone.system_keys import close_dialogs, count_down, system_key
from wmkit.domain.actions import (
    TERMINAL,
    Action,
    Back,
    DoubleTap,
    Enter,
    Home,
    Key,
    LongPress,
    OpenApp,
    Recents,
    Scroll,
    Swipe,
    Tap,
    Type,
    Wait,
)
from wmkit.domain.screen import Point

MAX_TEXT = 60
MAX_WAIT_S = 3600
SCROLL_ROWS = 3
EDGE = 0.03


def step(phone: Phone, action: Action) -> Phone:
    """The phone after one action. Total: every canonical action but the terminal ones."""
    assert not isinstance(action, TERMINAL), f"{action.name} ends an episode"
    if phone.nav.toast:
        phone = navigate(phone, toast="")
    due = bool(phone.system.due)
    phone = _act(phone, action)
    return count_down(phone) if due and phone.system.due else phone


def _act(phone: Phone, action: Action) -> Phone:
    match action:
        case Tap(point):
            return _tap(phone, point)
        case DoubleTap(point):
            return _double_tap(phone, point)
        case LongPress(point):
            return _hold(phone, point)
        case Swipe(point, to):
            return _swipe(phone, point, to)
        case Scroll(reveal, where):
            return _scroll(phone, reveal, where)
        case Type(text, where, submit, clear):
            after = _type(phone if where is None else _tap(phone, where), text, clear)
            return _enter(after) if submit else after
        case Key(key):
            return _key(phone, key)
        case Enter():
            return _enter(phone)
        case Back():
            return _back(phone)
        case Home():
            return go_to(close_dialogs(phone), HOME)
        case Recents():
            return go_to(close_dialogs(phone), RECENTS)
        case OpenApp(app):
            return _open(phone, app)
        case Wait(ms):
            return _wait(phone, 1000 if ms is None else ms)
        case _:
            raise AssertionError(f"an action that is no action: {action!r}")


def _at(phone: Phone, point: Point) -> Element | None:
    return hit(phone, *point.to_px(WIDTH, HEIGHT))


def _tap(phone: Phone, point: Point) -> Phone:
    element = _at(phone, point)
    return phone if element is None else _press(phone, element.key)


def _double_tap(phone: Phone, point: Point) -> Phone:
    """Two taps, unless the first one put something else under the finger."""
    first = _at(phone, point)
    after = _tap(phone, point)
    second = _at(after, point)
    same = first is not None and second is not None and first.id == second.id
    return _tap(after, point) if same else after


def _hold(phone: Phone, point: Point) -> Phone:
    """A long press: the app's affair, where it is not on something of the system's."""
    element = _at(phone, point)
    front = phone.nav.front
    if element is None or front not in APPS or _system(element.key):
        return phone
    return reply(phone, APPS[front].hold(phone.of(front), phone.nav.stack(front), element.key))


def _system(key: str) -> bool:
    return key.startswith("os.") or key.partition(":")[0] in ("app", "back", "cancel", "field")


def _press(phone: Phone, key: str) -> Phone:
    """React to a key: the system's own first, the rest is the app's."""
    verb, _, name = key.partition(":")
    match verb:
        case "app":
            return bring(phone, name)
        case "back":
            return leave(phone)
        case "cancel":
            return top(phone, dialog="")
        case "field":
            return top(navigate(phone, shift=False), focus=name)
        case "os.letter":
            return _letter(phone, name)
        case "os.erase":
            return _erase(phone)
        case "os.enter":
            return _enter(phone)
    if verb.startswith("os."):
        return system_key(phone, verb.removeprefix("os."), name)
    return tapped(phone, key)


def _open(phone: Phone, name: str) -> Phone:
    """The app of that name, whatever its case."""
    app = next((a for a in APPS if a.lower() == name.strip().lower()), "")
    return bring(close_dialogs(phone), app) if app else phone


def _back(phone: Phone) -> Phone:
    """Android's order: the system's dialogs, the shade, keyboard, dialog, page, app."""
    if phone.nav.popup:
        return navigate(phone, popup="")
    if phone.nav.prompt is not None:
        return navigate(phone, prompt=None)
    if phone.nav.shade:
        return navigate(phone, shade=False)
    frame = phone.frame()
    if frame is None:
        return go_to(phone, HOME) if phone.nav.front != HOME else phone
    if frame.focus:
        return top(navigate(phone, shift=False), focus="")
    if frame.dialog:
        return top(phone, dialog="")
    return leave(phone)


def _blocked(phone: Phone) -> bool:
    return bool(phone.nav.popup) or phone.nav.prompt is not None


def _scroll(phone: Phone, reveal: str, where: Point | None) -> Phone:
    """Lists by three rows; the launcher by a page; up at home, or from the top, the shade."""
    if _blocked(phone):
        return phone
    if phone.nav.shade:
        return navigate(phone, shade=False) if reveal == "down" else _flick(phone, where, reveal)
    if where is not None and where.y <= EDGE and reveal == "up":
        return navigate(phone, shade=True)
    if phone.nav.front == HOME:
        return _home_scroll(phone, reveal)
    rows = {"up": -SCROLL_ROWS, "down": SCROLL_ROWS}.get(reveal, 0)
    return _move_list(phone, rows, where)


def _flick(phone: Phone, where: Point | None, reveal: str) -> Phone:
    """A notification that is pushed aside is dismissed."""
    if where is None or reveal == "up":
        return phone
    i = int(where.y * HEIGHT) // CELL_H - FIRST_NOTICE
    if not 0 <= i < len(phone.system.notices):
        return phone
    return system_key(phone, "dismiss", str(i))


def _home_scroll(phone: Phone, reveal: str) -> Phone:
    if reveal == "up":
        return navigate(phone, shade=True)
    move = {"left": -1, "right": 1}.get(reveal, 0)
    page = min(max(0, phone.nav.page + move), len(phone.launcher.pages) - 1)
    return navigate(phone, page=page)


def _move_list(phone: Phone, rows: int, where: Point | None) -> Phone:
    """Move the list by whole rows, never past its ends."""
    frame = phone.frame()
    if frame is None or frame.dialog or rows == 0:
        return phone
    if where is not None:
        y = where.to_px(WIDTH, HEIGHT)[1]
        if y < CELL_H or (frame.focus and y >= KEYBOARD_TOP):
            return phone
    listing = APPS[phone.nav.front].listing(phone.of(phone.nav.front), frame)
    if listing is None:
        return phone
    return top(phone, scroll=min(max(0, frame.scroll + rows), listing.last))


def _swipe(phone: Phone, start: Point, end: Point) -> Phone:
    """Gesture navigation from the edges, else a scroll by as much as the finger moved."""
    dx, dy = end.x - start.x, end.y - start.y
    if abs(dx) > abs(dy):
        if abs(dx) <= 0.1:
            return phone
        if (start.x <= EDGE and dx > 0) or (start.x >= 1 - EDGE and dx < 0):
            return _back(phone)
        return _sideways(phone, "left" if dx > 0 else "right", start)
    if start.y >= 1 - EDGE and dy < -0.1:
        return go_to(close_dialogs(phone), HOME)
    if phone.nav.shade or phone.nav.front == HOME or (start.y <= EDGE and dy > 0):
        return _scroll(phone, "up" if dy > 0 else "down", start) if abs(dy) > 0.1 else phone
    if _blocked(phone):
        return phone
    return _move_list(phone, -round(dy * HEIGHT / CELL_H), start)


def _sideways(phone: Phone, reveal: str, start: Point) -> Phone:
    at_home = phone.nav.front == HOME
    return _scroll(phone, reveal, start) if phone.nav.shade or at_home else phone


def _field(phone: Phone) -> Frame | None:
    """The frame whose field has the keyboard, None where nothing can be typed."""
    if _blocked(phone) or phone.nav.shade:
        return None
    frame = phone.frame()
    return frame if frame is not None and frame.focus else None


def _type(phone: Phone, text: str, clear: bool) -> Phone:
    frame = _field(phone)
    if frame is None:
        return phone
    old = "" if clear else frame.field(frame.focus)
    words = "".join(c if c.isprintable() else " " if c.isspace() else "" for c in text)
    return _fill(phone, frame, (old + words)[:MAX_TEXT])


def _fill(phone: Phone, frame: Frame, words: str) -> Phone:
    """Set the focused field; empty fields are not stored, so equal forms are equal states."""
    typed = dict(frame.fields) | {frame.focus: words}
    return top(phone, fields=tuple(sorted((k, v) for k, v in typed.items() if v)))


def _letter(phone: Phone, letter: str) -> Phone:
    """A key of the keyboard: capital where the keyboard shows capitals, once."""
    frame = _field(phone)
    assert frame is not None
    words = letter.upper() if capitals(phone, frame) else letter
    return _type(navigate(phone, shift=False), words, False)


def _erase(phone: Phone) -> Phone:
    frame = _field(phone)
    return phone if frame is None else _fill(phone, frame, frame.field(frame.focus)[:-1])


def _enter(phone: Phone) -> Phone:
    """On to the next field; in the last one it is the app that decides."""
    frame = _field(phone)
    if frame is None:
        return phone
    front = phone.nav.front
    names = APPS[front].fields(frame)
    later = names[names.index(frame.focus) + 1 :]
    phone = navigate(phone, shift=False)
    if later:
        return top(phone, focus=later[0])
    return reply(phone, APPS[front].submit(phone.of(front), phone.nav.stack(front)))


def _key(phone: Phone, key: str) -> Phone:
    """Hardware keys by name, as Android or X name them; one character types itself."""
    if len(key) == 1:
        return _type(phone, key, False)
    match key.strip().lower().removeprefix("keycode_"):
        case "enter" | "return":
            return _enter(phone)
        case "back" | "escape" | "esc":
            return _back(phone)
        case "home":
            return go_to(close_dialogs(phone), HOME)
        case "recents" | "app_switch" | "appselect":
            return go_to(close_dialogs(phone), RECENTS)
        case "backspace" | "delete" | "del":
            return _erase(phone)
        case "space":
            return _type(phone, " ", False)
        case _:
            return phone


def _wait(phone: Phone, ms: float) -> Phone:
    """Time passes for every app, open or not."""
    seconds = min(MAX_WAIT_S, math.ceil(ms / 1000))
    if seconds <= 0:
        return phone
    told = [(name, *APPS[name].wait(part, seconds)) for name, part in phone.data]
    data = tuple((name, part) for name, part, _ in told)
    phone = replace(phone, clock=min(phone.clock + seconds, MAX_CLOCK_S), data=data)
    for name, _, effects in told:
        for effect in effects:
            phone = carry_out(phone, name, effect)
    return phone
