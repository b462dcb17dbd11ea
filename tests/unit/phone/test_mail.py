"""Mail, played by hand on a few mails."""

from dataclasses import replace

import pytest

from services.worldmodel.phone import Phone, boot, elements, step, title
from services.worldmodel.phone.apps.mail import Letter, Mail, Sent
from tests.unit.phone.play import press
from wmkit.domain.actions import Enter, OpenApp, Type

LETTERS = (
    Letter("Party", "Ada", ("Date 3 June", "Starts 19:30"), unread=True),
    Letter("Invoice", "Ben", ("Amount $42.50",), starred=True),
    Letter("Rent", "Cleo", ("Amount $640.00",), folder="Archive"),
    Letter("Offer", "Ben", (), folder="Trash"),
)


def rows(phone: Phone) -> list[str]:
    return [e.text for e in elements(phone) if e.role == "row"]


def texts(phone: Phone) -> list[str]:
    return [e.text for e in elements(phone) if e.role == "text"]


@pytest.fixture
def phone() -> Phone:
    phone = boot(1)
    data = tuple((n, Mail(LETTERS) if n == "Mail" else part) for n, part in phone.data)
    return step(replace(phone, data=data), OpenApp("Mail"))


def test_opening_a_mail_reads_it(phone):
    assert rows(phone) == ["Party", "Invoice"] and "Ada, new" in texts(phone)
    page = press(phone, "letter:Party")
    assert title(page) == "Party" and {"Ada", "Date 3 June", "Starts 19:30"} <= set(texts(page))
    assert not page.of("Mail").letter("Party").unread
    unread = press(page, "unread")
    assert unread.of("Mail") == phone.of("Mail") and title(unread) == "Inbox"


def test_reading_is_harmless_unless_it_is_asked_for():
    start = Mail(LETTERS)
    read = start.changing("Party", unread=False)
    assert read.eased(start, start) == start
    assert read.eased(start, read) == read and start.eased(start, read) == start != read
    both = read.changing("Party", starred=True)
    assert both.eased(start, start) != start


def test_a_mail_moves_between_folders(phone):
    archived = press(phone, "letter:Invoice", "archive")
    assert rows(archived) == ["Party"] and "Archived" in texts(archived)
    folder = press(archived, "tab:Folders", "folder:Archive")
    assert rows(folder) == ["Invoice", "Rent"]
    back = press(folder, "letter:Invoice", "inbox").of("Mail")
    assert back == phone.of("Mail")
    binned = press(phone, "letter:Invoice", "delete").of("Mail")
    assert binned.letter("Invoice").folder == "Trash" and binned.within("Starred") == ()


def test_only_the_trash_deletes_for_good_and_asks_first(phone):
    page = press(phone, "tab:Folders", "folder:Trash", "letter:Offer", "delete")
    assert press(page, "cancel").of("Mail") == phone.of("Mail")
    gone = press(page, "confirm")
    assert gone.of("Mail").letters == LETTERS[:3] and title(gone) == "Trash"


def test_stars_are_a_folder_of_their_own(phone):
    page = press(phone, "letter:Party", "star")
    assert [x.starred for x in page.of("Mail").letters[:2]] == [True, True]
    starred = press(phone, "tab:Folders", "folder:Starred")
    assert rows(starred) == ["Invoice"]


def test_a_reply_goes_to_the_sender(phone):
    form = press(phone, "letter:Party", "reply")
    assert press(form, "send").of("Mail").sent == ()
    sent = press(step(form, Type("Gladly")), "send")
    assert sent.of("Mail").sent == (Sent("Ada", "Re: Party", "Gladly"),)
    assert title(sent) == "Party" and "Sent" in texts(sent)


def test_a_mail_is_written_field_by_field(phone):
    form = step(step(press(phone, "add"), Type("Ivy")), Enter())
    form = step(step(form, Type("Keys")), Enter())
    form = step(form, Type("Under the mat"))
    sent = press(form, "send")
    assert sent.of("Mail").sent == (Sent("Ivy", "Keys", "Under the mat"),)
    page = press(sent, "tab:Folders", "folder:Sent")
    assert rows(page) == ["Ivy"]
    assert {"Keys", "Under the mat"} <= set(texts(press(page, "sent:1")))
    nobody = press(press(phone, "add"), "send")
    assert nobody.of("Mail") == phone.of("Mail") and "To whom?" in texts(nobody)


def test_search_knows_senders_and_leaves_the_trash_out(phone):
    page = step(press(phone, "search"), Type("ben"))
    assert rows(page) == ["Invoice"]
    assert rows(step(page, Type("rent", clear=True))) == ["Rent"]
