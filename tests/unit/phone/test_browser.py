"""Browser, played by hand on a made-up web of three pages."""

from dataclasses import replace

import pytest

from services.worldmodel.phone import Phone, boot, elements, step, title
from services.worldmodel.phone.apps.browser import Browser, Message
from services.worldmodel.phone.apps.sites import Site
from services.worldmodel.phone.screen import find
from tests.unit.phone.play import press
from wmkit.domain.actions import Back, Enter, LongPress, OpenApp, Type

SITES = (
    Site("one.example", "One", (("Oslo", "-3 °C"),), (("Two", "two.example"),)),
    Site("two.example", "Two", (), (("Map", "file:Map"), ("One", "one.example"))),
    Site("forum.example", "Forum", form=True),
)


def rows(phone: Phone) -> list[str]:
    return [e.text for e in elements(phone) if e.role == "row"]


def texts(phone: Phone) -> list[str]:
    return [e.text for e in elements(phone) if e.role == "text"]


def go(phone: Phone, words: str) -> Phone:
    return step(step(press(phone, "field:Address"), Type(words)), Enter())


@pytest.fixture
def phone() -> Phone:
    phone, browser = boot(1), Browser(SITES, ("one.example",))
    data = tuple((n, browser if n == "Browser" else part) for n, part in phone.data)
    return step(replace(phone, data=data), OpenApp("Browser"))


@pytest.mark.parametrize("words", ["two.example", "TWO", "https://www.two.example/", " Two "])
def test_an_address_is_typed(phone, words):
    assert title(go(phone, words)) == "Two"


def test_what_is_no_address_is_searched_for(phone):
    found = go(phone, "o.ex")
    assert title(found) == "Results" and rows(found) == ["Two"]
    assert title(press(found, "visit:two.example")) == "Two"
    nothing = go(phone, "nowhere.example")
    assert rows(nothing) == [] and "Nothing found" in texts(nothing)
    assert title(press(step(press(phone, "field:Address"), Type("one")), "go")) == "One"


def test_links_go_deeper_and_back_comes_back(phone):
    one = press(phone, "visit:one.example")
    assert rows(one) == ["Oslo", "Two"] and "-3 °C" in texts(one)
    deep = press(one, "visit:two.example", "visit:one.example")
    items = [frame.item for frame in deep.nav.stack("Browser")]
    assert items == ["", "one.example", "two.example", "one.example"]
    assert title(step(deep, Back())) == "Two" and title(step(step(deep, Back()), Back())) == "One"
    far = deep
    for _ in range(10):
        far = press(far, "visit:two.example", "visit:one.example")
    assert len(far.nav.stack("Browser")) == 12
    assert title(press(far, "start")) == "Browser"


def test_bookmarks_come_and_go(phone):
    two = go(phone, "two")
    marked = press(two, "bookmark")
    assert marked.of("Browser").bookmarks == ("one.example", "two.example")
    assert rows(step(marked, Back())) == ["One", "Two"]
    assert press(marked, "bookmark").of("Browser") == two.of("Browser")


def test_a_download_asks_for_permission_once(phone):
    two = go(phone, "two")
    asked = press(two, "get:Map")
    assert asked.of("Browser").downloads == () and find(asked, "os.allow") is not None
    assert press(asked, "os.deny").of("Browser").downloads == ()
    stored = press(asked, "os.allow")
    assert stored.of("Browser").downloads == ("Map",) and "Map downloaded" in texts(stored)
    again = press(stored, "get:Map")
    assert again.of("Browser").downloads == ("Map",) and "Already downloaded" in texts(again)
    page = press(stored, "downloads")
    assert rows(page) == ["Map"]
    gone = press(step(page, LongPress(find(page, "load:Map").at)), "confirm")
    assert gone.of("Browser").downloads == ()
    once_more = press(step(gone, Back()), "get:Map")
    assert once_more.of("Browser").downloads == ("Map",)


def test_a_form_wants_both_fields(phone):
    form = go(phone, "forum")
    named = step(press(form, "field:Name"), Type("Ada"))
    half = press(named, "send")
    assert half.of("Browser").sent == () and "Fill in both fields" in texts(half)
    full = step(press(named, "field:Text"), Type("Hello"))
    sent = press(full, "send")
    assert sent.of("Browser").sent == (Message("forum.example", "Ada", "Hello"),)
    assert sent.frame().fields == ()


def test_tabs_keep_their_page(phone):
    one = press(phone, "visit:one.example")
    tabs = press(one, "tabs")
    assert rows(tabs) == ["One"] and title(press(tabs, "tab:0")) == "One"
    second = go(press(tabs, "add"), "two")
    both = press(second, "tabs")
    assert rows(both) == ["One", "Two"]
    assert title(press(both, "tab:0")) == "One"
    closed = step(both, LongPress(find(both, "tab:0").at))
    assert rows(closed) == ["Two"] and closed.of("Browser").tab == 0
    assert step(closed, LongPress(find(closed, "tab:0").at)).of("Browser").tabs == ("two.example",)
    assert closed.of("Browser").facts() == phone.of("Browser").facts()
