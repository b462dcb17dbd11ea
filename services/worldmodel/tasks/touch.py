"""Three combinators from which every plan is made: `reach`, `press`, `fill`; and `look_at`.

Each looks at the phone as it is and gives the next action, so that plans need no memory
and start anywhere. What is to be done is decided elsewhere (`repairs`, `oracle`).
"""

from dataclasses import dataclass

from services.worldmodel.phone.apps import APPS
from services.worldmodel.phone.launcher import page_of
from services.worldmodel.phone.screen import find
from services.worldmodel.phone.state import HOME, RECENTS, Phone, Stack
from wmkit.domain.actions import Action, Back, Enter, Finish, Home, LongPress, Scroll, Tap, Type

GIVE_UP = Finish("infeasible")


@dataclass(frozen=True)
class Look:
    """A page that has to be seen: the app's stack there.

    `to_end` wants its list scrolled to the end, `item` one row of it (by key) in view.
    `noted` is what is read there for use in a form later, or for a decision; without it the
    page is what the end of the episode depends on. `use` names the app that needs what was
    noted: once its data is right the page is needed no more. `typed` is a field of the page
    below and what to enter there to get to a page that nothing leads to.
    """

    app: str
    stack: Stack
    to_end: bool = False
    item: str = ""
    noted: str = ""
    use: str = ""
    typed: tuple[str, str] = ("", "")


def reach(phone: Phone, app: str, target: Stack) -> Action | None:
    """The next action towards a page of an app, None when it is in front."""
    front = phone.nav.front
    if front == HOME:
        return launch(phone, app)
    if front == RECENTS:
        card = find(phone, f"app:{app}")
        return Tap(card.at) if card else Home()
    stack = phone.nav.stack(front)
    if stack[-1].dialog:
        return press(phone, "cancel") if front == app else Home()
    if front != app:
        return Home()
    have, goal = path(stack), path(target)
    if have == goal:
        return None
    if have == goal[: len(have)]:
        return press(phone, APPS[app].door(target[len(have)]))
    if len(have) == 1:
        return press(phone, APPS[app].door(target[0]))
    arrow = find(phone, "back")
    return Tap(arrow.at) if stack[-1].focus and arrow else Back()


def launch(phone: Phone, app: str) -> Action:
    """On the home screen: tap an app's icon, on the page where it lies."""
    icon = find(phone, f"app:{app}")
    if icon is not None:
        return Tap(icon.at)
    page = page_of(phone.launcher, app)
    if page is None:
        return GIVE_UP
    return Scroll("right" if page > phone.nav.page else "left")


def press(phone: Phone, key: str, long: bool = False) -> Action:
    """Tap (or hold) what sends `key`, scrolling the list towards it first."""
    element = find(phone, key)
    if element is not None:
        return LongPress(element.at) if long else Tap(element.at)
    frame = phone.frame()
    listing = APPS[phone.nav.front].listing(phone.of(phone.nav.front), frame) if frame else None
    if frame is None or listing is None or key not in listing.keys:
        return GIVE_UP
    return Scroll("up" if listing.row_of(key) < frame.scroll else "down")


def fill(phone: Phone, words: dict[str, str], done: str = "save") -> Action:
    """Fill the form in front and save it; `done` is the key that does so."""
    frame = phone.frame()
    assert frame is not None
    wrong = [name for name, text in words.items() if frame.field(name) != text]
    if not wrong:
        return press(phone, done)
    if frame.focus in wrong:
        return Type(words[frame.focus], clear=frame.field(frame.focus) != "")
    return press(phone, f"field:{wrong[0]}")


def enter(phone: Phone, field: str, words: str) -> Action:
    """Write words into a field of the page in front and submit them."""
    frame = phone.frame()
    assert frame is not None
    if frame.focus != field:
        return press(phone, f"field:{field}")
    if frame.field(field) != words:
        return Type(words, clear=frame.field(field) != "")
    return Enter()


def look_at(phone: Phone, look: Look) -> Action | None:
    """Open a page, and its list to the end where that is asked; None once it was seen.

    A page counts as seen while it is on top of its app's stack, in front or not.
    """
    stack = phone.nav.stack(look.app)
    seen = bool(stack) and path(stack) == path(look.stack) and not stack[-1].dialog
    if not seen:
        return _approach(phone, look)
    listing = APPS[look.app].listing(phone.of(look.app), stack[-1])
    if listing is None:
        return None
    first = stack[-1].scroll
    if look.to_end and first < listing.last:
        return reach(phone, look.app, look.stack) or Scroll("down")
    if look.item:
        row = listing.row_of(look.item) - first
        if not 0 <= row < listing.visible:
            return reach(phone, look.app, look.stack) or Scroll("up" if row < 0 else "down")
    return None


def _approach(phone: Phone, look: Look) -> Action | None:
    """By a key that leads to the page, else by typing."""
    *_, below, page = (None, *look.stack)
    at_door = below is not None and shows(phone, look.app, below.page, below.item)
    if look.typed[0] and at_door and find(phone, APPS[look.app].door(page)) is None:
        return enter(phone, *look.typed)
    return reach(phone, look.app, look.stack)


def shows(phone: Phone, app: str, page: str, item: str = "") -> bool:
    """Whether a page of an app is in front, with no dialog over it."""
    frame = phone.frame()
    if phone.nav.front != app or frame is None or frame.dialog:
        return False
    return (frame.page, frame.item) == (page, item)


def path(stack: Stack) -> list[tuple[str, str]]:
    """The pages of a back stack without their state."""
    return [(frame.page, frame.item) for frame in stack]
