"""What to do next in Phone."""

from services.worldmodel.phone.apps.phone import Call, Calls, written
from services.worldmodel.phone.state import Frame, Phone
from services.worldmodel.phone.tiles import key_of
from services.worldmodel.tasks.touch import GIVE_UP, press, reach
from wmkit.domain.actions import Action

APP = "Phone"
RECENTS = Frame("Recents")


def phone(phone: Phone, now: Calls, want: Calls) -> Action | None:
    """Delete what has to go, block and unblock, then make the calls that are missing."""
    left = want.placed - now.placed
    kept = tuple(call for call in now.log if want.of(call.name))
    if left < 0 or kept != want.log[: len(want.log) - left]:
        return GIVE_UP
    frame = phone.frame()
    for name in now.names:
        if not want.of(name):
            if phone.nav.front == APP and frame is not None and frame.dialog == name:
                return press(phone, "confirm")
            page = (RECENTS, Frame("history", name))
            return reach(phone, APP, page) or press(phone, "delete")
    for name in sorted(set(now.blocked) ^ set(want.blocked)):
        if not now.of(name):
            return GIVE_UP
        page = (RECENTS, Frame("history", name))
        return reach(phone, APP, page) or press(phone, "block")
    return _call(phone, now, want.log[-left]) if left else None


def _call(phone: Phone, now: Calls, call: Call) -> Action:
    if call.way == "speed":
        speed = (Frame("Speed"),)
        return reach(phone, APP, speed) or press(phone, key_of(now.speed, call.name))
    if call.way == "recents":
        page = (RECENTS, Frame("history", call.name))
        return reach(phone, APP, page) or press(phone, "call")
    action = reach(phone, APP, (Frame("Keypad"),))
    if action is not None:
        return action
    frame = phone.frame()
    assert frame is not None and call.way == "keypad"
    digits, wanted = frame.field("Number"), call.name.replace("-", "")
    assert written(wanted) == call.name
    if digits == wanted:
        return press(phone, "dial")
    return press(phone, f"digit:{wanted[len(digits)]}" if wanted.startswith(digits) else "rub")
