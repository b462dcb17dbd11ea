"""What the pool does when pages hang, crash, err or wear out. Browsers here are scripts.

Real browsers are in `tests/integration/test_renderer_faults.py`.
"""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from typing import Any, cast

import pytest

from services.renderer.browser import Browser
from services.renderer.devtools import DevToolsError
from services.renderer.page import Drawn
from services.renderer.pool import Job, Pool, PoolLimits, Undrawable
from wmkit.domain.errors import BrowserCrashed, Overloaded, Unavailable
from wmkit.domain.transition import FailureReason, ImageRequest

DRAWN = Drawn(b"picture", True, True, True, 0, (0, 0), ())
Script = Callable[["Page"], Awaitable[Drawn]]


class Page:
    def __init__(self, browser: "Scripted", scripts: dict[str, Script]) -> None:
        self.browser = browser
        self.scripts = scripts
        self.crashed = False
        self.jobs = 0
        self.pid = None
        self.blanked = asyncio.Event()
        self.closed = False

    async def draw(self, html: str, *_: Any) -> Drawn:
        self.jobs += 1
        return await self.scripts[html](self)

    async def blank(self) -> None:
        self.blanked.set()

    async def close(self) -> None:
        self.closed = True


class Scripted:
    """Stands in for `Browser`."""

    version = "0"

    def __init__(self, scripts: dict[str, Script]) -> None:
        self.scripts = scripts
        self.gone = asyncio.Event()
        self.maimed = False
        self.jobs = self.busy = 0
        self.idle: list[Page] = []
        self.opened: list[Page] = []
        self.ended = ""

    async def open_page(self) -> Page:
        if self.gone.is_set():
            raise DevToolsError("gone")
        self.opened.append(Page(self, self.scripts))
        return self.opened[-1]

    async def responds(self) -> bool:
        return not self.gone.is_set()

    def memory_mb(self) -> float:
        return 30.0 * self.jobs

    async def close(self) -> None:
        self.ended = self.ended or "closed"
        self.gone.set()

    async def kill(self) -> None:
        self.ended = self.ended or "killed"
        self.gone.set()


class Fleet(list[Scripted]):
    """Every browser that a pool has started."""


@asynccontextmanager
async def pool(scripts: dict[str, Script], **limits: Any) -> AsyncIterator[tuple[Pool, Fleet]]:
    fleet = Fleet()

    async def launch() -> Browser:
        fleet.append(Scripted({"fine": fine} | scripts))
        return cast(Browser, fleet[-1])

    made = Pool(launch, PoolLimits(**({"pages": 2} | limits)))
    await made.start()
    yield made, fleet
    await made.close()
    assert all(browser.ended for browser in fleet)


def job(html: str, timeout_s: float = 60.0) -> Job:
    return Job(html, 100, 200, ImageRequest(), False, timeout_s)


async def fine(_: Page) -> Drawn:
    return DRAWN


async def hang(page: Page) -> Drawn:
    await page.browser.gone.wait()
    raise DevToolsError("the browser is gone")


async def refuse(_: Page) -> Drawn:
    raise DevToolsError("Unable to capture screenshot")


async def crash(page: Page) -> Drawn:
    page.crashed = True
    raise DevToolsError("the page crashed")


async def take_browser_down(page: Page) -> Drawn:
    page.browser.gone.set()
    raise DevToolsError("Target closed")


async def test_a_page_serves_many_jobs_and_is_blanked_when_none_follows() -> None:
    async with pool({}, pages=1) as (made, fleet):
        (page,) = fleet[0].opened
        for _ in range(3):
            assert await made.draw(job("fine")) is DRAWN
        assert not page.blanked.is_set()
        await page.blanked.wait()
        assert await made.draw(job("fine")) is DRAWN
    assert page.jobs == 4
    assert fleet[0].opened == [page]


async def test_one_context_per_job_is_a_setting() -> None:
    async with pool({}, pages=1, page_jobs=1) as (made, fleet):
        for _ in range(3):
            await made.draw(job("fine"))
    assert [(page.jobs, page.closed) for page in fleet[0].opened] == [(1, True)] * 3


async def test_what_hangs_times_out_and_takes_its_browser_with_it() -> None:
    async with pool({"hang": hang}, pages=1) as (made, fleet):
        with pytest.raises(Undrawable) as fault:
            await made.draw(job("hang", timeout_s=0.01))
        assert fault.value.reason is FailureReason.RENDER_TIMEOUT
        assert await made.draw(job("fine")) is DRAWN
    assert [browser.ended for browser in fleet] == ["killed", "closed"]


async def test_what_is_merely_late_costs_its_page_alone() -> None:
    over = asyncio.Event()

    async def late(_: Page) -> Drawn:
        await over.wait()
        return DRAWN

    async with pool({"late": late}, pages=1) as (made, fleet):
        with pytest.raises(Undrawable) as fault:
            await made.draw(job("late", timeout_s=0.01))
        assert fault.value.reason is FailureReason.RENDER_TIMEOUT
        over.set()
        assert await made.draw(job("fine")) is DRAWN
        assert [page.closed for page in fleet[0].opened] == [True, False]
    assert [browser.ended for browser in fleet] == ["closed"]


async def test_a_browser_that_can_paint_no_more_is_replaced_and_nobody_is_blamed() -> None:
    async def maim(page: Page) -> Drawn:
        if page.browser is not fleet[0]:
            return DRAWN
        page.browser.maimed = True
        return await hang(page)

    async with pool({"maim": maim}) as (made, fleet):
        assert await made.draw(job("maim")) is DRAWN
        fleet[1].maimed = True
        assert await made.draw(job("fine")) is DRAWN
    assert [browser.ended for browser in fleet] == ["killed", "killed", "closed"]


async def test_a_neighbour_of_what_hangs_is_drawn_again() -> None:
    tries: list[Page] = []

    async def slow_once(page: Page) -> Drawn:
        tries.append(page)
        return await (hang if len(tries) == 1 else fine)(page)

    async with pool({"hang": hang, "slow": slow_once}) as (made, fleet):
        hung = asyncio.create_task(made.draw(job("hang", timeout_s=0.05)))
        assert await made.draw(job("slow")) is DRAWN
        with pytest.raises(Undrawable):
            await hung
    assert [page.browser for page in tries] == list(fleet)


async def test_a_browser_that_dies_under_a_job_is_replaced_and_the_job_done() -> None:
    deaths: list[Page] = []

    async def die_twice(page: Page) -> Drawn:
        deaths.append(page)
        return await (take_browser_down if len(deaths) < 3 else fine)(page)

    async with pool({"die": die_twice}) as (made, fleet):
        assert await made.draw(job("die")) is DRAWN
    assert len(fleet) == 3


async def test_a_browser_that_dies_unused_is_replaced_before_it_is_needed() -> None:
    async with pool({}) as (made, fleet):
        fleet[0].gone.set()
        while len(fleet) < 2 or not fleet[1].idle:
            await asyncio.sleep(0)
        assert await made.draw(job("fine")) is DRAWN
    assert [browser.jobs for browser in fleet] == [0, 1]


async def test_a_page_under_which_every_browser_dies_is_given_up() -> None:
    async with pool({"die": take_browser_down}) as (made, _):
        with pytest.raises(BrowserCrashed):
            await made.draw(job("die"))
        assert await made.draw(job("fine")) is DRAWN


async def test_a_document_that_crashes_its_page_twice_is_oversized() -> None:
    async with pool({"crash": crash}) as (made, fleet):
        with pytest.raises(Undrawable) as fault:
            await made.draw(job("crash"))
        assert fault.value.reason is FailureReason.OVERSIZED
    assert len(fleet) == 1
    assert sum(page.jobs for page in fleet[0].opened) == 2


async def test_a_page_that_errs_is_thrown_away_and_its_job_given_to_another() -> None:
    refusals: list[Page] = []

    async def refuse_once(page: Page) -> Drawn:
        refusals.append(page)
        return await (refuse if len(refusals) == 1 else fine)(page)

    async with pool({"err": refuse_once}) as (made, fleet):
        assert await made.draw(job("err")) is DRAWN
    assert len(fleet) == 1
    assert refusals[0] is not refusals[1]
    assert refusals[0].closed


async def test_a_worn_browser_is_replaced_without_losing_a_job() -> None:
    async with pool({}, pages=1, browser_jobs=2) as (made, fleet):
        for _ in range(5):
            assert await made.draw(job("fine")) is DRAWN
    assert [browser.jobs for browser in fleet][:2] == [2, 2]
    assert {browser.ended for browser in fleet} == {"closed"}


async def test_a_browser_that_has_grown_is_replaced_too() -> None:
    async with pool({}, pages=1, browser_memory_mb=1_000) as (made, fleet):
        for _ in range(50):
            assert await made.draw(job("fine")) is DRAWN
    assert [browser.jobs for browser in fleet] == [40, 10]


async def test_a_page_that_crashed_while_idle_is_not_taken() -> None:
    async with pool({}, pages=1) as (made, fleet):
        (idle,) = fleet[0].opened
        idle.crashed = True
        assert await made.draw(job("fine")) is DRAWN
    assert (idle.jobs, idle.closed) == (0, True)


async def test_more_than_may_wait_are_refused() -> None:
    async with pool({"hang": hang}, pages=1, waiting=1) as (made, _):
        jobs = [asyncio.create_task(made.draw(job("hang"))) for _ in range(2)]
        for _ in range(5):
            await asyncio.sleep(0)
        with pytest.raises(Overloaded):
            await made.draw(job("fine"))
        for each in jobs:
            each.cancel()
        await asyncio.gather(*jobs, return_exceptions=True)


async def test_a_cancelled_job_frees_its_slot_and_costs_its_page() -> None:
    let_go = asyncio.Event()

    async def slow(_: Page) -> Drawn:
        await let_go.wait()
        return DRAWN

    async with pool({"slow": slow}, pages=1) as (made, fleet):
        await cancelled(made, fleet, "slow")
        let_go.set()
        assert await made.draw(job("fine")) is DRAWN
    first, second = fleet[0].opened
    assert first.closed
    assert (first.jobs, second.jobs, len(fleet)) == (1, 1, 1)


async def test_a_cancelled_job_that_hangs_costs_its_browser_and_not_the_next_job() -> None:
    async with pool({"hang": hang}, pages=1) as (made, fleet):
        await cancelled(made, fleet, "hang")
        assert await made.draw(job("fine")) is DRAWN
        assert [browser.ended for browser in fleet] == ["killed", ""]


async def cancelled(made: Pool, fleet: Fleet, html: str) -> None:
    waiting = asyncio.create_task(made.draw(job(html)))
    while not fleet[0].busy:
        await asyncio.sleep(0)
    waiting.cancel()
    with pytest.raises(asyncio.CancelledError):
        await waiting


async def test_a_browser_that_takes_over_keeps_no_more_pages_than_there_are_slots() -> None:
    async with pool({"hang": hang}, pages=2) as (made, fleet):
        with pytest.raises(Undrawable):
            await made.draw(job("hang", timeout_s=0.01))
        await asyncio.gather(*(made.draw(job("fine")) for _ in range(6)))
        await made._settled()
        assert len([page for page in fleet[1].opened if not page.closed]) <= 2


async def test_a_closed_pool_draws_nothing() -> None:
    async with pool({}) as (made, _):
        await made.close()
        with pytest.raises(Unavailable):
            await made.draw(job("fine"))
