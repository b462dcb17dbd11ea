"""One Chromium process with a playwright driver of its own: start, open pages, end.

Whatever state it is in, `kill` ends it. Not here: which page draws what, and when a browser
is replaced (`pool`).
"""

import asyncio
import os
from typing import Literal

import structlog
from playwright.async_api import Browser as PlaywrightBrowser
from playwright.async_api import CDPSession, Playwright, async_playwright
from playwright.async_api import Error as PlaywrightError

from services.renderer.page import WarmPage, open_page
from services.renderer.processes import driver_of, family, is_running, kill, kill_group, resident_mb
from wmkit.domain.errors import Unavailable

log = structlog.get_logger(__name__)

Sandbox = Literal["auto", "on", "off"]

# One tile as large as any layer: rounded corners at the seams of smaller ones come out in
# one way or another, and drawing them takes longer.
_TILE = 16_384
FLAGS = (
    "--disable-dev-shm-usage",
    "--hide-scrollbars",
    "--force-color-profile=srgb",
    "--font-render-hinting=none",
    "--disable-lcd-text",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--no-first-run",
    "--disable-quic",
    "--disable-gpu",
    "--disable-checker-imaging",
    # A picture waits for two frames; nothing that moves would make this one spin.
    "--disable-frame-rate-limit",
    "--blink-settings=imageAnimationPolicy=2",
    "--disable-features=SpareRendererForSitePerProcess",
    f"--default-tile-width={_TILE}",
    f"--default-tile-height={_TILE}",
    f"--max-untiled-layer-width={_TILE}",
    f"--max-untiled-layer-height={_TILE}",
    # Nothing can be reached even by what no request interception sees, such as prefetches.
    "--host-resolver-rules=MAP * ~NOTFOUND",
    "--proxy-server=http://127.0.0.1:9",
    "--proxy-bypass-list=<-loopback>",
)
_LAUNCH_S = 30.0
_OPEN_S = 15.0
_STOP_S = 10.0
_ANSWER_S = 2.0


class Browser:
    """Made by `launch`. `gone` is set when the process has ended, `busy` counts open jobs."""

    def __init__(
        self, driver: Playwright, browser: PlaywrightBrowser, session: CDPSession, pid: int
    ) -> None:
        self._driver = driver
        self._browser = browser
        self._session = session
        self._opening = asyncio.Lock()
        self._stopping: asyncio.Task[None] | None = None
        self._driver_pid = driver_of(pid)
        self.pid = pid
        self.version = browser.version
        self.gone = asyncio.Event()
        self.jobs = 0
        self.busy = 0
        self.idle: list[WarmPage] = []
        browser.on("disconnected", lambda _: self.gone.set())

    async def open_page(self) -> WarmPage:
        """A warm page. Raises TimeoutError or playwright's Error when the browser is ill."""
        # One at a time, so that a new renderer process is known to be this page's.
        async with self._opening, asyncio.timeout(_OPEN_S):
            before = await self._renderers()
            context = await self._browser.new_context(
                java_script_enabled=False,
                offline=True,
                no_viewport=True,
                service_workers="block",
                accept_downloads=False,
                locale="en-US",
                timezone_id="UTC",
                color_scheme="light",
            )
            page = await open_page(context)
            new = await self._renderers() - before
            page.pid = new.pop() if len(new) == 1 else None
            return page

    async def responds(self) -> bool:
        """Whether process and driver are there and answer."""
        if self.gone.is_set():
            return False
        try:
            async with asyncio.timeout(_ANSWER_S):
                await self._renderers()
        except (TimeoutError, PlaywrightError):
            return False
        return not self.gone.is_set()

    def memory_mb(self) -> float:
        """Resident memory of all its processes; pages they share count more than once."""
        return sum(map(resident_mb, family(self.pid)))

    async def close(self) -> None:
        """End it politely, or by force where it does not answer."""
        try:
            async with asyncio.timeout(_STOP_S):
                await self._browser.close()
        except (TimeoutError, PlaywrightError) as error:
            log.warning("browser did not close", error=str(error).partition("\n")[0])
        await self.kill()

    async def kill(self) -> None:
        """End it now, driver included. May be called any number of times."""
        if self._stopping is None:
            self._stopping = asyncio.create_task(self._kill())
        await asyncio.shield(self._stopping)

    async def _kill(self) -> None:
        if not self.gone.is_set():
            kill_group(self.pid)
        driver = self._driver_pid
        try:
            if driver is None or is_running(driver):
                async with asyncio.timeout(_STOP_S):
                    await self.gone.wait()
                    await self._driver.stop()
        except (TimeoutError, PlaywrightError) as error:
            log.warning("playwright is killed", error=repr(error).partition("\n")[0])
            if driver is not None:
                kill(driver)
        self.gone.set()

    async def _renderers(self) -> set[int]:
        info = await self._session.send("SystemInfo.getProcessInfo")
        return {each["id"] for each in info["processInfo"] if each["type"] == "renderer"}


async def launch(executable: str, sandbox: Sandbox = "auto") -> Browser:
    """Start `executable`. Raises Unavailable when it does not start."""
    root = os.geteuid() == 0
    wanted = sandbox == "on" or (sandbox == "auto" and not root)
    if not wanted:
        log.info("Chromium's sandbox is off", reason="running as root" if root else "setting")
    try:
        return await _launch(executable, sandboxed=wanted)
    except PlaywrightError as error:
        if wanted and sandbox == "auto" and "sandbox" in str(error).lower():
            log.warning("Chromium's sandbox is off", reason="this kernel does not allow it")
            try:
                return await _launch(executable, sandboxed=False)
            except PlaywrightError as second:
                error = second
        why = str(error).partition("\n")[0]
        raise Unavailable(f"the browser {executable} does not start: {why}") from error


async def _launch(executable: str, *, sandboxed: bool) -> Browser:
    try:
        driver = await async_playwright().start()
    except Exception as error:  # playwright has no type for a driver that dies as it starts
        raise Unavailable(
            f"Playwright's driver does not start: {error}; `wmr1 doctor` tells what it lacks"
        ) from error
    try:
        browser = await driver.chromium.launch(
            executable_path=executable,
            args=list(FLAGS),
            chromium_sandbox=sandboxed,
            timeout=_LAUNCH_S * 1000,
            # Signals are ours to handle; the browser is closed last.
            handle_sigint=False,
            handle_sigterm=False,
            handle_sighup=False,
        )
        session = await browser.new_browser_cdp_session()
        info = await session.send("SystemInfo.getProcessInfo")
        pid = next(each["id"] for each in info["processInfo"] if each["type"] == "browser")
        return Browser(driver, browser, session, pid)
    except BaseException:
        await driver.stop()
        raise
