"""Real browsers that are killed, hung or fed too much: typed ends, and a healthy pool after."""

import asyncio
import base64
import os
import signal
import struct
import zlib
from pathlib import Path

import pytest
from prometheus_client import REGISTRY

from services.renderer.browser import Browser
from services.renderer.engine import LocalRenderer, Request
from services.renderer.processes import family
from tests.processes import Handles
from tests.renderer_cases import case, data, document, draw, renderer
from wmkit.domain.errors import BrowserCrashed
from wmkit.domain.transition import FailureReason, ImageRequest

PLAIN = document("<p style='font-size:90px'>plain</p>")
SLOW = document(
    "<div style='position:absolute;inset:0;backdrop-filter:blur(60px)'></div>" * 12 + "<p>slow</p>"
)


async def end(processes: Handles) -> None:
    await asyncio.to_thread(processes.wait)


def browser(opened: LocalRenderer) -> Browser:
    current = opened._pool._browser
    assert current is not None
    return current


async def busy(opened: LocalRenderer, but: Browser | None = None) -> Browser:
    """The current browser, another than `but`, as soon as it draws."""
    while True:
        current = opened._pool._browser
        if current is not None and current is not but and current.busy:
            return current
        await asyncio.sleep(0)


def ended(cause: str) -> float:
    name = "wmr1_renderer_browsers_ended_total"
    return REGISTRY.get_sample_value(name, {"cause": cause}) or 0.0


async def test_a_browser_killed_in_mid_job_is_replaced_and_the_job_drawn() -> None:
    async with renderer() as opened:
        alone = data(await draw(opened, SLOW))
        died = ended("died")
        call = asyncio.create_task(draw(opened, SLOW))
        os.kill((await busy(opened)).pid, signal.SIGKILL)
        assert data(await call) == alone
        assert ended("died") == died + 1
        assert data(await draw(opened, PLAIN))


async def test_when_every_browser_is_killed_the_error_is_typed_and_the_next_call_succeeds() -> None:
    async with renderer() as opened:
        call = asyncio.create_task(draw(opened, SLOW))
        last = None
        for _ in range(3):
            last = await busy(opened, but=last)
            os.kill(last.pid, signal.SIGKILL)
        with pytest.raises(BrowserCrashed):
            await call
        assert data(await draw(opened, PLAIN))


async def test_a_page_whose_process_is_killed_is_drawn_again_in_the_same_browser() -> None:
    async with renderer(pages=1) as opened:
        alone = data(await draw(opened, SLOW))
        first = browser(opened)
        (page,) = first.idle
        assert page.pid is not None
        call = asyncio.create_task(draw(opened, SLOW))
        await busy(opened)
        os.kill(page.pid, signal.SIGKILL)
        assert data(await call) == alone
        assert browser(opened) is first


def painter(browser: Browser) -> int:
    """Its GPU process."""
    command = {pid: Path(f"/proc/{pid}/cmdline").read_bytes() for pid in family(browser.pid)}
    (found,) = (pid for pid, line in command.items() if b"--type=gpu-process" in line)
    return found


@pytest.mark.parametrize("drawing", [False, True], ids=["idle", "drawing"])
async def test_a_lost_painter_is_no_fault_of_the_page(drawing: bool) -> None:
    async with renderer() as opened:
        alone = data(await draw(opened, SLOW))
        first = browser(opened)
        with Handles([painter(first)]) as processes:
            call = asyncio.create_task(draw(opened, SLOW))
            if drawing:
                await busy(opened)
            os.kill(painter(first), signal.SIGKILL)
            await end(processes)
            assert data(await call) == alone
        assert browser(opened) is not first


async def test_one_callers_short_deadlines_are_not_felt_by_others() -> None:
    async with renderer() as opened:
        alone = data(await draw(opened, PLAIN))
        first = browser(opened)
        hasty = Request(PLAIN, 1080, 2400, ImageRequest(scale=0.25), timeout_s=0.001)
        for _ in range(10):
            late, right = await asyncio.gather(opened.answer(hasty), draw(opened, PLAIN))
            assert late.reason is FailureReason.RENDER_TIMEOUT
            assert data(right) == alone
        assert browser(opened) is first


async def test_what_hangs_is_a_typed_outcome_and_its_neighbours_are_drawn() -> None:
    async with renderer() as opened:
        before = data(await draw(opened, PLAIN))
        hung = Request(case("backdrop_layers.html"), 1080, 2400, ImageRequest(), timeout_s=1.0)
        neighbours = [draw(opened, PLAIN) for _ in range(4)]
        first, *others = await asyncio.gather(opened.answer(hung), *neighbours)
        assert first.reason in (None, FailureReason.RENDER_TIMEOUT)
        assert [data(each) for each in others] == [before] * 4


async def test_a_page_that_grows_beyond_its_memory_is_oversized() -> None:
    """A picture of 9000 x 9000 pixels needs 324 MB to be shown, and 1 MB to be sent."""

    def chunk(kind: bytes, body: bytes) -> bytes:
        return (
            struct.pack(">I", len(body)) + kind + body + struct.pack(">I", zlib.crc32(kind + body))
        )

    side = 9_000
    packer = zlib.compressobj(1)
    rows = b"".join(packer.compress(bytes(1 + 3 * side)) for _ in range(side)) + packer.flush()
    header = struct.pack(">IIBBBBB", side, side, 8, 2, 0, 0, 0)
    png = b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", header) + chunk(b"IDAT", rows) + chunk(b"IEND", b"")
    bomb = document(f"<img src='data:image/png;base64,{base64.b64encode(png).decode()}'>")
    async with renderer(page_memory_mb=300) as opened:
        assert (await draw(opened, bomb)).reason is FailureReason.OVERSIZED
        assert data(await draw(opened, PLAIN))


async def test_a_worn_browser_is_replaced_and_nothing_of_it_stays() -> None:
    async with renderer(browser_jobs=2, pages=1) as opened:
        first = browser(opened)
        with Handles(family(first.pid)) as processes:
            for _ in range(3):
                assert data(await draw(opened, PLAIN))
            assert browser(opened) is not first
            await end(processes)


async def test_closing_leaves_no_process() -> None:
    async with renderer() as opened:
        await draw(opened, PLAIN)
        pids = [pid for pid in family(os.getpid()) if pid != os.getpid()]
        assert len(pids) >= 4
        processes = Handles(pids)
    assert processes.all_ended
    processes.close()
