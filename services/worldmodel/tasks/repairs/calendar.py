"""What to do next in Calendar."""

from services.worldmodel.phone.apps.calendar import Calendar, Event
from services.worldmodel.phone.state import Frame, Phone, Stack
from services.worldmodel.phone.tiles import key_of
from services.worldmodel.tasks.touch import GIVE_UP, fill, press, reach
from wmkit.domain.actions import Action

APP = "Calendar"


def calendar(phone: Phone, now: Calendar, want: Calendar) -> Action | None:
    """Accept, delete, change, then add; what was accepted stays."""
    if want.accepted[: len(now.accepted)] != now.accepted:
        return GIVE_UP
    for title in want.accepted[len(now.accepted) :]:
        invites = (Frame("Invites"),)
        return reach(phone, APP, invites) or press(phone, key_of(now.invites, title))
    for event in now.events:
        kept = want.event(event.title)
        if kept != event:
            return _change(phone, event, kept)
    for event in want.events:
        if now.event(event.title) is None:
            page = (Frame("Days"), Frame("day", str(event.day)), Frame("edit", str(event.day)))
            words = {"Title": event.title, "Time": event.time}
            return reach(phone, APP, page) or fill(phone, words)
    return None


def _change(phone: Phone, event: Event, kept: Event | None) -> Action:
    """Delete an event, move it to another day, or turn its reminder on or off."""
    page = event_page(phone, event)
    frame = phone.frame()
    if kept is None or kept.minute != event.minute:
        if phone.nav.front == APP and frame is not None and frame.dialog == event.title:
            return press(phone, "confirm")
        return reach(phone, APP, page) or press(phone, "delete")
    if kept.remind != event.remind:
        return reach(phone, APP, page) or press(phone, "remind")
    moving = (*page, Frame("move", event.title))
    return reach(phone, APP, moving) or press(phone, f"to:{kept.day}")


def event_page(phone: Phone, event: Event) -> Stack:
    """The page of an event: below the day or the agenda, whichever is open."""
    stack = phone.nav.stack(APP)
    inner = Frame("event", event.title)
    if stack and stack[0].page == "Days" and phone.nav.front == APP:
        return (Frame("Days"), Frame("day", str(event.day)), inner)
    return (Frame("Agenda"), inner)
