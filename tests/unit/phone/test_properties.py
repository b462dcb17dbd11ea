"""Whatever is done to a phone: it never breaks, its digest is its content, and what is
drawn is what is hit.

PHONE_SEQUENCES sets how many random sequences of 40 actions the main property plays.
"""

import html as htmllib
import os
import re
from html.parser import HTMLParser
from itertools import combinations

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from services.worldmodel.phone import (
    digest,
    dumps,
    elements,
    html,
    loads,
    screen_digest,
    step,
    title,
)
from services.worldmodel.phone.geometry import HEIGHT, WIDTH
from services.worldmodel.phone.screen import hit
from tests.unit.phone.play import actions, phones
from wmkit.domain.actions import Tap, Wait
from wmkit.domain.screen import Point

SEQUENCES = int(os.environ.get("PHONE_SEQUENCES", "60"))
LENGTH = 40
CHECKED: set[str] = set()
"""Digests of screens whose HTML was found good: equal screens have equal HTML."""
OFF_GRID = ("key",)
scripts = st.lists(actions, max_size=25)


@settings(max_examples=SEQUENCES, deadline=None, suppress_health_check=[HealthCheck.data_too_large])
@given(phones(), st.lists(actions, min_size=LENGTH, max_size=LENGTH))
def test_every_action_is_answered_and_equal_states_have_equal_digests(phone, script):
    by_content = {dumps(phone): digest(phone)}
    for action in script:
        after = step(phone, action)
        assert after.clock == phone.clock or isinstance(action, Wait)
        assert (digest(after) == digest(phone)) == (after == phone)
        if after == phone:
            continue
        again = loads(dumps(after))
        assert again == after
        assert digest(again) == digest(after)
        assert by_content.setdefault(dumps(after), digest(after)) == digest(after)
        if screen_digest(after) not in CHECKED:
            contract(html(after))
            CHECKED.add(screen_digest(after))
        phone = after
    assert len(set(by_content.values())) == len(by_content)


VOID = {"meta", "br", "img", "input", "link", "hr"}


class Strict(HTMLParser):
    """Fails on what a lenient parser repairs: unclosed or crossed tags, text out of place."""

    def __init__(self) -> None:
        super().__init__()
        self.open: list[str] = []
        self.inside = 0
        self.targets = 0

    def handle_starttag(self, tag, attrs):
        names = [name for name, _ in attrs]
        assert len(set(names)) == len(names), f"{tag} has an attribute twice"
        assert not any(name.startswith("on") or name in ("src", "href") for name in names)
        assert tag not in ("script", "iframe", "object", "base"), tag
        if dict(attrs).get("id") == "render-target":
            self.targets += 1
            assert tag == "div" and self.open[-1] == "body"
        elif self.open and self.open[-1] == "body":
            raise AssertionError(f"{tag} lies outside of the render target")
        if tag not in VOID:
            self.open.append(tag)

    def handle_startendtag(self, tag, attrs):
        self.handle_starttag(tag, attrs)
        self.handle_endtag(tag)

    def handle_endtag(self, tag):
        assert self.open and self.open.pop() == tag, f"</{tag}> closes something else"

    def handle_data(self, data):
        if data.strip():
            assert self.open[-1] in ("title", "style", "span", "b"), data


def contract(page: str) -> None:
    """The HTML contract: one render target that holds everything, nothing active or remote."""
    assert page.startswith("<!DOCTYPE html>") and page.rstrip().endswith("</html>")
    parser = Strict()
    parser.feed(page)
    parser.close()
    assert parser.open == [] and parser.targets == 1
    assert not re.search(r"https?://|\burl\(|@import|<meta[^>]*refresh", page)
    assert "width: 1080px; height: 2400px" in page
    assert "position: relative; overflow: hidden" in page


@settings(max_examples=60, deadline=None)
@given(phones(), scripts)
def test_what_is_drawn_is_what_is_hit(phone, script):
    for action in script:
        phone = step(phone, action)
    drawn = elements(phone)
    assert len({e.id for e in drawn}) == len(drawn)
    for e in drawn:
        x, y, w, h = e.box
        assert min(x, y) >= 0 and min(w, h) > 0 and x + w <= WIDTH and y + h <= HEIGHT
    live = [e for e in drawn if e.clickable]
    for a, b in combinations(live, 2):
        ax, ay, aw, ah = a.box
        bx, by, bw, bh = b.box
        assert ax + aw <= bx or bx + bw <= ax or ay + ah <= by or by + bh <= ay, (a.id, b.id)
    for e in live:
        x, y, w, h = e.box
        assert hit(phone, *e.at.to_px(WIDTH, HEIGHT)) is e
        centre = step(phone, Tap(Point((x + w / 2) / WIDTH, (y + h / 2) / HEIGHT)))
        assert centre == step(phone, Tap(e.at))
        if e.role not in OFF_GRID:
            column, row = e.at.x * 4 - 0.5, e.at.y * 10 - 0.5
            assert abs(column - round(column)) < 1e-9 and abs(row - round(row)) < 1e-9, e.id


@settings(max_examples=40, deadline=None)
@given(phones(), scripts)
def test_html_holds_every_element_escaped_and_nothing_active(phone, script):
    for action in script:
        phone = step(phone, action)
    page = html(phone)
    for e in elements(phone):
        assert f'data-id="{htmllib.escape(e.id)}"' in page
        assert htmllib.escape(e.text).replace("&#x27;", "&#39;").replace("&quot;", "&#34;") in page
    contract(page)
    assert title(phone)


@settings(max_examples=40, deadline=None)
@given(phones(), scripts)
def test_the_screen_digest_is_what_is_seen(phone, script):
    for action in script:
        phone = step(phone, action)
    later = step(phone, Wait(1))
    assert digest(later) != digest(phone)
    assert (screen_digest(later) == screen_digest(phone)) == (html(later) == html(phone))
