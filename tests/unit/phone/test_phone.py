"""Phone, played by hand; and that nothing on a screen tells who lies behind a speed-dial tile."""

from dataclasses import replace

import pytest

from services.worldmodel import tasks
from services.worldmodel.phone import Phone, boot, elements, html, screen_digest, step, title
from services.worldmodel.phone.apps.phone import Call, Calls, written
from services.worldmodel.phone.geometry import cell
from services.worldmodel.phone.tiles import CELLS
from tests.unit.phone.play import press
from wmkit.domain.actions import Back, OpenApp, Tap

PEOPLE = ((1, "Kim"), (4, "Ada"), (6, "Leo"))


def rows(phone: Phone) -> list[str]:
    return [e.text for e in elements(phone) if e.role == "row"]


def texts(phone: Phone) -> list[str]:
    return [e.text for e in elements(phone) if e.role == "text"]


def with_calls(calls: Calls, seed: int = 1) -> Phone:
    phone = boot(seed)
    data = tuple((n, calls if n == "Phone" else part) for n, part in phone.data)
    return step(replace(phone, data=data), OpenApp("Phone"))


@pytest.fixture
def phone() -> Phone:
    log = (Call("Ada", "Missed"), Call("Ben", "Outgoing"), Call("Ada", "Incoming"))
    return with_calls(Calls(log, PEOPLE))


def test_the_log_shows_everyone_once_the_latest_first(phone):
    assert rows(phone) == ["Ada", "Ben"]
    assert "Incoming" in texts(phone) and "Missed" not in texts(phone)
    history = press(phone, "open:Ada")
    assert title(history) == "Ada"
    assert [t for t in texts(history) if t.endswith(" call")] == ["Incoming call", "Missed call"]
    assert rows(press(history, "delete", "confirm")) == ["Ben"]
    assert press(history, "delete", "cancel") == history


def test_a_call_back_is_logged_and_stays_placed_when_history_goes(phone):
    called = press(phone, "open:Ben", "call")
    assert title(called) == "Ben" and "Calling" in texts(called)
    data = called.of("Phone")
    assert data.log[-1] == Call("Ben", "Outgoing", "recents") and data.placed == 1
    gone = press(called, "end", "delete", "confirm").of("Phone")
    assert [call.name for call in gone.log] == ["Ada", "Ada"] and gone.placed == 1


def test_seven_digits_are_dialled(phone):
    pad = press(phone, "tab:Keypad")
    assert press(pad, "dial") == pad == press(pad, "rub")
    typed = press(pad, *(f"digit:{d}" for d in "55501234"))
    assert "555-0123" in texts(typed)
    assert "555-012" in texts(press(typed, "rub"))
    called = press(typed, "dial")
    assert called.of("Phone").log[-1] == Call("555-0123", "Outgoing", "keypad")
    assert step(called, Back()).frame().fields == ()
    assert written("12") == "12" and written("5552") == "555-2"


def test_block_is_a_toggle(phone):
    history = press(phone, "open:Ben", "block")
    assert history.of("Phone").blocked == ("Ben",)
    assert press(history, "block").of("Phone").blocked == ()


def test_a_tile_calls_whom_it_hides(phone):
    speed = press(phone, "tab:Speed")
    for place, name in PEOPLE:
        called = press(speed, f"tile:{place}")
        assert rows(called) == [name] and title(called) == name
        assert called.of("Phone").log[-1] == Call(name, "Outgoing", "speed")


def test_nothing_tells_the_tiles_apart():
    """Whoever lies behind them, the page is the same to the last byte."""
    other = tuple(zip((1, 4, 6), ("Leo", "Kim", "Ada"), strict=True))
    here, there = (press(with_calls(Calls((), p)), "tab:Speed") for p in (PEOPLE, other))
    assert here.digest != there.digest
    assert screen_digest(here) == screen_digest(there) and html(here) == html(there)
    tiles = [e for e in elements(here) if e.key.startswith("tile:")]
    assert len(tiles) == 3 and {e.text for e in tiles} == {""}


def test_speed_dial_forgives_nothing_and_is_decided_close_by():
    lengths = []
    for seed in range(60):
        task = tasks.make("phone_speed_dial", seed)
        lengths.append(task.complexity)
        right = dict((name, place) for place, name in task.start.of("Phone").speed)
        (name,) = (n for n in right if n in task.goal)
        phone = task.start
        while title(phone) != "Phone" or phone.frame().page != "Speed":
            phone = step(phone, task.oracle(phone))
        for person, place in right.items():
            called = press(phone, f"tile:{place}")
            assert task.success(called, None, "success") is (person == name)
            again = press(called, "end", f"tile:{right[name]}")
            assert not task.success(again, None, "success")
            cleaned = press(again, "end", "tab:Recents", f"open:{person}", "delete", "confirm")
            assert not task.success(cleaned, None, "success")
    assert set(lengths) == {1, 2} and lengths.count(1) > 30


def test_another_way_to_call_is_not_speed_dial(phone):
    task = tasks.make("phone_speed_dial", 3)
    name = next(n for _, n in task.start.of("Phone").speed if n in task.goal)
    calls = replace(task.start.of("Phone"), log=(Call(name, "Missed"),))
    data = tuple((n, calls if n == "Phone" else p) for n, p in task.start.data)
    start = replace(task.start, data=data)
    tile = next(p for p, n in calls.speed if n == name)
    called = step(start, OpenApp("Phone"))
    by_recents = press(called, "tab:Recents", f"open:{name}", "call")
    assert not task.success(by_recents, None, "success")
    want = calls.calling(name, "speed")
    wanted = replace(task, want=tuple((n, want if n == "Phone" else p) for n, p in task.want))
    assert wanted.success(press(called, "tab:Speed", f"tile:{tile}"), None, "success")
    assert not wanted.success(by_recents, None, "success")


def test_tap_beside_the_tiles_does_nothing(phone):
    speed = press(phone, "tab:Speed")
    taken = {e.at for e in elements(speed) if e.clickable}
    for column, line in CELLS:
        if cell(column, line) not in taken:
            assert step(speed, Tap(cell(column, line))) == speed
