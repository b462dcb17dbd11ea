"""The apps, played by hand: each expectation is written down, not computed by the phone."""

from dataclasses import replace

import pytest

from services.worldmodel.phone import boot, elements, step, title
from services.worldmodel.phone.screen import find
from services.worldmodel.phone.state import Phone
from tests.unit.phone.play import press
from wmkit.domain.actions import (
    Answer,
    Back,
    DoubleTap,
    Enter,
    Finish,
    Home,
    Key,
    LongPress,
    OpenApp,
    Recents,
    Scroll,
    Swipe,
    Tap,
    Type,
    Wait,
)
from wmkit.domain.screen import Point


def rows(phone: Phone) -> list[str]:
    return [e.text for e in elements(phone) if e.role == "row"]


def texts(phone: Phone) -> list[str]:
    return [e.text for e in elements(phone) if e.role == "text"]


def opened(phone: Phone, app: str, *keys: str) -> Phone:
    return press(step(phone, OpenApp(app)), *keys)


@pytest.fixture
def phone() -> Phone:
    return boot(1)


def test_phones_differ_by_seed_and_only_by_seed():
    assert boot(7) == boot(7)
    assert len({boot(seed).digest for seed in range(50)}) == 50
    assert len({boot(seed).launcher for seed in range(50)}) > 40


def test_a_toggle_flips_alone_and_tints_its_row(phone):
    data = phone.of("Settings")
    network = opened(phone, "Settings", "open:Network")
    assert title(network) == "Network"
    name = rows(network)[0]
    flipped = press(network, f"flip:{name}").of("Settings")
    assert flipped.on(name) is not data.on(name)
    assert dict(flipped.toggles) == dict(data.toggles) | {name: not data.on(name)}
    assert press(network, f"flip:{name}", f"flip:{name}") == network
    row = find(network, f"flip:{name}")
    assert row.checked is data.on(name)
    assert step(network, DoubleTap(row.at)) == network
    far_right = step(network, Tap(Point(0.95, row.at.y)))
    assert far_right.of("Settings") == flipped


def test_timeout_is_one_of_three(phone):
    page = opened(phone, "Settings", "open:Display", "timeout")
    assert rows(page) == ["15 s", "1 min", "5 min"]
    assert press(page, "choose:5 min").of("Settings").timeout == "5 min"
    tinted = [e.text for e in elements(press(page, "choose:15 s")) if e.role == "row" and e.tone]
    assert tinted == ["15 s"]


def test_alarms_scroll_within_their_ends(phone):
    labels = [alarm.label for alarm in phone.of("Clock").alarms]
    top = opened(phone, "Clock")
    assert rows(top) == labels[:6]
    down = step(top, Scroll("down"))
    assert rows(down) == labels[2:]
    assert step(down, Scroll("down")) == down
    assert step(down, Scroll("up")) == top
    assert step(top, Scroll("up")) == top
    assert step(top, Scroll("left")) == top
    assert step(top, Scroll("down", Point(0.5, 0.05))) == top
    one_row = step(top, Swipe(Point(0.5, 0.5), Point(0.5, 0.4)))
    assert rows(one_row) == labels[1:7]


def test_a_long_press_asks_before_an_alarm_is_deleted(phone):
    top = opened(phone, "Clock")
    labels = rows(top)
    first = find(top, f"flip:{labels[0]}")
    asked = step(top, LongPress(first.at))
    assert "Delete?" in texts(asked) and labels[0] in texts(asked)
    assert {e.text for e in elements(asked) if e.clickable} == {"Cancel", "Delete"}
    assert press(asked, "cancel") == top == step(asked, Back())
    assert step(asked, Tap(first.at)) == asked
    gone = press(asked, "confirm")
    left = [alarm.label for alarm in gone.of("Clock").alarms]
    assert left == [a.label for a in phone.of("Clock").alarms if a.label != labels[0]]


def test_deleting_from_the_end_of_a_list_keeps_it_in_range(phone):
    down = step(opened(phone, "Clock"), Scroll("down"))
    last = rows(down)[-1]
    gone = press(step(down, LongPress(find(down, f"flip:{last}").at)), "confirm")
    assert gone.frame().scroll == 1
    assert len(rows(gone)) == 6


def test_the_timer_runs_only_while_one_waits(phone):
    page = opened(phone, "Clock", "tab:Timer", "preset:3")
    assert "03:00" in texts(page)
    running = press(page, "start")
    assert find(running, "preset:5") is None
    assert [e.enabled for e in elements(running) if e.role == "row"] == [False] * 4
    assert "03:00" in texts(opened(step(running, Home()), "Clock"))
    assert "02:55" in texts(step(running, Wait(5000)))
    assert step(running, Wait(0)) == running
    over = step(running, Wait(180_000))
    assert over.of("Clock").timer_left_s == 0
    assert find(over, "start")
    assert over.clock == phone.clock + 180
    assert press(running, "stop").of("Clock") == page.of("Clock")


def test_a_note_is_pinned_deleted_and_written(phone):
    page = opened(phone, "Notes")
    first = phone.of("Notes").notes[0]
    note = press(page, f"open:{first.title}")
    assert title(note) == first.title and set(first.body) <= set(texts(note))
    assert press(note, "pin").of("Notes").note(first.title).pinned is not first.pinned
    gone = press(note, "delete", "confirm")
    assert title(gone) == "Notes" and gone.of("Notes").notes == phone.of("Notes").notes[1:]

    form = step(press(page, "add"), Type("Milk"))
    form = step(form, Enter())
    assert form.frame().focus == "Text"
    form = step(step(form, Type("two litr")), Type("es"))
    saved = press(form, "save")
    newest = saved.of("Notes").notes[0]
    assert (newest.title, newest.body, newest.pinned) == ("Milk", ("two litres",), False)
    assert rows(saved)[0] == "Milk"
    assert saved.of("Notes").notes[1:] == phone.of("Notes").notes


def test_typing_needs_focus_and_edits_the_field(phone):
    assert step(phone, Type("x")) == phone
    form = opened(phone, "Notes", "add")
    typed = press(form, "os.letter:m", "os.letter:i", "os.letter:1")
    assert typed.frame().field("Title") == "Mi1"
    assert press(typed, "os.erase").frame().field("Title") == "Mi"
    assert step(typed, Type("Ab\ncd\u0000", clear=True)).frame().field("Title") == "Ab cd"
    assert len(step(form, Type("x" * 500)).frame().field("Title")) == 60
    by_point = step(form, Type("hi", point=find(form, "field:Text").at, submit=True)).frame()
    assert (by_point.field("Text"), by_point.focus) == ("hi", "")
    assert step(typed, Key("KEYCODE_DEL")).frame().field("Title") == "Mi"


def test_back_closes_the_keyboard_then_the_page_then_the_app(phone):
    form = step(opened(phone, "Notes", "add"), Type("Milk"))
    hidden = step(form, Back())
    assert hidden.frame().field("Title") == "Milk" and not hidden.frame().focus
    assert title(step(hidden, Back())) == "Notes"
    assert title(step(step(hidden, Back()), Back())) == "home"
    assert press(form, "back").of("Notes") == phone.of("Notes")


def test_a_taken_title_is_said_and_not_saved(phone):
    taken = phone.of("Notes").notes[2].title
    form = step(opened(phone, "Notes", "add"), Type(taken))
    assert "There is a note of that title" in texts(form)
    assert press(form, "save") == form
    empty = opened(phone, "Contacts", "add")
    assert press(empty, "save") == empty


def test_a_contact_is_starred_called_deleted_and_added(phone):
    people = phone.of("Contacts").people
    last = people[-1]
    end = step(opened(phone, "Contacts"), Scroll("down"))
    assert rows(end) == [p.name for p in people[3:]]
    page = press(end, f"open:{last.name}")
    assert last.number in texts(page)
    starred = press(page, "star").of("Contacts")
    assert starred.person(last.name) == replace(last, starred=not last.starred)
    call = press(page, "call")
    assert call.of("Contacts").calls == (*phone.of("Contacts").calls, last.name)
    assert press(call, "end").frame() == page.frame()
    gone = press(page, "delete", "confirm")
    assert gone.of("Contacts").people == people[:-1]
    assert rows(gone) == [p.name for p in people[2:-1]]
    calls = press(step(press(call, "end"), Back()), "tab:Calls")
    assert rows(calls)[0] == last.name

    form = step(opened(phone, "Contacts", "add"), Type("Aaron"))
    added = press(step(press(form, "field:Phone"), Type("555-0000")), "save").of("Contacts")
    assert (added.people[0].name, added.people[0].number) == ("Aaron", "555-0000")
    assert added.people[1:] == people


def test_apps_open_where_they_were_left(phone):
    network = opened(phone, "Settings", "open:Network")
    notes = opened(step(network, Home()), "Notes")
    recents = step(notes, Recents())
    assert rows(recents) == ["Notes", "Settings"]
    assert title(press(recents, "app:Settings")) == "Network"
    assert title(step(notes, OpenApp("settings"))) == "Network"
    assert step(notes, OpenApp("Maps")) == notes
    cleared = press(recents, "os.clear")
    assert title(opened(cleared, "Settings")) == "Settings"
    left = step(step(network, Back()), Back())
    assert title(opened(left, "Settings")) == "Settings"


def test_edges_are_for_gestures(phone):
    network = opened(phone, "Settings", "open:Network")
    assert title(step(network, Swipe(Point(0.01, 0.5), Point(0.5, 0.5)))) == "Settings"
    assert title(step(network, Swipe(Point(0.5, 0.99), Point(0.5, 0.5)))) == "home"
    assert step(network, Swipe(Point(0.3, 0.5), Point(0.8, 0.5))) == network


@pytest.mark.parametrize("action", [Answer("3"), Finish("success")])
def test_what_ends_an_episode_never_gets_here(phone, action):
    with pytest.raises(AssertionError):
        step(phone, action)
