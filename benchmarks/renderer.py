"""Pictures per second of the renderer service, against what one would write without it.

    python benchmarks/renderer.py [--renders 80] [--rounds 5] [--growth 5000]

Starts the service as a process and asks it over gRPC, with nothing remembered, for 50 screens
of the scripted phone at 1080x2400 as PNG. In turn with it, round after round, stand

    launch   a driver and a browser started for every picture, `set_content` until the network
             is idle, `page.screenshot()`: the usual script; as many at once as the service has
             calls in flight
    bare K   the fastest pool in one process: K warm pages of one browser, `set_content`,
             DevTools capture with `optimizeForSpeed`. No sanitizing, no element boxes, no
             deadline, no blob store, no wire.
    full, small, full_busy, small_busy
             the service at scale 1 and 0.3, asked for as many pictures at once as `launch`
             makes, and for twice as many, which is what it takes to keep its pages busy

Every ratio is the median over the rounds of a ratio taken inside one round, so that other work
on the machine falls on both sides. `vs_bare_pool` is full_busy against the best K. `rss_growth`
is the resident memory of service and browser after `--growth` pictures over that after a tenth
of them, shared pages counted as often as they are mapped. Writes
benchmarks/results/renderer.json.
"""

import argparse
import asyncio
import base64
import json
import os
import platform
import statistics
import sys
import tempfile
import time
from collections import defaultdict
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from importlib.metadata import version
from pathlib import Path
from typing import Any

from playwright.async_api import Browser, ViewportSize, async_playwright

from services.renderer.chromium import find_browser
from services.renderer.processes import cores, family, resident_mb
from services.worldmodel import phone, tasks
from services.worldmodel.tasks.checks import random_player
from wmkit.clients.renderer import RendererClient
from wmkit.domain.transition import ImageRequest

RESULT = Path(__file__).parent / "results" / "renderer.json"
SIZE: ViewportSize = {"width": 1080, "height": 2400}
FULL, SMALL = ImageRequest(scale=1.0), ImageRequest(scale=0.3)
BARE_JOBS = (1, 2, 3, 4)

Draw = Callable[[str], Awaitable[Any]]


def screens(count: int) -> list[str]:
    """Different screens of all apps, reached by playing at random."""
    templates = sorted(tasks.TEMPLATES)
    found: dict[str, None] = {}
    seed = 0
    while len(found) < count:
        task = tasks.make(templates[seed * 7 % len(templates)], seed)
        player, here = random_player(seed), task.start
        for _ in range(5):
            here = phone.step(here, player(task, here, 0))
        found[phone.html(here)] = None
        seed += 1
    return list(found)


async def rate(documents: Sequence[str], renders: int, draws: Sequence[Draw]) -> float:
    """Pictures per second, as many at once as there are ways to draw."""
    todo = iter(range(renders))

    async def work(draw: Draw) -> None:
        for i in todo:
            await draw(documents[i % len(documents)])

    begin = time.perf_counter()
    await asyncio.gather(*map(work, draws))
    return renders / (time.perf_counter() - begin)


@asynccontextmanager
async def service() -> AsyncIterator[tuple[RendererClient, int]]:
    """A renderer process that remembers nothing: a client of it, and its pid."""
    with tempfile.TemporaryDirectory() as blobs:
        process = await asyncio.create_subprocess_exec(
            sys.executable,
            "-m",
            "services.renderer",
            env=os.environ | {"WMR1_PORT": "0", "WMR1_BLOBS": blobs, "WMR1_PICTURE_CACHE_MB": "0"},
            stderr=asyncio.subprocess.PIPE,
        )
        assert process.stderr is not None
        try:
            async for line in process.stderr:
                if b'"serving"' in line:
                    break
            else:
                raise SystemExit(f"the renderer ended with {await process.wait()}")
            async with RendererClient(json.loads(line)["address"]) as client:
                yield client, process.pid
        finally:
            if process.returncode is None:
                process.terminate()
                await process.communicate()


def served(client: RendererClient, image: ImageRequest) -> Draw:
    async def draw(html: str) -> None:
        rendering = await client.render(html, 1080, 2400, image)
        assert rendering.image is not None and not rendering.cached, rendering.reason

    return draw


def launched(executable: str) -> Draw:
    async def draw(html: str) -> None:
        async with async_playwright() as driver:
            browser = await driver.chromium.launch(executable_path=executable)
            page = await browser.new_page(viewport=SIZE)
            await page.set_content(html, wait_until="networkidle")
            await page.screenshot()
            await browser.close()

    return draw


async def bare(browser: Browser) -> Draw:
    page = await browser.new_page(viewport=SIZE)
    session = await page.context.new_cdp_session(page)

    async def draw(html: str) -> None:
        await page.set_content(html)
        answer = await session.send(
            "Page.captureScreenshot", {"format": "png", "optimizeForSpeed": True}
        )
        base64.b64decode(answer["data"])

    return draw


async def speed(renders: int, rounds: int, concurrency: int) -> tuple[dict[str, Any], str]:
    """Rates of all ways by round, and the revision of the service."""
    documents, executable = screens(50), find_browser()
    rates: dict[str, list[float]] = defaultdict(list)
    async with AsyncExitStack() as stack:
        client, _ = await stack.enter_async_context(service())
        driver = await stack.enter_async_context(async_playwright())
        browser = await driver.chromium.launch(executable_path=executable)
        stack.push_async_callback(browser.close)
        pages = [await bare(browser) for _ in range(max(BARE_JOBS))]
        ways = {f"bare_{jobs}": (renders, pages[:jobs]) for jobs in BARE_JOBS}
        for name, image, count in (("full", FULL, renders), ("small", SMALL, 2 * renders)):
            ways[name] = (count, [served(client, image)] * concurrency)
            ways[f"{name}_busy"] = (count, [served(client, image)] * 2 * concurrency)
        few = max(2 * concurrency, renders // 8)
        ways["launch"] = (few, [launched(executable)] * concurrency)
        for count, draws in ways.values():  # Warm up: blobs, pages, code.
            await rate(documents, min(count, 50), draws)
        for turn in range(rounds):
            for name, (count, draws) in ways.items():
                rates[name].append(await rate(documents, count, draws))
            say(f"round {turn + 1} of {rounds}: " + shown({k: v[-1] for k, v in rates.items()}))
        revision = (await client.render(documents[0], 1080, 2400, SMALL)).revision
    return dict(rates), revision


def ratios(rates: dict[str, list[float]]) -> dict[str, float]:
    best = max((name for name in rates if name.startswith("bare")), key=lambda n: median(rates[n]))

    def over(name: str, base: str) -> float:
        return round(median([a / b for a, b in zip(rates[name], rates[base], strict=True)]), 2)

    return {
        "speedup_vs_launch": over("full", "launch"),
        "small_speedup_vs_launch": over("small", "launch"),
        "vs_bare_pool": over("full_busy", best),
        "small_vs_full": over("small_busy", "full_busy"),
    }


async def growth(renders: int, concurrency: int) -> dict[str, float]:
    """Resident memory of service and browser after a tenth of `renders` and after all."""
    documents = screens(50)
    found = {}
    async with service() as (client, pid):
        draws = [served(client, FULL), served(client, SMALL)] * max(concurrency // 2, 1)
        for count, name in ((renders // 10, "early"), (renders - renders // 10, "late")):
            await rate(documents, count, draws)
            found[f"rss_{name}_mb"] = round(sum(map(resident_mb, family(pid))))
            say(f"memory {name}: {found[f'rss_{name}_mb']} MB")
    return {**found, "rss_growth": round(found["rss_late_mb"] / found["rss_early_mb"], 2)}


def median(values: Sequence[float]) -> float:
    return statistics.median(values)


def shown(rates: dict[str, float]) -> str:
    return ", ".join(f"{name} {value:.1f}/s" for name, value in rates.items())


def say(text: str) -> None:
    print(text, file=sys.stderr, flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--renders", type=int, default=80, help="pictures of a way per round")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--growth", type=int, default=5000, help="pictures of the memory figure")
    parser.add_argument("--concurrency", type=int, default=cores(), help="calls in flight")
    chosen = parser.parse_args()
    rates, revision = asyncio.run(speed(chosen.renders, chosen.rounds, chosen.concurrency))
    figures = asyncio.run(growth(chosen.growth, chosen.concurrency)) if chosen.growth else {}
    report = {
        "ratios": ratios(rates),
        **figures,
        "renders_per_s": {name: round(median(runs), 2) for name, runs in rates.items()},
        "by_round": {name: [round(run, 2) for run in runs] for name, runs in rates.items()},
        "settings": vars(chosen),
        "machine": {"cores": cores(), "cpu": platform.processor() or platform.machine()},
        "versions": {"revision": revision, "playwright": version("playwright"),
                     "python": platform.python_version()},
    }  # fmt: skip
    RESULT.parent.mkdir(exist_ok=True)
    RESULT.write_text(json.dumps(report, indent=1) + "\n")
    print(json.dumps(report, indent=1))


if __name__ == "__main__":
    main()
