"""The reactive expert: the next right action from any state, without memory.

Three combinators do the work: `reach` a page, `press` what is on it (scrolling it into
view), and `fill` a form. `repair` compares the data with what it should be and picks the
next thing to put right, side effects included; what cannot be put right is given up.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from services.worldmodel.phone.apps import APPS
from services.worldmodel.phone.apps.clock import Clock
from services.worldmodel.phone.apps.contacts import Contacts
from services.worldmodel.phone.apps.notes import Notes
from services.worldmodel.phone.apps.settings import CATEGORY, Settings
from services.worldmodel.phone.screen import find
from services.worldmodel.phone.state import HOME, RECENTS, Frame, Phone, Stack
from wmkit.domain.actions import (
    Action,
    Answer,
    Back,
    Finish,
    Home,
    LongPress,
    Scroll,
    Tap,
    Type,
)

if TYPE_CHECKING:
    from services.worldmodel.tasks.task import Look, Task

GIVE_UP = Finish("infeasible")


def next_action(task: Task, phone: Phone) -> Action:
    """Look first where the goal needs knowledge from a page, then act, then end."""
    look = task.look
    if look is not None and look.noted and not task.settled(phone) and not _noted(phone, look):
        action = look_at(phone, look)
        if action is not None:
            return action
    action = repair(task, phone)
    if action is None and look is not None and not look.noted:
        action = look_at(phone, look)
    if action is not None:
        return action
    if not task.feasible:
        return GIVE_UP
    return Finish("success") if task.answer is None else Answer(task.answer)


# Combinators


def reach(phone: Phone, app: str, target: Stack) -> Action | None:
    """The next action towards a page of an app, None when it is in front."""
    front = phone.nav.front
    if front == HOME:
        return press(phone, f"app:{app}")
    if front == RECENTS:
        card = find(phone, f"app:{app}")
        return Tap(card.at) if card else Home()
    stack = phone.nav.stack(front)
    if stack[-1].dialog:
        return press(phone, "cancel") if front == app else Home()
    if front != app:
        return Home()
    have, goal = _path(stack), _path(target)
    if have == goal:
        return None
    if have == goal[: len(have)]:
        return press(phone, APPS[app].door(target[len(have)]))
    if len(have) == 1:
        return press(phone, APPS[app].door(target[0]))
    arrow = find(phone, "back")
    return Tap(arrow.at) if stack[-1].focus and arrow else Back()


def press(phone: Phone, key: str, long: bool = False) -> Action:
    """Tap (or hold) what sends `key`, scrolling the list towards it first."""
    element = find(phone, key)
    if element is not None:
        return LongPress(element.at) if long else Tap(element.at)
    frame = phone.frame()
    listing = APPS[phone.nav.front].listing(phone.of(phone.nav.front), frame) if frame else None
    if frame is None or listing is None or key not in listing.keys:
        return GIVE_UP
    return Scroll("up" if listing.keys.index(key) < frame.scroll else "down")


def fill(phone: Phone, words: dict[str, str]) -> Action:
    """Fill the form in front and save it."""
    frame = phone.frame()
    assert frame is not None
    wrong = [name for name, text in words.items() if frame.field(name) != text]
    if not wrong:
        return press(phone, "save")
    if frame.focus in wrong:
        return Type(words[frame.focus], clear=frame.field(frame.focus) != "")
    return press(phone, f"field:{wrong[0]}")


def look_at(phone: Phone, look: Look) -> Action | None:
    """Open a page, and its list to the end where that is asked; None once it was seen.

    A page counts as seen while it is on top of its app's stack, in front or not.
    """
    stack = phone.nav.stack(look.app)
    seen = bool(stack) and _path(stack) == _path(look.stack) and not stack[-1].dialog
    if not seen:
        return reach(phone, look.app, look.stack)
    listing = APPS[look.app].listing(phone.of(look.app), stack[-1])
    if listing is None:
        return None
    first = stack[-1].scroll
    if look.to_end and first < listing.last:
        return reach(phone, look.app, look.stack) or Scroll("down")
    if look.item:
        row = listing.keys.index(look.item) - first
        if not 0 <= row < listing.visible:
            return reach(phone, look.app, look.stack) or Scroll("up" if row < 0 else "down")
    return None


def _path(stack: Stack) -> list[tuple[str, str]]:
    return [(frame.page, frame.item) for frame in stack]


def _noted(phone: Phone, look: Look) -> bool:
    """Whether what had to be looked up already stands in the form in front."""
    frame = phone.frame()
    return frame is not None and look.noted in [text for _, text in frame.fields]


# From the data as it is to the data as it should be


def repair(task: Task, phone: Phone) -> Action | None:
    """The next action that brings the data closer to `task.want`; None when it is there.

    The app in front comes first, then the others in order.
    """
    wanted = dict(task.want)
    for app in sorted(wanted, key=lambda name: name != phone.nav.front):
        action = _REPAIRS[app](phone, phone.of(app), wanted[app])
        if action is not None:
            return action
    return None


def _settings(phone: Phone, now: Settings, want: Settings) -> Action | None:
    wrong = [name for name, on in want.toggles if now.on(name) != on]
    stack = phone.nav.stack("Settings")
    here = stack[-1].item if stack else ""
    root = Frame("main")
    for name in sorted(wrong, key=lambda name: CATEGORY[name] != here):
        category = (root, Frame("category", CATEGORY[name]))
        return reach(phone, "Settings", category) or press(phone, f"flip:{name}")
    if now.timeout != want.timeout:
        page = (root, Frame("category", "Display"), Frame("timeout"))
        return reach(phone, "Settings", page) or press(phone, f"choose:{want.timeout}")
    return None


def _clock(phone: Phone, now: Clock, want: Clock) -> Action | None:
    alarms, timer = (Frame("Alarms"),), (Frame("Timer"),)
    frame = phone.frame()
    if any(now.alarm(alarm.label) is None for alarm in want.alarms):
        return GIVE_UP
    extra = [a.label for a in now.alarms if want.alarm(a.label) is None]
    if extra:
        if phone.nav.front == "Clock" and frame is not None and frame.dialog in extra:
            return press(phone, "confirm")
        return reach(phone, "Clock", alarms) or press(phone, f"flip:{extra[0]}", long=True)
    wrong = [a.label for a in now.alarms if want.alarm(a.label) != a]
    if wrong:
        visible = [label for label in wrong if find(phone, f"flip:{label}")]
        return reach(phone, "Clock", alarms) or press(phone, f"flip:{(visible or wrong)[0]}")
    running, should = now.timer_left_s > 0, want.timer_left_s > 0
    preset = now.timer_min == want.timer_min
    if running and not (should and preset):
        return reach(phone, "Clock", timer) or press(phone, "stop")
    if not preset:
        return reach(phone, "Clock", timer) or press(phone, f"preset:{want.timer_min}")
    if should and not running:
        return reach(phone, "Clock", timer) or press(phone, "start")
    return None


def _notes(phone: Phone, now: Notes, want: Notes) -> Action | None:
    root = Frame("list")
    for note in now.notes:
        kept = want.note(note.title)
        page = (root, Frame("note", note.title))
        if kept is None or kept.body != note.body:
            return _delete(phone, "Notes", page)
        if kept.pinned != note.pinned:
            return reach(phone, "Notes", page) or press(phone, "pin")
    missing = want.notes[: len(want.notes) - len(now.notes)]
    if want.notes[len(missing) :] != now.notes or len(missing) > 1:
        return GIVE_UP
    for note in missing:
        page = (root, Frame("edit"))
        words = {"Title": note.title, "Text": "".join(note.body)}
        return reach(phone, "Notes", page) or fill(phone, words)
    return None


def _contacts(phone: Phone, now: Contacts, want: Contacts) -> Action | None:
    root = Frame("People")
    if now.calls != want.calls[: len(now.calls)]:
        return GIVE_UP
    for person in now.people:
        kept = want.person(person.name)
        page = (root, Frame("contact", person.name))
        if kept is None or kept.number != person.number:
            return _delete(phone, "Contacts", page)
        if kept.starred != person.starred:
            return reach(phone, "Contacts", page) or press(phone, "star")
    for person in want.people:
        if now.person(person.name) is None:
            words = {"Name": person.name, "Phone": person.number}
            return reach(phone, "Contacts", (root, Frame("edit"))) or fill(phone, words)
    for name in want.calls[len(now.calls) :]:
        page = (root, Frame("contact", name))
        return reach(phone, "Contacts", page) or press(phone, "call")
    return None


def _delete(phone: Phone, app: str, page: Stack) -> Action:
    """Delete the entity of a page by its button and dialog."""
    frame = phone.frame()
    if phone.nav.front == app and frame is not None and frame.dialog == page[-1].item:
        return press(phone, "confirm")
    return reach(phone, app, page) or press(phone, "delete")


_REPAIRS: dict[str, Callable[[Phone, Any, Any], Action | None]] = {
    "Settings": _settings,
    "Clock": _clock,
    "Notes": _notes,
    "Contacts": _contacts,
}
