"""One Chromium process: start it, open pages in it, end it.

Whatever state it is in, `kill` ends it. Not here: which page draws what, and when a browser
is replaced (`pool`).
"""

import asyncio
import os
import shutil
import socket
import tempfile
from asyncio.subprocess import DEVNULL, PIPE, Process
from collections import deque
from pathlib import Path
from typing import Literal, Self

import structlog

from services.renderer.devtools import DevTools, DevToolsError
from services.renderer.page import WarmPage, open_page
from services.renderer.processes import family, has_ended, kill_group, resident_mb
from wmkit.domain.errors import Unavailable

log = structlog.get_logger(__name__)

Sandbox = Literal["auto", "on", "off"]

# One tile as large as any layer: rounded corners at the seams of smaller ones come out in
# one way or another, and drawing them takes longer.
_TILE = 16_384
FLAGS = (
    "--headless",
    "--no-startup-window",
    "--hide-scrollbars",
    "--force-color-profile=srgb",
    "--font-render-hinting=none",
    "--disable-lcd-text",
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
    "--disable-quic",
    # A whole Chromium draws pages beside each other and does nothing else.
    "--disable-renderer-backgrounding",
    "--disable-backgrounding-occluded-windows",
    "--disable-background-timer-throttling",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-default-apps",
    "--disable-extensions",
    "--disable-sync",
    "--disable-breakpad",
    "--disable-dev-shm-usage",
    "--no-first-run",
    "--no-default-browser-check",
    "--password-store=basic",
    "--use-mock-keychain",
    "--mute-audio",
)
_LAUNCH_S = 30.0
_OPEN_S = 15.0
_STOP_S = 10.0
_ANSWER_S = 2.0
_SAID_BYTES = 1 << 20
# Chromium looks for its pipe at descriptors 3 and 4. It ends when we are killed; the shell then
# still takes its folder away.
_AROUND = '"$@" 3<&0 4>&0 </dev/null; rm -rf "$0"'
_NO_SANDBOX = "--no-sandbox"


class Browser:
    """Made by `launch`. `gone` is set when it has ended, `busy` counts open jobs."""

    def __init__(
        self, process: Process, devtools: DevTools, profile: Path, said: asyncio.Task[str]
    ) -> None:
        self._process = process
        self._devtools = devtools
        self._profile = profile
        self._said = said
        self._opening = asyncio.Lock()
        self._stopping: asyncio.Task[None] | None = None
        self._painter: int | None = None
        self.pid = process.pid
        self.version = ""
        self.gone = devtools.gone
        self.jobs = 0
        self.busy = 0
        self.idle: list[WarmPage] = []

    @classmethod
    async def start(cls, executable: str, *flags: str) -> Self:
        """Raises DevToolsError with its last words when it does not come up, and OSError."""
        profile = Path(tempfile.mkdtemp(prefix="wmr1-chromium-"))
        ours, theirs = socket.socketpair()
        with theirs:
            process = await asyncio.create_subprocess_exec(
                *("/bin/sh", "-c", _AROUND, str(profile), executable),
                *(*FLAGS, *flags, f"--user-data-dir={profile}", "--remote-debugging-pipe"),
                stdin=theirs.fileno(),
                stdout=DEVNULL,
                stderr=PIPE,
                limit=_SAID_BYTES,
                # A group of its own, so that `kill` ends all of it, and no signal of ours does.
                start_new_session=True,
            )
        said = asyncio.create_task(_last_words(process))
        browser = cls(process, await DevTools.connect(ours), profile, said)
        try:
            async with asyncio.timeout(_LAUNCH_S):
                await browser._greet()
        except BaseException as error:
            await browser.kill()
            if isinstance(error, TimeoutError):
                raise DevToolsError(f"no answer within {_LAUNCH_S:g} s") from error
            if isinstance(error, DevToolsError):
                raise DevToolsError(await said or str(error)) from error
            raise
        return browser

    async def _greet(self) -> None:
        product = (await self._devtools.send("Browser.getVersion"))["product"]
        self.version = product.partition("/")[2]
        # The process that was started may be a script around the browser.
        self.pid = (await self._processes("browser")).pop()

    async def open_page(self) -> WarmPage:
        """A warm page. Raises TimeoutError or DevToolsError when the browser is ill."""
        # One at a time, so that a new renderer process is known to be this page's.
        async with self._opening, asyncio.timeout(_OPEN_S):
            before = await self._processes("renderer")
            page = await open_page(self._devtools)
            new = await self._processes("renderer") - before
            page.pid = new.pop() if len(new) == 1 else None
            if self._painter is None:
                self._painter = next(iter(await self._processes("GPU")), None)
            return page

    @property
    def maimed(self) -> bool:
        """Whether the process that paints has ended. Chromium starts another one, in which the
        pages that were open are never painted."""
        return self._painter is not None and has_ended(self._painter)

    async def responds(self) -> bool:
        """Whether it is there and answers."""
        try:
            async with asyncio.timeout(_ANSWER_S):
                await self._processes("renderer")
        except (TimeoutError, DevToolsError):
            return False
        return not self.gone.is_set()

    def memory_mb(self) -> float:
        """Resident memory of all its processes; pages they share count more than once."""
        return sum(map(resident_mb, family(self.pid)))

    async def close(self) -> None:
        """End it politely, or by force where it does not answer."""
        try:
            async with asyncio.timeout(_STOP_S):
                self._devtools.tell("Browser.close", {})
                await self._process.wait()
        except TimeoutError:
            log.warning("browser did not close", pid=self.pid)
        await self.kill()

    async def kill(self) -> None:
        """End it now. May be called any number of times."""
        if self._stopping is None:
            self._stopping = asyncio.create_task(self._kill())
        await asyncio.shield(self._stopping)

    async def _kill(self) -> None:
        kill_group(self._process.pid)
        await self._process.wait()
        self._devtools.close()
        await self.gone.wait()
        await asyncio.to_thread(shutil.rmtree, self._profile, ignore_errors=True)

    async def _processes(self, kind: str) -> set[int]:
        info = await self._devtools.send("SystemInfo.getProcessInfo")
        return {each["id"] for each in info["processInfo"] if each["type"] == kind}


async def launch(executable: str, sandbox: Sandbox = "auto") -> Browser:
    """Start `executable`. Raises Unavailable when it does not start."""
    root = os.geteuid() == 0
    wanted = sandbox == "on" or (sandbox == "auto" and not root)
    if not wanted:
        log.info("Chromium's sandbox is off", reason="running as root" if root else "setting")
    try:
        return await Browser.start(executable, *(() if wanted else (_NO_SANDBOX,)))
    except DevToolsError as error:
        if wanted and sandbox == "auto" and "sandbox" in str(error).lower():
            log.warning("Chromium's sandbox is off", reason="this kernel does not allow it")
            try:
                return await Browser.start(executable, _NO_SANDBOX)
            except DevToolsError as second:
                error = second
        raise Unavailable(f"the browser {executable} does not start: {error}") from error
    except OSError as error:
        raise Unavailable(f"the browser {executable} cannot be started: {error}") from error


async def _last_words(process: Process) -> str:
    """The last lines of its standard error, once it has ended."""
    assert process.stderr is not None
    lines: deque[bytes] = deque(maxlen=5)
    async for line in process.stderr:
        lines.append(line)
    return b" ".join(line.strip() for line in lines).decode("utf-8", "replace")
