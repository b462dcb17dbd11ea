"""Messages, played by hand."""

from dataclasses import replace

import pytest

from services.worldmodel.phone import Phone, boot, elements, step, title
from services.worldmodel.phone.apps.threads import Message, Messages, Pending, Thread
from services.worldmodel.phone.screen import find
from tests.unit.phone.play import press
from wmkit.domain.actions import Back, Enter, Home, LongPress, OpenApp, Scroll, Swipe, Type, Wait
from wmkit.domain.screen import Point

ADA = Thread("Ada", (Message("Good morning"), Message("How are you?")), unread=True)
BEN = Thread("Ben", (Message("Thanks a lot", mine=True),), muted=True)
PENDING = Pending(90, "Ben", "See you soon")


def texts(phone: Phone) -> list[str]:
    return [e.text for e in elements(phone) if e.role == "text"]


def rows(phone: Phone) -> list[str]:
    return [e.text for e in elements(phone) if e.role == "row"]


def with_messages(messages: Messages) -> Phone:
    phone = boot(1)
    data = tuple((n, messages if n == "Messages" else part) for n, part in phone.data)
    return step(replace(phone, data=data), OpenApp("Messages"))


@pytest.fixture
def phone() -> Phone:
    data = Messages((ADA, BEN), ((0, "Eve"), (5, "Ada"), (7, "Kim")), (PENDING,))
    return with_messages(data)


def test_reading_clears_the_mark_of_one(phone):
    assert rows(phone) == ["Ada", "Ben"]
    assert [e.tone for e in elements(phone) if e.role == "row"] == ["gold", ""]
    opened = press(phone, "open:Ada")
    assert title(opened) == "Ada" and {"Good morning", "How are you?"} <= set(texts(opened))
    assert opened.of("Messages").threads == (replace(ADA, unread=False), BEN)


def test_a_reply_goes_out_once_and_comes_first(phone):
    page = press(phone, "open:Ben")
    assert press(page, "send") == page
    typed = step(press(page, "field:Reply"), Type("On my way"))
    for sent in (press(typed, "send"), step(typed, Enter())):
        data = sent.of("Messages")
        assert data.threads[0].messages == (*BEN.messages, Message("On my way", mine=True))
        assert [t.name for t in data.threads] == ["Ben", "Ada"] and data.sent == 1
        assert sent.frame().fields == () and "On my way" in texts(sent)


def test_the_form_writes_to_somebody_new(phone):
    form = press(phone, "add")
    assert form.frame().focus == "To"
    half = step(form, Type("Gus"))
    assert press(half, "send") == half
    sent = press(step(step(half, Enter()), Type("Call me")), "send")
    assert sent.of("Messages").threads[0] == Thread("Gus", (Message("Call me", mine=True),))
    assert title(sent) == "Gus" and title(step(sent, Back())) == "Messages"


def test_a_long_press_asks_before_a_conversation_is_deleted(phone):
    asked = step(phone, LongPress(find(phone, "open:Ben").at))
    assert press(asked, "cancel") == phone
    assert press(asked, "confirm").of("Messages").threads == (ADA,)


def test_muting_is_a_toggle(phone):
    page = press(phone, "open:Ben", "mute")
    assert page.of("Messages").thread("Ben").muted is False
    assert press(page, "mute").of("Messages").thread("Ben").muted is True


def test_a_gift_opens_once(phone):
    gifts = press(phone, "gifts")
    opened = press(gifts, "tile:5")
    assert rows(opened) == ["Ada"] and opened.of("Messages").opened == ("Ada",)
    back = step(opened, Back())
    assert find(back, "tile:5") is None and find(back, "tile:0") and find(back, "tile:7")


def test_a_message_arrives_while_one_waits_and_a_notification_leads_there(phone):
    loud = Messages((ADA, replace(BEN, muted=False)), (), (PENDING,))
    start = step(with_messages(loud), Home())
    early = step(start, Wait(89_000))
    assert early.of("Messages").threads == loud.threads
    late = step(early, Wait(1000))
    arrived = late.of("Messages").threads[0]
    assert (arrived.name, arrived.messages[-1]) == ("Ben", Message("See you soon", late=True))
    assert arrived.unread and late.of("Messages").pending == ()
    assert late.of("Messages").facts() == loud.facts()
    shade = step(late, Swipe(Point(0.5, 0.0), Point(0.5, 0.6)))
    there = press(shade, "os.notice:0")
    assert title(there) == "Ben" and "See you soon" in texts(there)
    quiet = step(step(phone, Home()), Wait(90_000))
    assert quiet.system.notices == phone.system.notices
    assert quiet.of("Messages").threads[0].name == "Ben"


def test_reading_is_free_unless_the_goal_is_about_it():
    start = Messages((ADA, BEN), ())
    read = start.having(replace(ADA, unread=False))
    assert read.eased(start, start) == start
    assert start.eased(start, read) == start != read


def test_a_long_conversation_opens_at_its_end_and_scrolls():
    said = tuple(Message(f"Line {i}") for i in range(12))
    top = press(with_messages(Messages((Thread("Leo", said),), ())), "open:Leo")
    assert [t for t in texts(top) if t.startswith("Line")] == [f"Line {i}" for i in range(4, 12)]
    up = step(step(top, Scroll("up")), Scroll("up"))
    assert [t for t in texts(up) if t.startswith("Line")] == [f"Line {i}" for i in range(8)]
    typing = press(up, "field:Reply")
    assert [t for t in texts(typing) if t.startswith("Line")] == [f"Line {i}" for i in range(8, 12)]
