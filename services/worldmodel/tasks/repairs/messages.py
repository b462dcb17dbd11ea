"""What to do next in Messages."""

from services.worldmodel.phone.apps.threads import Messages, Thread
from services.worldmodel.phone.state import Frame, Phone
from services.worldmodel.phone.tiles import key_of
from services.worldmodel.tasks.touch import GIVE_UP, fill, press, reach
from wmkit.domain.actions import Action

APP = "Messages"
LIST = Frame("list")


def messages(phone: Phone, now: Messages, want: Messages) -> Action | None:
    """Open gifts, delete, mute, read, then write; what was sent or opened stays."""
    if want.opened[: len(now.opened)] != now.opened or now.sent > want.sent:
        return GIVE_UP
    for name in want.opened[len(now.opened) :]:
        page = (LIST, Frame("gifts"))
        return reach(phone, APP, page) or press(phone, key_of(now.gifts, name))
    frame = phone.frame()
    for old in now.threads:
        if want.thread(old.name) is None:
            if phone.nav.front == APP and frame is not None and frame.dialog == old.name:
                return press(phone, "confirm")
            return reach(phone, APP, (LIST,)) or press(phone, f"open:{old.name}", long=True)
    for kept in want.threads:
        action = _write(phone, now.thread(kept.name), kept)
        if action is not None:
            return action
    return None


def _write(phone: Phone, now: Thread | None, want: Thread) -> Action | None:
    """Bring one conversation to its wanted state; a new one begins in the form."""
    wanted = tuple(m for m in want.messages if not m.late)
    have = () if now is None else tuple(m for m in now.messages if not m.late)
    rest = wanted[len(have) :]
    if wanted[: len(have)] != have or any(not message.mine for message in rest):
        return GIVE_UP
    if now is None:
        words = {"To": want.name, "Text": rest[0].text}
        return reach(phone, APP, (LIST, Frame("new"))) or fill(phone, words, "send")
    page = (LIST, Frame("thread", want.name))
    if now.muted != want.muted:
        return reach(phone, APP, page) or press(phone, "mute")
    if rest:
        return reach(phone, APP, page) or fill(phone, {"Reply": rest[0].text}, "send")
    if now.unread and not want.unread:
        return reach(phone, APP, page)
    return GIVE_UP if want.unread and not now.unread else None
