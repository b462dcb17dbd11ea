"""The page of `wmr1 play --web` in a real browser: what a person does reaches the phone."""

import asyncio
import socket
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import httpx
import pytest
import uvicorn
from playwright.async_api import Page, async_playwright

from services.renderer.chromium import find_browser
from tests.toy_service import ToyServicer, register
from wmkit.cli.web.serve import make_app
from wmkit.cli.web.session import WebSession
from wmkit.clients.sync import connect
from wmkit.domain.actions import Action, Back, Scroll, Swipe, Tap, Type
from wmkit.domain.transition import FailureReason, Purpose
from wmkit.rpc.server import running
from wmkit.settings import ServiceSettings
from wmkit.testing import FakeWorldModel


def walk(state: str, action: Action) -> str | FailureReason:
    """A tap reaches the goal, back fails, anything else moves on."""
    match action:
        case Tap():
            return "goal"
        case Back():
            return FailureReason.TRUNCATED
        case _:
            return state + "."


@asynccontextmanager
async def served() -> AsyncIterator[tuple[str, FakeWorldModel]]:
    """The page around a phone of a real server: its address and the world behind it."""
    servicer = ToyServicer()
    servicer.world = FakeWorldModel(walk)
    settings = ServiceSettings(drain_pause_s=0.0, drain_grace_s=1.0)
    async with running(settings, "toy", register(servicer)) as toy:
        world = await asyncio.to_thread(connect, toy.address)
        phone = await asyncio.to_thread(world.create_state, "fake", 3)
        listener = socket.create_server(("127.0.0.1", 0))
        server = uvicorn.Server(
            uvicorn.Config(make_app(WebSession(phone)), log_level="warning", lifespan="off")
        )
        serving = asyncio.create_task(server.serve(sockets=[listener]))
        try:
            yield f"http://127.0.0.1:{listener.getsockname()[1]}", servicer.world
        finally:
            server.should_exit = True
            await serving
            await asyncio.to_thread(world.close)


@asynccontextmanager
async def opened(url: str) -> AsyncIterator[Page]:
    browser = find_browser()
    async with async_playwright() as playwright:
        chromium = await playwright.chromium.launch(executable_path=browser, args=["--no-sandbox"])
        page = await chromium.new_page(viewport={"width": 1000, "height": 900})
        page.set_default_timeout(20_000)
        await page.goto(url)
        await page.get_by_text("reach goal").wait_for()
        await page.wait_for_function("document.querySelector('#screen').naturalWidth > 0")
        yield page
        await chromium.close()


async def test_taps_drags_wheel_and_typing_become_actions_where_they_were_made() -> None:
    async with served() as (url, world), opened(url) as page:
        box: Any = await page.locator("#screen").bounding_box()

        async def at(x: float, y: float) -> None:
            await page.mouse.move(box["x"] + x * box["width"], box["y"] + y * box["height"])

        await at(0.5, 0.5)
        await page.mouse.wheel(0, 300)
        await page.get_by_text("1 of at most 20 steps").wait_for()
        await at(0.5, 0.75)
        await page.mouse.down()
        await at(0.5, 0.25)
        await page.mouse.up()
        await page.get_by_text("2 of at most 20 steps").wait_for()
        await page.get_by_placeholder("text for the focused field").fill("milk & eggs")
        await page.get_by_role("button", name="Type", exact=True).click()
        await page.get_by_text("3 of at most 20 steps").wait_for()
        await at(0.25, 0.125)
        await page.mouse.down()
        await page.mouse.up()
        await page.get_by_text("4 of at most 20 steps").wait_for()
        await page.get_by_role("button", name="Done", exact=True).click()
        await page.get_by_text("success: ").wait_for()
    wheel, drag, typed, tap = (action for _, action, _ in world.steps)
    assert isinstance(wheel, Scroll) and wheel.reveal == "down"
    assert isinstance(drag, Swipe) and isinstance(tap, Tap)
    assert typed == Type("milk & eggs")
    assert (tap.point.x, tap.point.y) == pytest.approx((0.25, 0.125), abs=0.01)
    assert (drag.point.y, drag.to.y) == pytest.approx((0.75, 0.25), abs=0.01)
    assert all(purpose is Purpose.COMMIT for _, _, purpose in world.steps)


async def test_imagining_shows_a_screen_and_stays_and_a_failed_step_says_so() -> None:
    async with served() as (url, world), opened(url) as page:
        await page.get_by_label("only imagine the next action").check()
        await page.locator("#screen").click()
        await page.get_by_text("imagined only").wait_for()
        await page.get_by_text("0 of at most 20 steps").wait_for()
        assert await page.locator("#imagined").is_visible()
        await page.get_by_role("button", name="Back", exact=True).click()
        await page.get_by_text("back has no next screen").wait_for()
        await page.get_by_text("0 of at most 20 steps").wait_for()
    assert [purpose for _, _, purpose in world.steps] == [Purpose.IMAGINE, Purpose.COMMIT]


async def test_the_end_comes_once_and_undo_leads_back() -> None:
    async with served() as (url, _), httpx.AsyncClient(base_url=url) as page:
        done = {"action": {"action": "finish", "status": "success"}}
        assert (await page.post("/act", json=done)).json()["verdict"] == "failure"
        again = await page.post("/act", json=done)
        assert (again.status_code, "over" in again.json()["error"]) == (400, True)
        assert (await page.post("/undo", json={})).json()["ended"] is False
        hold = {"action": {"action": "long_press", "point": [0.5, 0.5]}}
        assert (await page.post("/act", json=hold)).json()["steps"] == 1
        junk = await page.post("/act", json={"action": {"action": "fly"}})
        assert (junk.status_code, "unknown action 'fly'" in junk.json()["error"]) == (400, True)


async def test_another_site_cannot_act_through_the_person_s_browser() -> None:
    async with served() as (url, world), httpx.AsyncClient(base_url=url) as page:
        tap = '{"action": {"action": "tap", "point": [0.5, 0.5]}}'
        foreign = await page.post("/act", content=tap, headers={"host": "evil.example"})
        form = await page.post("/act", content=tap, headers={"content-type": "text/plain"})
    assert (foreign.status_code, form.status_code) == (400, 422)
    assert world.steps == []
