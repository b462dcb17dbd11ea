"""Renders per second of the renderer's pool, against a bare page pool in the same run.

    python benchmarks/renderer.py [--renders 120] [--concurrency 2] [--rounds 3]

Prints JSON. The bare pool is what one would write first: one warm page per job at once,
`set_content`, `page.screenshot()`, always at scale 1. `launch` starts a browser per render.
All draw the same screens of the scripted phone and remember none. Beside renders per second
stands the CPU time of all processes involved per render, which other work on the machine
disturbs less (Linux only; without processes that have ended, so too little for `launch`).
"""

import argparse
import asyncio
import json
import os
import platform
import statistics
import time
from collections import defaultdict
from collections.abc import Awaitable, Callable, Sequence
from contextlib import AsyncExitStack
from pathlib import Path
from typing import Any

from playwright.async_api import Playwright, async_playwright

from services.renderer.app import open_renderer
from services.renderer.chromium import find_browser
from services.renderer.processes import cores, family
from services.renderer.settings import RendererSettings
from services.worldmodel import phone, tasks
from services.worldmodel.tasks.checks import random_player
from wmkit import logs
from wmkit.blobs import MemoryBlobs
from wmkit.domain.transition import ImageRequest

Draw = Callable[[str], Awaitable[Any]]
SCALES = (0.15, 0.3, 1.0)
SIZE = {"width": 1080, "height": 2400}


def screens(count: int) -> list[str]:
    """Different screens, reached by playing at random."""
    found: dict[str, None] = {}
    seed = 0
    while len(found) < count:
        task = tasks.make("contacts_delete", seed)
        player, here = random_player(seed), task.start
        for _ in range(6):
            here = phone.step(here, player(task, here, 0))
            found[phone.html(here)] = None
        seed += 1
    return list(found)[:count]


def cpu_s() -> float:
    """CPU seconds of this process and all below it; 0 where the system does not tell."""
    ticks = 0
    for pid in family(os.getpid()):
        try:
            cells = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
        except OSError:
            continue
        ticks += sum(map(int, cells[11:13]))
    return ticks / os.sysconf("SC_CLK_TCK")


async def timed(documents: Sequence[str], renders: int, draws: Sequence[Draw]) -> dict[str, float]:
    """As many at once as there are ways to draw."""
    todo = iter(range(renders))
    waits: list[float] = []

    async def work(draw: Draw) -> None:
        for i in todo:
            begin = time.perf_counter()
            await draw(documents[i % len(documents)])
            waits.append(time.perf_counter() - begin)

    used, begin = cpu_s(), time.perf_counter()
    await asyncio.gather(*map(work, draws))
    return {
        "renders_per_s": renders / (time.perf_counter() - begin),
        "cpu_ms_per_render": (cpu_s() - used) / renders * 1000,
        "median_ms": statistics.median(waits) * 1000,
    }


def launches(driver: Playwright, executable: str) -> Draw:
    async def draw(html: str) -> None:
        browser = await driver.chromium.launch(executable_path=executable)
        page = await browser.new_page(viewport=SIZE)  # type: ignore[arg-type]
        await page.set_content(html)
        await page.screenshot()
        await browser.close()

    return draw


async def measure(renders: int, concurrency: int, rounds: int) -> dict[str, Any]:
    documents = screens(60)
    results: dict[str, list[dict[str, float]]] = defaultdict(list)
    async with AsyncExitStack() as stack:
        settings = RendererSettings(picture_cache_mb=0)
        renderer = await stack.enter_async_context(open_renderer(settings, MemoryBlobs()))
        driver = await stack.enter_async_context(async_playwright())
        executable = find_browser()
        browser = await driver.chromium.launch(executable_path=executable)
        stack.push_async_callback(browser.close)
        bare: list[Draw] = []
        for _ in range(concurrency):
            page = await browser.new_page(viewport=SIZE)  # type: ignore[arg-type]

            async def draw_bare(html: str, page: Any = page) -> None:
                await page.set_content(html)
                await page.screenshot()

            bare.append(draw_bare)
        for _ in range(rounds):
            few = max(2, renders // 30)
            launch = [launches(driver, executable)] * concurrency
            results["launch"].append(await timed(documents, few, launch))
            results["bare"].append(await timed(documents, renders // 2, bare))
            for scale in SCALES:

                async def draw(html: str, scale: float = scale) -> None:
                    await renderer.render(html, 1080, 2400, ImageRequest(scale=scale))

                ways: list[Draw] = [draw] * concurrency
                results[f"pool_{scale}"].append(await timed(documents, renders, ways))
        base = statistics.median(r["renders_per_s"] for r in results["bare"])
        return {
            "machine": {"cores": cores(), "cpu": platform.processor() or platform.machine()},
            "revision": renderer.revision,
            "load": round(os.getloadavg()[0], 1),
            "concurrency": concurrency,
            "results": {name: summary(runs, base) for name, runs in results.items()},
        }


def summary(runs: Sequence[dict[str, float]], base: float) -> dict[str, float]:
    found = {key: round(statistics.median(run[key] for run in runs), 1) for key in runs[0]}
    rate = statistics.median(run["renders_per_s"] for run in runs)
    return found | {"over_bare": round(rate / base, 2)}


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--renders", type=int, default=120)
    parser.add_argument("--concurrency", type=int, default=2)
    parser.add_argument("--rounds", type=int, default=3)
    options = parser.parse_args()
    logs.configure("benchmark", "warning")
    found = asyncio.run(measure(options.renders, options.concurrency, options.rounds))
    print(json.dumps(found, indent=1))


if __name__ == "__main__":
    main()
