"""A real browser lays the phone's screens out exactly where the phone says things are."""

import shutil
from collections.abc import Iterator

import pytest
from playwright.sync_api import Page, sync_playwright

from services.worldmodel.phone import Phone, boot, elements, html, step
from services.worldmodel.phone.screen import find
from services.worldmodel.tasks import make
from services.worldmodel.tasks.checks import random_player
from wmkit.domain.actions import LongPress, Recents, Tap, Type

BROWSER = next(
    filter(None, map(shutil.which, ("chromium-headless-shell", "chromium", "google-chrome"))), None
)


@pytest.fixture(scope="module")
def page() -> Iterator[Page]:
    if BROWSER is None:
        pytest.skip("no Chromium on the PATH")
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=BROWSER, args=["--no-sandbox"])
        yield browser.new_page(viewport={"width": 1080, "height": 2400})
        browser.close()


def states() -> list[Phone]:
    """About twenty screens: every kind of page once, then wherever random play leads."""
    phone = boot(4)
    out = [phone]
    for *keys, last in (
        ["app:Settings"],
        ["app:Settings", "open:Display", "timeout"],
        ["app:Clock"],
        ["app:Clock", "tab:Timer", "start"],
        ["app:Notes", "add"],
        ["app:Contacts"],
    ):
        here = phone
        for key in (*keys, last):
            here = step(here, Tap(find(here, key).at))
        out.append(here)
    alarm = find(out[3], f"flip:{out[3].of('Clock').alarms[0].label}")
    out += [
        step(out[3], LongPress(alarm.at)),
        step(out[5], Type("<i>\"&' " + "long " * 20)),
        step(out[6], Recents()),
    ]
    for seed in range(12):
        task = make("contacts_delete", seed)
        player, here = random_player(seed), task.start
        for _ in range(6):
            here = step(here, player(task, here, 0))
        out.append(here)
    return out


MEASURE = """() => Object.fromEntries([...document.querySelectorAll('[data-id]')].map(e => {
  const b = e.getBoundingClientRect();
  return [e.dataset.id, [b.x, b.y, b.width, b.height]];
}))"""


def test_the_browser_agrees_on_every_box(page: Page) -> None:
    for phone in states():
        page.set_content(html(phone))
        measured = page.evaluate(MEASURE)
        drawn = elements(phone)
        assert set(measured) == {e.id for e in drawn}
        for e in drawn:
            assert measured[e.id] == pytest.approx(e.box, abs=1), e.id
        assert page.evaluate("document.documentElement.scrollHeight") == 2400


def test_what_the_browser_hits_is_what_the_phone_hits(page: Page) -> None:
    """At the tap point of every live element, the topmost box in the DOM belongs to it."""
    for phone in states():
        page.set_content(html(phone))
        for e in elements(phone):
            if e.clickable:
                x, y = e.at.to_px(1080, 2400)
                stack = page.evaluate(
                    "([x, y]) => document.elementsFromPoint(x, y)"
                    ".map(n => n.closest('[data-clickable]')?.dataset.id).filter(Boolean)",
                    [x, y],
                )
                assert stack[0] == e.id


def test_text_is_shown_and_fits_its_row(page: Page) -> None:
    """No vocabulary word is cut: the text of every row is as wide as it wants to be."""
    for phone in states()[:7]:
        page.set_content(html(phone))
        cut = page.evaluate(
            "[...document.querySelectorAll('.t-row span, .t-title span, .t-label span')]"
            ".filter(s => s.scrollWidth > s.clientWidth + 1).map(s => s.textContent)"
        )
        assert cut == []
