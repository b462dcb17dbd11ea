"""Whatever is done to a phone: it never breaks, its digest is its content, and what is
drawn is what is hit."""

import html as htmllib
import re
from itertools import combinations

from hypothesis import given, settings
from hypothesis import strategies as st

from services.worldmodel.phone import (
    boot,
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
from tests.unit.phone.play import actions
from wmkit.domain.actions import Tap, Wait
from wmkit.domain.screen import Point

seeds = st.integers(0, 30)
scripts = st.lists(actions, max_size=25)


@settings(max_examples=120, deadline=None)
@given(seeds, scripts)
def test_every_action_is_answered_and_equal_states_have_equal_digests(seed, script):
    phone = boot(seed)
    by_content = {dumps(phone): digest(phone)}
    for action in script:
        after = step(phone, action)
        assert after.clock == phone.clock or isinstance(action, Wait)
        assert (digest(after) == digest(phone)) == (after == phone)
        again = loads(dumps(after))
        assert again == after
        assert digest(again) == digest(after)
        assert by_content.setdefault(dumps(after), digest(after)) == digest(after)
        phone = after
    assert len(set(by_content.values())) == len(by_content)


@settings(max_examples=120, deadline=None)
@given(seeds, scripts)
def test_what_is_drawn_is_what_is_hit(seed, script):
    phone = boot(seed)
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
        if e.role != "key":
            column, row = e.at.x * 4 - 0.5, e.at.y * 10 - 0.5
            assert abs(column - round(column)) < 1e-9 and abs(row - round(row)) < 1e-9, e.id


@settings(max_examples=40, deadline=None)
@given(seeds, scripts)
def test_html_holds_every_element_escaped_and_nothing_active(seed, script):
    phone = boot(seed)
    for action in script:
        phone = step(phone, action)
    page = html(phone)
    for e in elements(phone):
        assert f'data-id="{htmllib.escape(e.id)}"' in page
        assert htmllib.escape(e.text).replace("&#x27;", "&#39;").replace("&quot;", "&#34;") in page
    assert not re.search(r"<script|https?://|\burl\(|\bon[a-z]+=|<b>&", page)
    assert page.startswith("<!DOCTYPE html>") and page.rstrip().endswith("</html>")
    assert page.count('id="render-target"') == 1
    assert title(phone)


@settings(max_examples=40, deadline=None)
@given(seeds, scripts)
def test_the_screen_digest_is_what_is_seen(seed, script):
    """Waiting under a minute without a timer changes the state but nothing on the screen."""
    phone = boot(seed)
    for action in script:
        phone = step(phone, action)
    later = step(phone, Wait(1))
    same_minute = phone.clock // 60 == later.clock // 60
    assert digest(later) != digest(phone)
    if same_minute and not phone.of("Clock").timer_left_s:
        assert screen_digest(later) == screen_digest(phone)
    assert (screen_digest(later) == screen_digest(phone)) == (html(later) == html(phone))
