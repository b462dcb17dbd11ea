"""Documents made to do harm, many of them: typed outcomes, and nothing of them stays behind."""

import asyncio
import os
from collections import Counter
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest
from hypothesis import HealthCheck, Phase, given, settings

from services.renderer.engine import LocalRenderer, Request
from services.renderer.processes import family
from tests.html_strategies import odd_documents
from tests.processes import Handles
from tests.renderer_cases import EXPECTED, case, document, draw, pixels, renderer
from wmkit.domain.transition import FailureReason, ImageRequest

ODD_PAGES = 2_000
TINY = ImageRequest(scale=0.1, with_elements=True)


async def browser_sees(opened: LocalRenderer) -> tuple[int, int]:
    """Contexts and pages that are open, as the browser itself tells."""
    browser = opened._pool._browser
    assert browser is not None
    contexts = await browser._devtools.send("Target.getBrowserContexts")
    targets = await browser._devtools.send("Target.getTargets")
    pages = [each for each in targets["targetInfos"] if each["type"] == "page"]
    return len(contexts["browserContextIds"]), len(pages)


def zombies() -> list[int]:
    """Processes below this one that have ended and were not waited for."""
    found = []
    for pid in family(os.getpid()):
        try:
            state = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
        except OSError:
            continue
        if state == "Z":
            found.append(pid)
    return found


@asynccontextmanager
async def leaving_nothing(pages: int) -> AsyncIterator[LocalRenderer]:
    """A renderer of which, after the block, nothing but its warm pages may be open, and after
    its end no process."""
    async with renderer(pages=pages, page_timeout_s=20.0) as opened:
        yield opened
        pool = opened._pool
        await pool._settled()
        browser = pool._browser
        assert browser is not None
        assert (pool._waiting, browser.busy, pool._slots._value) == (0, 0, pages)
        contexts, targets = await browser_sees(opened)
        assert contexts == targets <= pages
        left = [pid for pid in family(os.getpid()) if pid != os.getpid()]
        processes = Handles(pid for pid in left if pid not in zombies())
    await asyncio.to_thread(processes.wait)
    processes.close()
    assert zombies() == []


async def test_two_hundred_good_pages_are_drawn_right_after_all_cases_at_once() -> None:
    files = [line["file"] for line in EXPECTED if not line["file"].endswith(".txt")]
    shades = [(i, 255 - i, (i * 7) % 256) for i in range(200)]
    async with leaving_nothing(pages=3) as opened:
        cases = [Request(case(name), 1080, 2400, ImageRequest(), timeout_s=4.5) for name in files]
        for rendering in await asyncio.gather(*map(opened.answer, cases)):
            assert (rendering.image is None) is (rendering.reason is not None)
        good = [
            document(f"<p>{i}</p>", background=f"background:rgb{shade}")
            for i, shade in enumerate(shades)
        ]
        drawn = await asyncio.gather(*(draw(opened, html) for html in good))
        assert [pixels(each).getpixel((200, 500)) for each in drawn] == shades


@pytest.mark.slow
async def test_odd_pages_end_typed_and_leave_nothing_behind() -> None:
    found: list[str] = []

    @settings(
        max_examples=ODD_PAGES,
        phases=[Phase.generate],
        derandomize=True,
        database=None,
        suppress_health_check=list(HealthCheck),
    )
    @given(odd_documents)
    def collect(html: str) -> None:
        found.append(html)

    collect()
    assert len(found) == ODD_PAGES
    async with leaving_nothing(pages=3) as opened:
        # More may not wait than the queue takes.
        busy = asyncio.Semaphore(100)

        async def answer(html: str) -> str:
            async with busy:
                rendering = await draw(opened, html, TINY)
            assert (rendering.image is None) is (rendering.reason is not None)
            return rendering.reason or "ok"

        outcomes = Counter(await asyncio.gather(*map(answer, found)))
        assert set(outcomes) <= {"ok", *FailureReason}
        # It is the pages that are odd, not the renderer: most of them can be drawn.
        assert outcomes["ok"] > ODD_PAGES / 3
        after = await draw(opened, document("", background="background:rgb(1,2,3)"))
        assert pixels(after).getpixel((5, 5)) == (1, 2, 3)
