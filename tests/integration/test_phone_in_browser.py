"""A real browser lays the phone's screens out exactly where the phone says things are.

PHONE_SCREENS sets how many screens are measured; the default is a quick sample.
"""

import os
import shutil
from dataclasses import replace
from functools import cache
from random import Random
from typing import Any

import pytest
from playwright.sync_api import sync_playwright

from services.worldmodel.phone import APPS, Phone, boot, elements, html, step
from services.worldmodel.phone.state import HOME, RECENTS, Nav, Prompt
from services.worldmodel.phone.system import FONTS, NOISE, POPUPS
from services.worldmodel.tasks import make
from services.worldmodel.tasks.checks import random_player
from wmkit.domain.actions import Scroll, Type

BROWSER = next(
    filter(None, map(shutil.which, ("chromium-headless-shell", "chromium", "google-chrome"))), None
)
SCREENS = int(os.environ.get("PHONE_SCREENS", "60"))


@cache
def states() -> tuple[Phone, ...]:
    """Screens over all apps and pages, the system's overlays, both themes and text sizes.

    A fixed sample: pages as they can be started on, then wherever random play leads.
    """
    rng = Random("screens")
    out = [_dressed(rng, phone) for phone in _overlays(boot(4))]
    pages = [(name, i) for name in APPS for i in range(len(APPS[name].pages(boot(4).of(name))))]
    pages = rng.sample(pages, len(pages))
    first = {name: (name, i) for name, i in reversed(pages)}
    for name, i in [*first.values(), *(p for p in pages if p not in first.values())]:
        phone = boot(rng.randrange(40))
        stacks = APPS[name].pages(phone.of(name))
        phone = replace(phone, nav=Nav(name, ((name, stacks[i % len(stacks)]),)))
        if rng.random() < 0.3:
            phone = step(phone, Scroll("down"))
        out.append(_dressed(rng, phone))
    while len(out) < SCREENS:
        task = make(rng.choice(("mixed_note_number", "contacts_delete")), rng.randrange(1000))
        player, phone = random_player(len(out)), _dressed(rng, task.start)
        for _ in range(rng.randrange(4, 16)):
            phone = step(phone, player(task, phone, 0))
        out.append(phone)
    return tuple(out[:SCREENS])


def _overlays(phone: Phone) -> list[Phone]:
    filled = replace(phone, system=replace(phone.system, notices=NOISE[:3]))
    notes = replace(
        filled, nav=Nav("Notes", (("Notes", APPS["Notes"].pages(phone.of("Notes"))[-1]),))
    )
    everything = tuple((name, (app.root,)) for name, app in APPS.items())
    return [
        filled,
        replace(filled, nav=Nav(page=1)),
        replace(filled, nav=Nav(shade=True)),
        replace(phone, nav=Nav(shade=True)),
        replace(filled, nav=Nav(RECENTS, everything)),
        step(notes, Type("<i>\"&' " + "long " * 20)),
        replace(notes, nav=replace(notes.nav, toast="Saved")),
        replace(notes, nav=replace(notes.nav, prompt=Prompt("Notes", "Microphone", "save"))),
        *(replace(filled, nav=Nav(HOME, popup=kind)) for kind in POPUPS),
    ]


def _dressed(rng: Random, phone: Phone) -> Phone:
    """In either theme and any text size."""
    system = replace(
        phone.system, font_percent=rng.choice(FONTS), compact=rng.random() < 0.3, due=()
    )
    settings = phone.of("Settings").having("Night", rng.random() < 0.5)
    data = tuple((name, settings if name == "Settings" else part) for name, part in phone.data)
    return replace(phone, system=system, data=data)


# Everything is measured at once. Boxes by id; what is hit at each tap point; and of every text
# the width of its letters (a Range), the height of its line and the box that clips them. What
# lies under something opaque is not visible: the topmost element at its middle is drawn later.
MEASURE = """points => ({
  boxes: Object.fromEntries([...document.querySelectorAll('[data-id]')].map(e => {
    const b = e.getBoundingClientRect();
    return [e.dataset.id, [b.x, b.y, b.width, b.height]];
  })),
  height: document.documentElement.scrollHeight,
  hits: points.map(([id, x, y]) => document.elementsFromPoint(x, y)
    .map(n => n.closest('[data-clickable]')?.dataset.id).filter(Boolean)[0]),
  texts: [...document.querySelectorAll('.e span, .e b')].map(s => {
    const range = document.createRange();
    range.selectNodeContents(s);
    const r = range.getBoundingClientRect();
    const line = s.getBoundingClientRect();
    const box = s.parentElement.getBoundingClientRect();
    const top = document.elementFromPoint(
      Math.min(r.x + r.width / 2, box.right - 1), r.y + r.height / 2)?.closest('[data-id]');
    const order = top ? s.parentElement.compareDocumentPosition(top) : 1;
    return {id: s.parentElement.dataset.id, words: s.textContent,
      letters: [r.x, line.y, r.right, line.bottom], box: [box.x, box.y, box.right, box.bottom],
      covered: !top || Boolean(order & Node.DOCUMENT_POSITION_FOLLOWING)};
  }).filter(t => t.words && !t.covered),
})"""
SLACK = 2
Measured = list[tuple[Phone, dict[str, Any]]]


@pytest.fixture(scope="module")
def measured() -> Measured:
    if BROWSER is None:
        pytest.skip("no Chromium on the PATH")
    out = []
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=BROWSER, args=["--no-sandbox"])
        page = browser.new_page(viewport={"width": 1080, "height": 2400})
        for phone in states():
            page.set_content(html(phone))
            out.append((phone, page.evaluate(MEASURE, tap_points(phone))))
        browser.close()
    return out


def tap_points(phone: Phone) -> list[tuple[str, int, int]]:
    return [(e.id, *e.at.to_px(1080, 2400)) for e in elements(phone) if e.clickable]


def test_the_browser_agrees_on_every_box(measured: Measured) -> None:
    for phone, found in measured:
        drawn = elements(phone)
        assert set(found["boxes"]) == {e.id for e in drawn}
        for e in drawn:
            box = found["boxes"][e.id]
            assert max(abs(a - b) for a, b in zip(box, e.box, strict=True)) <= 1, (e.id, box, e.box)
        assert found["height"] == 2400


def test_what_the_browser_hits_is_what_the_phone_hits(measured: Measured) -> None:
    """At the tap point of every live element, the topmost box in the DOM belongs to it."""
    for phone, found in measured:
        assert found["hits"] == [id for id, _, _ in tap_points(phone)]


def test_no_visible_text_is_cut(measured: Measured) -> None:
    """The letters lie inside the box that clips them. What a person typed may be longer."""
    cut = set()
    for phone, found in measured:
        typed = {text for _, stack in phone.nav.stacks for f in stack for _, text in f.fields}
        for text in found["texts"]:
            x, y, right, bottom = text["letters"]
            left_edge, top_edge, right_edge, bottom_edge = text["box"]
            over = max(left_edge - x, top_edge - y, right - right_edge, bottom - bottom_edge)
            if over > SLACK and not (text["words"] in typed or text["words"].startswith("…")):
                cut.add((text["id"], text["words"], round(over)))
    assert cut == set()


def test_no_visible_text_overlaps_another(measured: Measured) -> None:
    overlaps = set()
    for _, found in measured:
        texts = found["texts"]
        for i, a in enumerate(texts):
            for b in texts[:i]:
                ax, ay, ar, ab = a["letters"]
                bx, by, br, bb = b["letters"]
                common = min(min(ar, br) - max(ax, bx), min(ab, bb) - max(ay, by))
                if common > SLACK:
                    overlaps.add((a["id"], b["id"], a["words"], b["words"], round(common)))
    assert overlaps == set()
