"""Puts Mail right: stars, folders, read and unread, and what has to be sent."""

from services.worldmodel.phone.apps.mail import NAME, Letter, Mail, Sent
from services.worldmodel.phone.state import Frame, Phone
from services.worldmodel.tasks.touch import GIVE_UP, fill, press, reach, shows
from wmkit.domain.actions import Action

INBOX, FOLDERS = Frame("Inbox"), Frame("Folders")


def mail(phone: Phone, now: Mail, want: Mail) -> Action | None:
    """The next action; sent mails, and those deleted for good, are beyond repair."""
    if now.sent != want.sent[: len(now.sent)]:
        return GIVE_UP
    if any(now.letter(letter.subject) is None for letter in want.letters):
        return GIVE_UP
    for sent in want.sent[len(now.sent) :]:
        return _send(phone, now, sent)
    for letter in now.letters:
        action = _letter(phone, letter, want.letter(letter.subject))
        if action is not None:
            return action
    return None


def _letter(phone: Phone, now: Letter, want: Letter | None) -> Action | None:
    if now == want:
        return None
    if want is None:
        frame = phone.frame()
        if phone.nav.front == NAME and frame is not None and frame.dialog == now.subject:
            return press(phone, "confirm")
        return _page(phone, now) or press(phone, "delete")
    if now.starred != want.starred:
        return _page(phone, now) or press(phone, "star")
    if now.folder != want.folder:
        key = {"Trash": "delete", "Inbox": "inbox"}.get(want.folder)
        key = key or ("archive" if now.folder == "Inbox" else "inbox")
        return _page(phone, now) or press(phone, key)
    if want.unread:
        return _page(phone, now) or press(phone, "unread")
    return _page(phone, now)


def _page(phone: Phone, letter: Letter) -> Action | None:
    """To a mail's page, by its folder where it is not in front already."""
    if shows(phone, NAME, "letter", letter.subject):
        return None
    page = Frame("letter", letter.subject)
    if letter.folder == "Inbox":
        return reach(phone, NAME, (INBOX, page))
    return reach(phone, NAME, (FOLDERS, Frame("folder", letter.folder), page))


def _send(phone: Phone, now: Mail, sent: Sent) -> Action:
    """Reply where it is a reply, else write a new mail."""
    letter = now.letter(sent.subject.removeprefix("Re: "))
    if letter is None or letter.sender != sent.to or letter.subject == sent.subject:
        words = {"To": sent.to, "Subject": sent.subject, "Text": sent.text}
        return reach(phone, NAME, (INBOX, Frame("compose"))) or fill(phone, words, "send")
    if shows(phone, NAME, "reply", letter.subject):
        return fill(phone, {"Text": sent.text}, "send")
    return _page(phone, letter) or press(phone, "reply")
