"""The system around the apps: launcher, shade, toasts, permissions, interruptions, themes."""

from dataclasses import replace

import pytest

from services.worldmodel.phone import APPS, Phone, boot, dumps, elements, html, loads, step, title
from services.worldmodel.phone.app import Reply
from services.worldmodel.phone.effects import Ask, Notify, Open, Toast
from services.worldmodel.phone.launcher import PRELOADED
from services.worldmodel.phone.screen import find, screen_digest
from services.worldmodel.phone.state import Due, Frame, Notice
from tests.unit.phone.play import press
from wmkit.domain.actions import (
    Back,
    Home,
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


@pytest.fixture
def phone() -> Phone:
    return boot(1)


def texts(phone: Phone) -> list[str]:
    return [e.text for e in elements(phone) if e.role == "text"]


def icons(phone: Phone) -> set[str]:
    return {e.text for e in elements(phone) if e.role == "icon"}


def live(phone: Phone) -> set[str]:
    return {e.text for e in elements(phone) if e.clickable}


def waiting(phone: Phone, *notices: Notice) -> Phone:
    return replace(phone, system=replace(phone.system, notices=notices))


def answering(monkeypatch, *effects) -> None:
    """Notes, whose every tap has these effects; the key "then" adds a note."""
    notes = APPS["Notes"]

    def tap(data, stack, key):
        if key == "then":
            return Reply(data.adding("Done"), stack)
        return Reply(data, stack, effects)

    monkeypatch.setitem(APPS, "Notes", replace(notes, tap=tap))


def test_every_app_has_one_icon_and_the_pages_turn(phone):
    assert set(PRELOADED) == set(APPS)
    second = step(phone, Scroll("right"))
    assert icons(phone) | icons(second) == set(APPS)
    assert icons(phone) & icons(second) == set(phone.launcher.dock)
    assert len(phone.launcher.dock) == 4
    assert step(second, Scroll("right")) == second
    assert step(second, Scroll("left")) == phone == step(second, Home())
    assert step(phone, Swipe(Point(0.8, 0.5), Point(0.2, 0.5))) == second
    assert step(second, Swipe(Point(0.2, 0.5), Point(0.8, 0.5))) == phone
    dots = {e.id: e.tone for e in elements(second) if e.role == "dot"}
    assert dots == {"home/dot-0": "", "home/dot-1": "on"}


def test_every_app_opens_from_its_icon():
    home = boot(3)
    for name in APPS:
        page = home if find(home, f"app:{name}") else step(home, Scroll("right"))
        opened = press(page, f"app:{name}")
        assert opened.nav.front == name == opened.nav.stacks[-1][0]


def test_another_app_moves_no_icon_and_changes_no_other(monkeypatch):
    before = boot(5)
    monkeypatch.delitem(APPS, "Browser")
    after = boot(5)
    assert after.launcher == before.launcher
    assert after.data == tuple(entry for entry in before.data if entry[0] != "Browser")
    assert step(after, OpenApp("Browser")) == after


def test_the_shade_comes_from_the_top_edge_and_from_home(phone):
    app = press(phone, "app:Clock") if find(phone, "app:Clock") else step(phone, OpenApp("Clock"))
    down = step(app, Swipe(Point(0.5, 0.0), Point(0.5, 0.6)))
    assert title(down) == "shade" and down == step(app, Scroll("up", Point(0.5, 0.01)))
    assert step(phone, Scroll("up")).nav.shade
    assert step(phone, Swipe(Point(0.5, 0.4), Point(0.5, 0.8))).nav.shade
    for close in (Back(), Scroll("down"), Swipe(Point(0.5, 0.9), Point(0.5, 0.3))):
        assert step(down, close) == app
    assert step(down, Home()).nav.front == "home" and not step(down, Home()).nav.shade
    assert step(down, Type("x")) == down
    assert not step(down, Recents()).nav.shade


def test_a_tile_is_the_toggle_of_settings(phone):
    shade = step(phone, Scroll("up"))
    names = [e.text for e in elements(shade) if e.role == "tile"]
    assert len(names) == 6
    for name in names:
        flipped = press(shade, f"os.tile:{name}")
        settings = phone.of("Settings")
        assert flipped.of("Settings") == settings.having(name, not settings.on(name))
        assert find(flipped, f"os.tile:{name}").checked is not settings.on(name)


def test_a_notification_opens_its_page_or_goes_away(phone):
    timer, sale = Notice("Clock", "Timer", "Time is up", "Timer"), Notice("Shop", "Sale")
    shade = step(waiting(phone, timer, sale), Scroll("up"))
    assert {"Timer", "Time is up", "Sale"} <= set(texts(shade))
    opened = press(shade, "os.notice:0")
    assert (opened.nav.front, opened.frame().page) == ("Clock", "Timer")
    assert opened.system.notices == (sale,)
    assert press(shade, "os.dismiss:1").system.notices == (timer,)
    assert step(shade, Swipe(Point(0.2, 0.45), Point(0.8, 0.45))).system.notices == (sale,)
    assert step(shade, Scroll("left", Point(0.5, 0.55))).system.notices == (timer,)
    cleared = press(shade, "os.clear-notices")
    assert cleared.system.notices == () and "No notifications" in texts(cleared)


def test_a_timer_that_is_over_says_so(phone):
    running = press(step(phone, OpenApp("Clock")), "tab:Timer", "preset:3", "start")
    assert step(running, Wait(179_000)).system.notices == ()
    over = step(step(running, Home()), Wait(180_000))
    assert over.system.notices == (Notice("Clock", "Timer", "Time is up", "Timer"),)
    later = step(over, Wait(180_000)).system.notices
    assert [n for n in later if n.app == "Clock"] == list(over.system.notices)


def test_a_toast_lasts_until_the_next_action(phone, monkeypatch):
    answering(monkeypatch, Toast("Saved"))
    page = step(phone, OpenApp("Notes"))
    said = press(page, "add")
    assert "Saved" in texts(said) and live(said) == live(page)
    assert step(said, Tap(Point(0.5, 0.03))) == page
    assert loads(dumps(said)) == said


def test_an_app_may_open_another_with_fields_filled_in(phone, monkeypatch):
    answering(monkeypatch, Open("Contacts", "edit", fields=(("Name", "Zoe"), ("Nonsense", "x"))))
    there = press(step(phone, OpenApp("Notes")), "add")
    assert there.nav.front == "Contacts"
    assert there.frame() == Frame("edit", fields=(("Name", "Zoe"),), focus="Name")
    assert press(there, "save").of("Contacts").person("Zoe") is not None
    answering(monkeypatch, Open("Maps"))
    assert "Maps is not installed" in texts(press(step(phone, OpenApp("Notes")), "add"))


def test_a_notification_of_an_app_is_shown_once_and_newest_first(phone, monkeypatch):
    answering(monkeypatch, *(Notify(str(i)) for i in (1, 2, 3, 4, 5, 6, 5)))
    told = press(step(phone, OpenApp("Notes")), "add")
    assert [n.title for n in told.system.notices] == ["5", "6", "4", "3", "2"]


def test_a_permission_is_asked_for_until_it_is_granted(phone, monkeypatch):
    answering(monkeypatch, Ask("Camera", "then"))
    page = step(phone, OpenApp("Notes"))
    asked = press(page, "add")
    assert {"Allow Camera?", "for Notes"} <= set(texts(asked)) and live(asked) == {"Deny", "Allow"}
    assert press(asked, "os.deny") == page == step(asked, Back())
    assert step(asked, Type("x")) == asked == step(asked, Scroll("down"))
    assert step(asked, Home()) == step(page, Home())
    assert loads(dumps(asked)) == asked
    allowed = press(asked, "os.allow")
    assert allowed.of("Notes").notes[0].title == "Done"
    assert allowed.system.granted == (("Notes", "Camera"),)
    assert press(allowed, "add").of("Notes").notes[1].title == "Done"


@pytest.mark.parametrize(
    ("kind", "yes"),
    [("battery", "os.popup:saver"), ("update", "os.popup:restart"), ("call", "os.popup:answer")],
)
def test_an_interruption_comes_after_so_many_actions(phone, kind, yes):
    page = step(phone, OpenApp("Clock"))
    due = replace(page, system=replace(page.system, due=(Due(kind, 2), Due("call", 1))))
    one = step(due, Scroll("down"))
    assert one.nav.popup == "" and one.frame().scroll == 2
    two = step(one, Scroll("up"))
    assert two.nav.popup == kind and two.frame().scroll == 0
    assert len(live(two)) == 2
    row = elements(two)[3]
    assert step(two, LongPress(row.at)).nav == two.nav
    closed = press(two, "os.popup:close")
    assert closed.nav.popup == "call" and not closed.system.due
    calm = step(replace(two, system=page.system), Back())
    assert calm == page
    assert step(replace(two, system=page.system), Home()).nav.popup == ""
    after = press(replace(two, system=page.system), yes)
    assert after.nav.popup == ""
    if kind == "battery":
        assert after.of("Settings").on("Saver")
    if kind == "update":
        assert after.nav.front == "home" and after.nav.stacks == ()
    if kind == "call":
        assert after.nav.toast == "Call ended"


def test_night_is_the_dark_theme(phone):
    page = press(step(phone, OpenApp("Settings")), "open:Display")
    dark = press(page, "flip:Night")
    assert 'class="dark"' in html(dark) and 'class="dark"' not in html(page)
    home, dark_home = step(page, Home()), step(dark, Home())
    assert elements(home) == elements(dark_home)
    assert screen_digest(home) != screen_digest(dark_home)


def test_plain_phones_are_alike_where_varied_ones_differ():
    plain = [boot(seed) for seed in range(30)]
    assert {phone.system for phone in plain} == {boot(0).system}
    assert not any(phone.of("Settings").on("Night") for phone in plain)
    varied = [boot(seed, varied=True) for seed in range(60)]
    assert {phone.system.font_percent for phone in varied} == {100, 115}
    assert {phone.system.compact for phone in varied} == {False, True}
    assert 15 < sum(phone.of("Settings").on("Night") for phone in varied) < 45
    assert {len(phone.system.notices) for phone in varied} == {0, 1, 2, 3}
    assert {due.popup for phone in varied for due in phone.system.due} == {
        "battery", "update", "call",
    }  # fmt: skip
    for phone in varied:
        assert loads(dumps(phone)) == phone


def test_compact_phones_have_smaller_icons_in_the_same_places(phone):
    small = replace(phone, system=replace(phone.system, compact=True))
    for normal, compact in zip(elements(phone), elements(small), strict=True):
        assert compact.at == normal.at
        shrinks = normal.role == "glyph"
        assert (compact.box[2] < normal.box[2]) is shrinks


def test_shift_makes_one_capital(phone):
    form = press(step(phone, OpenApp("Notes")), "add")
    keys = {e.key: e.text for e in elements(form) if e.role == "key"}
    assert keys["os.letter:a"] == "A"
    typed = press(form, "os.letter:a", "os.letter:b", "os.shift", "os.letter:c", "os.letter:d")
    assert typed.frame().field("Title") == "AbCd"
    lower = {e.key: e.text for e in elements(typed) if e.role == "key"}
    assert lower["os.letter:a"] == "a"
    assert press(form, "os.letter:a", "os.shift", "os.shift", "os.letter:b", "os.letter: ",
                 "os.letter:,").frame().field("Title") == "Ab ,"  # fmt: skip
    second = press(typed, "os.enter", "os.letter:x")
    assert second.frame().field("Text") == "X"
