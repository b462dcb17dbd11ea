"""What to do next in Settings, Clock, Notes and Contacts."""

from services.worldmodel.phone.apps.clock import Clock
from services.worldmodel.phone.apps.contacts import Contacts
from services.worldmodel.phone.apps.notes import Notes
from services.worldmodel.phone.apps.settings import CATEGORY, Settings
from services.worldmodel.phone.screen import find
from services.worldmodel.phone.state import Frame, Phone, Stack
from services.worldmodel.tasks.touch import GIVE_UP, fill, press, reach
from wmkit.domain.actions import Action


def settings(phone: Phone, now: Settings, want: Settings) -> Action | None:
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


def clock(phone: Phone, now: Clock, want: Clock) -> Action | None:
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


def notes(phone: Phone, now: Notes, want: Notes) -> Action | None:
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


def contacts(phone: Phone, now: Contacts, want: Contacts) -> Action | None:
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
