"""Calendar, played by hand."""

from dataclasses import replace

import pytest

from services.worldmodel.phone import Phone, boot, elements, step, title
from services.worldmodel.phone.apps.calendar import Calendar, Event, day_name, minute_of
from services.worldmodel.phone.screen import find
from tests.unit.phone.play import press
from wmkit.domain.actions import Back, Enter, OpenApp, Scroll, Type

EXAM = Event("Exam", 1, 600)
YOGA = Event("Yoga", 1, 1080, remind=True)
MOVIE = Event("Movie", 13, 1200)


def texts(phone: Phone) -> list[str]:
    return [e.text for e in elements(phone) if e.role == "text"]


def rows(phone: Phone) -> list[str]:
    return [e.text for e in elements(phone) if e.role == "row"]


@pytest.fixture
def phone() -> Phone:
    phone = boot(1)
    data = Calendar((EXAM, YOGA, MOVIE), ((0, "Picnic"), (2, "Party"), (7, "Match")))
    parts = tuple((n, data if n == "Calendar" else part) for n, part in phone.data)
    return step(replace(phone, data=parts), OpenApp("Calendar"))


def test_days_follow_the_weekdays_of_may_2024(phone):
    """The sixth of May 2024 was a Monday."""
    assert [day_name(day) for day in (0, 1, 6, 7, 13)] == [
        "Mon 6",
        "Tue 7",
        "Sun 12",
        "Mon 13",
        "Sun 19",
    ]
    assert rows(phone)[:2] == ["Mon 6", "Tue 7"] and texts(phone).count("2 events") == 1
    end = step(step(phone, Scroll("down")), Scroll("down"))
    assert rows(end)[-1] == "Sun 19" and "1 event" in texts(end)


def test_a_day_lists_its_events_by_time(phone):
    day = press(phone, "day:1")
    assert title(day) == "Tue 7" and rows(day) == ["Exam", "Yoga"]
    assert {"Tue 7, 10:00", "Tue 7, 18:00"} <= set(texts(day))
    assert rows(press(phone, "tab:Agenda")) == ["Exam", "Yoga", "Movie"]


def test_an_event_is_written_into_its_day(phone):
    form = step(press(phone, "day:3", "add"), Type("Haircut"))
    form = step(form, Enter())
    assert press(form, "save") == form
    wrong = step(form, Type("25:00"))
    assert "Write the time like 18:30" in texts(wrong) and press(wrong, "save") == wrong
    saved = press(step(wrong, Type("9:05", clear=True)), "save")
    assert saved.of("Calendar").event("Haircut") == Event("Haircut", 3, 545)
    assert rows(saved) == ["Haircut"] and title(saved) == "Thu 9"
    taken = step(press(saved, "add"), Type("Exam"))
    assert "There is an event of that title" in texts(taken)


def test_times_are_read_strictly():
    given = ("0:00", " 18:30 ", "23:59", "24:00", "7:60", "7", "7:5", "seven", "")
    assert [minute_of(words) for words in given] == [
        0,
        1110,
        1439,
        None,
        None,
        None,
        None,
        None,
        None,
    ]


def test_an_event_is_moved_reminded_of_and_deleted(phone):
    page = press(phone, "tab:Agenda", "open:Exam")
    moved = press(page, "move", "to:5")
    assert moved.of("Calendar").event("Exam") == replace(EXAM, day=5)
    assert title(moved) == "Exam" and "Sat 11, 10:00" in texts(moved)
    assert [e.title for e in moved.of("Calendar").events] == ["Yoga", "Exam", "Movie"]
    assert press(page, "remind").of("Calendar").event("Exam").remind is True
    gone = press(page, "delete", "confirm")
    assert gone.of("Calendar").events == (YOGA, MOVIE) and rows(gone) == ["Yoga", "Movie"]


def test_an_envelope_accepts_at_once_and_for_good(phone):
    invites = press(phone, "tab:Invites")
    opened = press(invites, "tile:2")
    assert title(opened) == "Party" and opened.of("Calendar").accepted == ("Party",)
    gone = press(opened, "delete", "confirm").of("Calendar")
    assert gone.event("Party") is None and gone.accepted == ("Party",)
    assert find(step(opened, Back()), "tile:2") is None
