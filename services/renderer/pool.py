"""Warm pages of one browser at a time, and what becomes of both when something goes wrong.

    draw -> a slot -> a warm page of the current browser -> watched drawing -> answer
                                                         -> back in the pool, blanked when idle

A page that hangs takes its whole browser with it: a hung renderer or graphics process answers
nothing, closing included. Jobs that were drawn beside it are drawn again in the next browser. One
that overran its time, but ends soon after, goes alone. Not here: what is drawn (`page`), and what
a picture is worth (`engine`).
"""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Coroutine
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Any

import structlog

from services.renderer.browser import Browser
from services.renderer.devtools import DevToolsError
from services.renderer.metrics import ENDED, SECONDS, WAITING
from services.renderer.page import Drawn, WarmPage
from services.renderer.processes import kill, resident_mb
from wmkit.domain.errors import BrowserCrashed, Overloaded, Unavailable
from wmkit.domain.transition import FailureReason, ImageRequest

log = structlog.get_logger(__name__)

_ATTEMPTS = 3
_LOOK_S = 0.1
_BLANK_S = 2.0
_BLANK_AFTER_S = 0.5
_FINISH_S = 1.0
_WEIGH_JOBS = 20


@dataclass(frozen=True, slots=True)
class PoolLimits:
    """`pages` are drawn at once, `waiting` more may queue; see `RendererSettings`."""

    pages: int
    waiting: int = 1_024
    page_jobs: int = 2_000
    page_memory_mb: float = 1_000
    browser_jobs: int = 20_000
    browser_memory_mb: float = 3_000


@dataclass(frozen=True, slots=True)
class Job:
    """A sanitized document to draw. `timeout_s` counts from the moment a page is at hand."""

    html: str
    width_px: int
    height_px: int
    image: ImageRequest | None
    elements: bool
    timeout_s: float


class Undrawable(Exception):
    """The document, not the browser, is the reason why there is no picture."""

    def __init__(self, reason: FailureReason) -> None:
        super().__init__(reason)
        self.reason = reason


class _PageLost(Exception):
    """The page or its browser went away under a job; `crashed` when only the page did."""

    def __init__(self, why: str, crashed: bool = False) -> None:
        super().__init__(why)
        self.crashed = crashed


class Pool:
    """Draws jobs; `launch` starts a browser. Use `start`, any number of `draw`, then `close`."""

    def __init__(self, launch: Callable[[], Awaitable[Browser]], limits: PoolLimits) -> None:
        self._launch = launch
        self._limits = limits
        self._slots = asyncio.Semaphore(limits.pages)
        self._starting = asyncio.Lock()
        self._browser: Browser | None = None
        self._waiting = 0
        self._closed = False
        self._background: set[asyncio.Task[None]] = set()
        self._mourner: asyncio.Task[None] | None = None

    async def start(self) -> str:
        """Start the first browser with all its pages; returns the browser's version.

        Raises Unavailable when it does not start.
        """
        browser = await self._current()
        try:
            for _ in range(self._limits.pages):
                browser.idle.append(await browser.open_page())
        except (TimeoutError, DevToolsError) as error:
            raise Unavailable(f"the browser opens no page: {_first_line(error)}") from error
        return browser.version

    async def draw(self, job: Job) -> Drawn:
        """The drawn document.

        Raises Undrawable (RENDER_TIMEOUT, or OVERSIZED for memory), Overloaded when too
        many jobs wait, BrowserCrashed when browsers keep dying, Unavailable when none starts.
        """
        if self._waiting >= self._limits.waiting:
            raise Overloaded(f"{self._waiting} renders wait for a page already")
        async with self._slot() as tidy:
            crashes = 0
            for _ in range(_ATTEMPTS):
                browser = await self._current()
                try:
                    page = await self._page(browser)
                    return await self._watched(browser, page, job, tidy)
                except _PageLost as loss:
                    log.warning("drawing again", why=str(loss))
                    # A document under which the page's own process dies twice, while the
                    # browser lives, asks for more than this machine has.
                    crashes += loss.crashed
                    if crashes == 2:
                        raise Undrawable(FailureReason.OVERSIZED) from None
            raise BrowserCrashed(f"the browser died {_ATTEMPTS} times under this page")

    async def close(self) -> None:
        """End the browser. Jobs that are still open fail with Unavailable."""
        self._closed = True
        if self._mourner is not None:
            self._mourner.cancel()
        await self._settled()
        async with self._starting:
            browser, self._browser = self._browser, None
        if browser is not None:
            await browser.close()
        await self._settled()

    async def _settled(self) -> None:
        while self._background:
            await asyncio.gather(*self._background, return_exceptions=True)

    @asynccontextmanager
    async def _slot(self) -> AsyncIterator[list[Coroutine[Any, Any, None]]]:
        """One of `pages` slots. What is put into the list runs before it is free again, but
        after the job has its answer."""
        self._waiting += 1
        WAITING.inc()
        try:
            await self._slots.acquire()
        finally:
            self._waiting -= 1
            WAITING.dec()
        tidy: list[Coroutine[Any, Any, None]] = []

        async def leave() -> None:
            try:
                for work in tidy:
                    await work
            finally:
                self._slots.release()

        try:
            yield tidy
        finally:
            self._spawn(leave())

    async def _current(self) -> Browser:
        async with self._starting:
            if self._closed:
                raise Unavailable("the renderer is stopping")
            if self._browser is not None and self._browser.gone.is_set():
                self._end(self._browser, "died")
            elif self._browser is not None and self._browser.maimed:
                self._end(self._browser, "maimed")
            if self._browser is None:
                self._browser = await self._launch()
                if self._mourner is not None:
                    self._mourner.cancel()
                self._mourner = asyncio.create_task(self._mourn(self._browser))
            return self._browser

    async def _mourn(self, browser: Browser) -> None:
        """Replace a browser that dies while nobody draws in it."""
        await browser.gone.wait()
        self._end(browser, "died")

    async def _page(self, browser: Browser) -> WarmPage:
        while browser.idle:
            page = browser.idle.pop()
            if not page.crashed:
                return page
            self._spawn(self._discard(browser, page))
        try:
            return await browser.open_page()
        except (TimeoutError, DevToolsError) as error:
            self._end(browser, "ill")
            raise _PageLost(f"no page could be opened: {_first_line(error)}") from error

    async def _watched(
        self, browser: Browser, page: WarmPage, job: Job, tidy: list[Coroutine[Any, Any, None]]
    ) -> Drawn:
        loop = asyncio.get_running_loop()
        begin = loop.time()
        drawing = asyncio.create_task(
            page.draw(job.html, job.width_px, job.height_px, job.image, job.elements)
        )
        browser.busy += 1
        browser.jobs += 1
        try:
            while True:
                left_s = begin + job.timeout_s - loop.time()
                await asyncio.wait((drawing,), timeout=min(left_s, _LOOK_S))
                if drawing.done():
                    drawn = drawing.result()
                    break
                if browser.maimed:
                    self._end(browser, "maimed")
                    raise _PageLost("the process that paints has ended")
                if loop.time() >= begin + job.timeout_s:
                    raise TimeoutError
                if page.pid and resident_mb(page.pid) > self._limits.page_memory_mb:
                    kill(page.pid)
                    raise Undrawable(FailureReason.OVERSIZED)
        except DevToolsError as error:
            self._spawn(self._discard(browser, page))
            raise await self._loss(browser, page, _first_line(error)) from error
        except asyncio.CancelledError:
            tidy.append(self._abandoned(browser, page, drawing))
            raise
        except TimeoutError:
            tidy.append(self._abandoned(browser, page, drawing))
            raise Undrawable(FailureReason.RENDER_TIMEOUT) from None
        except BaseException:
            drawing.cancel()
            self._spawn(self._discard(browser, page))
            raise
        finally:
            browser.busy -= 1
        SECONDS.observe(loop.time() - begin)
        tidy.append(self._discard(browser, page) if drawn.spoiled else self._tidy(browser, page))
        return drawn

    async def _abandoned(
        self, browser: Browser, page: WarmPage, drawing: asyncio.Task[Drawn]
    ) -> None:
        """After its caller has left or its time is over: nobody waits for the picture, but one
        that hangs would hang the next job's as well, in whatever page of this browser. One that
        is merely late costs its page alone."""
        await asyncio.wait((drawing,), timeout=_FINISH_S)
        if drawing.done():
            drawing.exception()
            await self._discard(browser, page)
        else:
            drawing.cancel()
            self._end(browser, "page hung")

    async def _loss(self, browser: Browser, page: WarmPage, why: str) -> _PageLost:
        """Tell a page that crashed from one whose browser has gone."""
        if browser is self._browser and await browser.responds():
            return _PageLost(why, crashed=page.crashed)
        self._end(browser, "died")
        return _PageLost(why)

    async def _tidy(self, browser: Browser, page: WarmPage) -> None:
        """Give a page back for its next job, or throw it or its browser away after many."""
        limits = self._limits
        if browser.jobs >= limits.browser_jobs:
            self._end(browser, "worn")
        elif page.jobs % _WEIGH_JOBS == 0 and browser.memory_mb() > limits.browser_memory_mb:
            self._end(browser, "grown")
        # A new browser brings a page of its own, beside those that waiting jobs open.
        spare = len(browser.idle) + browser.busy >= limits.pages
        if browser is not self._browser or page.jobs >= limits.page_jobs or spare:
            await self._discard(browser, page)
            return
        browser.idle.append(page)
        # Writing the next document wipes this one out; blanking every time would cost a
        # frame each, a fifth of a small picture.
        asyncio.get_running_loop().call_later(_BLANK_AFTER_S, self._rest, browser, page, page.jobs)

    def _rest(self, browser: Browser, page: WarmPage, jobs: int) -> None:
        if page in browser.idle and page.jobs == jobs and not self._closed:
            browser.idle.remove(page)
            self._spawn(self._blank(browser, page))

    async def _blank(self, browser: Browser, page: WarmPage) -> None:
        async with self._slots:
            try:
                async with asyncio.timeout(_BLANK_S):
                    await page.blank()
            except (TimeoutError, DevToolsError, RuntimeError) as error:
                log.warning("page could not be blanked", error=_first_line(error))
                await self._discard(browser, page)
            else:
                browser.idle.append(page)

    async def _discard(self, browser: Browser, page: WarmPage) -> None:
        try:
            await page.close()
        except TimeoutError:
            self._end(browser, "page did not close")
        except DevToolsError as error:
            log.debug("page was gone already", error=_first_line(error))

    def _end(self, browser: Browser, cause: str) -> None:
        """Let the next job have another browser; end this one now, or once it is unused when
        nothing is wrong with it."""
        if browser is self._browser:
            self._browser = None
            ENDED.labels(cause).inc()
            log.info("browser is replaced", cause=cause, jobs=browser.jobs)
            self._spawn(self._retire(browser) if cause in ("worn", "grown") else browser.kill())
            self._spawn(self._replace())

    async def _replace(self) -> None:
        """Have the next browser ready before a job asks for it."""
        try:
            if not self._closed:
                browser = await self._current()
                browser.idle.append(await browser.open_page())
        except (Unavailable, TimeoutError, DevToolsError) as error:
            log.warning("no new browser yet", error=_first_line(error))

    async def _retire(self, browser: Browser) -> None:
        while browser.busy and not browser.gone.is_set():
            await asyncio.sleep(_LOOK_S)
        await browser.close()

    def _spawn(self, work: Coroutine[Any, Any, None]) -> None:
        task = asyncio.create_task(work)
        self._background.add(task)
        task.add_done_callback(self._forget)

    def _forget(self, task: asyncio.Task[None]) -> None:
        self._background.discard(task)
        if not task.cancelled() and (error := task.exception()) is not None:
            log.error("work behind a render failed", error=repr(error))


def _first_line(error: Exception) -> str:
    return str(error).partition("\n")[0] or type(error).__name__
