"""Puts the Browser right: bookmarks, downloads, and what is sent by form."""

from services.worldmodel.phone.apps.browser import NAME, Browser
from services.worldmodel.phone.screen import find
from services.worldmodel.phone.state import Frame, Phone
from services.worldmodel.tasks.touch import GIVE_UP, enter, fill, press, reach, shows
from wmkit.domain.actions import Action

START = (Frame("start"),)


def browser(phone: Phone, now: Browser, want: Browser) -> Action | None:
    """The next action; a message that was sent by mistake is given up."""
    if now.sent != want.sent[: len(now.sent)]:
        return GIVE_UP
    for message in want.sent[len(now.sent) :]:
        words = {"Name": message.name, "Text": message.text}
        return visit(phone, message.address) or fill(phone, words, "send")
    wrong = {*now.bookmarks} ^ {*want.bookmarks}
    for address in sorted(wrong, key=lambda a: a != _here(phone)):
        return visit(phone, address) or press(phone, "bookmark")
    for name in now.downloads:
        if name not in want.downloads:
            frame = phone.frame()
            if phone.nav.front == NAME and frame is not None and frame.dialog == name:
                return press(phone, "confirm")
            return _downloads(phone) or press(phone, f"load:{name}", long=True)
    for name in want.downloads:
        if name not in now.downloads:
            holder = next(s for s in now.sites if ("file:" + name) in [t for _, t in s.links])
            return visit(phone, holder.address) or press(phone, f"get:{name}")
    return None


def _here(phone: Phone) -> str:
    frame = phone.frame()
    at_page = phone.nav.front == NAME and frame is not None and frame.page == "page"
    return frame.item if at_page and frame is not None else ""


def visit(phone: Phone, address: str) -> Action | None:
    """The next action towards an address: by a link in sight, else typed; None when there."""
    stack = phone.nav.stack(NAME)
    if phone.nav.front != NAME:
        return reach(phone, NAME, stack or START)
    frame = stack[-1]
    if frame.dialog:
        return press(phone, "cancel")
    if _here(phone) == address:
        return None
    if frame.page not in ("start", "page", "results"):
        return reach(phone, NAME, START)
    if find(phone, f"visit:{address}") is not None and not frame.focus:
        return press(phone, f"visit:{address}")
    return enter(phone, "Address", address)


def _downloads(phone: Phone) -> Action | None:
    if shows(phone, NAME, "downloads"):
        return None
    if phone.nav.front == NAME and find(phone, "downloads") is not None:
        return press(phone, "downloads")
    return reach(phone, NAME, START)
