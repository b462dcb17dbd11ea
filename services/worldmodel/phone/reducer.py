"""What an action does to a phone: a pure and total function.

`answer` and `finish` end an episode and never get here. Nothing but `wait` moves the clock.
An action without effect gives back the phone it was given.
"""

import math
from dataclasses import replace

from services.worldmodel.phone.apps import APPS
from services.worldmodel.phone.geometry import CELL_H, HEIGHT, WIDTH
from services.worldmodel.phone.screen import KEYBOARD_TOP, hit
from services.worldmodel.phone.state import (
    HOME,
    MAX_CLOCK_S,
    RECENTS,
    Frame,
    Nav,
    Part,
    Phone,
    Stack,
)
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
    match action:
        case Tap(point):
            after = _tap(phone, point)
        case DoubleTap(point):
            after = _double_tap(phone, point)
        case LongPress(point):
            after = _hold(phone, point)
        case Swipe(point, to):
            after = _swipe(phone, point, to)
        case Scroll(reveal, where):
            rows = {"up": -SCROLL_ROWS, "down": SCROLL_ROWS}.get(reveal, 0)
            after = _scroll(phone, rows, where)
        case Type(text, where, submit, clear):
            after = _type(phone if where is None else _tap(phone, where), text, clear)
            after = _enter(after) if submit else after
        case Key(key):
            after = _key(phone, key)
        case Enter():
            after = _enter(phone)
        case Back():
            after = _back(phone)
        case Home():
            after = _front(phone, HOME)
        case Recents():
            after = _front(phone, RECENTS)
        case OpenApp(app):
            after = _open(phone, app)
        case Wait(ms):
            after = _wait(phone, 1000 if ms is None else ms)
        case _:
            raise AssertionError(f"an action that is no action: {action!r}")
    return after


def _tap(phone: Phone, point: Point) -> Phone:
    element = hit(phone, *point.to_px(WIDTH, HEIGHT))
    return phone if element is None else _press(phone, element.key)


def _double_tap(phone: Phone, point: Point) -> Phone:
    """Two taps, unless the first one put something else under the finger."""
    first = hit(phone, *point.to_px(WIDTH, HEIGHT))
    after = _tap(phone, point)
    second = hit(after, *point.to_px(WIDTH, HEIGHT))
    same = first is not None and second is not None and first.id == second.id
    return _tap(after, point) if same else after


def _hold(phone: Phone, point: Point) -> Phone:
    element = hit(phone, *point.to_px(WIDTH, HEIGHT))
    front = phone.nav.front
    if element is None or front not in APPS:
        return phone
    stack = phone.nav.stack(front)
    return _put(phone, *APPS[front].hold(phone.of(front), stack, element.key))


def _press(phone: Phone, key: str) -> Phone:
    """React to a key: the system's own first, the rest is the app's."""
    verb, _, name = key.partition(":")
    front = phone.nav.front
    match verb:
        case "app":
            return _open(phone, name)
        case "clear":
            return replace(phone, nav=Nav())
        case "back":
            return _pop(phone)
        case "cancel":
            return _top(phone, dialog="")
        case "field":
            return _top(phone, focus=name)
        case "letter":
            return _letter(phone, name)
        case "erase":
            return _erase(phone)
        case "enter":
            return _enter(phone)
        case _:
            return _put(phone, *APPS[front].tap(phone.of(front), phone.nav.stack(front), key))


def _put(phone: Phone, data: Part, stack: Stack) -> Phone:
    """The phone with the front app's data and stack replaced, the list kept in range."""
    front = phone.nav.front
    frame = stack[-1]
    listing = APPS[front].listing(data, frame)
    last = listing.last if listing else 0
    if frame.scroll > last:
        stack = (*stack[:-1], replace(frame, scroll=last))
    nav = phone.nav
    if stack != nav.stack(front):
        nav = Nav(front, tuple((a, stack if a == front else s) for a, s in nav.stacks))
    kept = phone.data
    if data != phone.of(front):
        kept = tuple((name, data if name == front else part) for name, part in kept)
    if nav is phone.nav and kept is phone.data:
        return phone
    return replace(phone, nav=nav, data=kept)


def _top(phone: Phone, **changes: object) -> Phone:
    """The phone with fields of the top frame replaced."""
    front = phone.nav.front
    stack = phone.nav.stack(front)
    frame: Frame = replace(stack[-1], **changes)  # type: ignore[arg-type]
    return _put(phone, phone.of(front), (*stack[:-1], frame))


def _front(phone: Phone, front: str) -> Phone:
    return phone if phone.nav.front == front else replace(phone, nav=Nav(front, phone.nav.stacks))


def _open(phone: Phone, name: str) -> Phone:
    """Bring an app to the front, where it was left. Names are matched without case."""
    app = next((a for a in APPS if a.lower() == name.strip().lower()), None)
    if app is None or app == phone.nav.front:
        return phone
    stack = phone.nav.stack(app) or (APPS[app].root,)
    others = tuple((a, s) for a, s in phone.nav.stacks if a != app)
    return replace(phone, nav=Nav(app, (*others, (app, stack))))


def _back(phone: Phone) -> Phone:
    """Android's order: keyboard, dialog, page, app."""
    frame = phone.frame()
    if frame is None:
        return _front(phone, HOME)
    if frame.focus:
        return _top(phone, focus="")
    if frame.dialog:
        return _top(phone, dialog="")
    return _pop(phone)


def _pop(phone: Phone) -> Phone:
    """Leave the page on top; leaving the last one goes home and resets the app."""
    front = phone.nav.front
    stack = phone.nav.stack(front)
    if len(stack) > 1:
        return _put(phone, phone.of(front), stack[:-1])
    root = (APPS[front].root,)
    return replace(
        phone, nav=Nav(HOME, tuple((a, root if a == front else s) for a, s in phone.nav.stacks))
    )


def _scroll(phone: Phone, rows: int, where: Point | None) -> Phone:
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
    return _top(phone, scroll=min(max(0, frame.scroll + rows), listing.last))


def _swipe(phone: Phone, start: Point, end: Point) -> Phone:
    """Gesture navigation from the edges, else a scroll by as many rows as the finger moved."""
    dx, dy = end.x - start.x, end.y - start.y
    if abs(dx) > abs(dy):
        from_edge = (start.x <= EDGE and dx > 0) or (start.x >= 1 - EDGE and dx < 0)
        return _back(phone) if from_edge and abs(dx) > 0.1 else phone
    if start.y >= 1 - EDGE and dy < -0.1:
        return _front(phone, HOME)
    return _scroll(phone, -round(dy * HEIGHT / CELL_H), start)


def _type(phone: Phone, text: str, clear: bool) -> Phone:
    frame = phone.frame()
    if frame is None or not frame.focus:
        return phone
    old = "" if clear else frame.field(frame.focus)
    words = "".join(c if c.isprintable() else " " if c.isspace() else "" for c in text)
    return _fill(phone, frame, (old + words)[:MAX_TEXT])


def _fill(phone: Phone, frame: Frame, words: str) -> Phone:
    """Set the focused field; empty fields are not stored, so equal forms are equal states."""
    typed = dict(frame.fields) | {frame.focus: words}
    return _top(phone, fields=tuple(sorted((k, v) for k, v in typed.items() if v)))


def _letter(phone: Phone, letter: str) -> Phone:
    """A key of the keyboard; the first letter of a field is a capital."""
    frame = phone.frame()
    assert frame is not None
    return _type(phone, letter if frame.field(frame.focus) else letter.upper(), False)


def _erase(phone: Phone) -> Phone:
    frame = phone.frame()
    if frame is None or not frame.focus:
        return phone
    return _fill(phone, frame, frame.field(frame.focus)[:-1])


def _enter(phone: Phone) -> Phone:
    """On to the next field; from the last one the keyboard goes away."""
    frame = phone.frame()
    if frame is None or not frame.focus:
        return phone
    names = APPS[phone.nav.front].fields(frame)
    later = names[names.index(frame.focus) + 1 :]
    return _top(phone, focus=later[0] if later else "")


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
            return _front(phone, HOME)
        case "recents" | "app_switch" | "appselect":
            return _front(phone, RECENTS)
        case "backspace" | "delete" | "del":
            return _erase(phone)
        case "space":
            return _type(phone, " ", False)
        case _:
            return phone


def _wait(phone: Phone, ms: float) -> Phone:
    seconds = min(MAX_WAIT_S, math.ceil(ms / 1000))
    if seconds <= 0:
        return phone
    data = tuple((name, APPS[name].wait(part, seconds)) for name, part in phone.data)
    return replace(phone, clock=min(phone.clock + seconds, MAX_CLOCK_S), data=data)
