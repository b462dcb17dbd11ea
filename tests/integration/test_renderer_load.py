"""Browser and renderer killed while fifty calls are in flight, seen by callers and by steps.

Every call ends, in the one right picture or in a typed error; whoever calls needs no restart.
"""

import asyncio
import os
import signal
from collections.abc import Awaitable, Callable, Iterator
from pathlib import Path

import pytest

from services.renderer.processes import family
from services.worldmodel import phone, tasks
from tests.processes import free_port, service_process
from tests.redis_server import RedisServer
from tests.renderer_cases import document, draw, renderer
from wmkit.clients import WorldModelClient
from wmkit.clients.renderer import RendererClient
from wmkit.domain.actions import OpenApp, Tap
from wmkit.domain.errors import Unavailable
from wmkit.domain.screen import Point
from wmkit.domain.tasks import TaskRef
from wmkit.domain.transition import Image, ImageRequest, Rendering, Transition

CALLS = 50
SMALL = ImageRequest(scale=0.15)
PAGES = [document(f"<p style='font-size:{200 + i}px'>page {i}</p>") for i in range(CALLS)]


@pytest.fixture
def redis(tmp_path: Path) -> Iterator[RedisServer]:
    server = RedisServer(tmp_path).start()
    yield server
    server.kill()


def browser_of(pid: int) -> int:
    """The browser's own process below a renderer service."""
    for child in family(pid):
        words = Path(f"/proc/{child}/cmdline").read_bytes().split(b"\0")
        if b"headless" in words[0] and not any(word.startswith(b"--type=") for word in words):
            return child
    raise AssertionError("no browser")


async def right_digests(pages: list[str]) -> list[str]:
    """What an undisturbed renderer on this machine makes of them."""
    async with renderer(pages=2) as opened:
        drawn = await asyncio.gather(*(draw(opened, html, SMALL) for html in pages))
    return [image.digest for each in drawn if (image := each.image) is not None]


async def disturbed(
    calls: list[Awaitable[Rendering | Transition]], *kills: int
) -> list[Image | Unavailable]:
    """What becomes of calls of which some are in flight when the processes are killed."""
    tasks = [asyncio.ensure_future(call) for call in calls]
    for kill in kills:
        await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
        assert sum(not task.done() for task in tasks) > CALLS / 2
        os.kill(kill, signal.SIGKILL)
    found: list[Image | Unavailable] = []
    for answer in await asyncio.gather(*tasks, return_exceptions=True):
        if isinstance(answer, Unavailable):
            found.append(answer)
        else:
            assert not isinstance(answer, BaseException), answer
            assert answer.image is not None, answer.reason
            found.append(answer.image)
    return found


async def reached(call: Callable[[], Awaitable[object]]) -> None:
    """Return when a call comes through to a process that has just been started."""
    while True:
        try:
            await call()
            return
        except Unavailable:
            continue


def check(found: list[Image | Unavailable], right: list[str]) -> int:
    """None is lost, none is wrong; how many came through."""
    assert len(found) == len(right) == CALLS
    came = [(each.digest, name) for each, name in zip(found, right, strict=True)
            if isinstance(each, Image)]  # fmt: skip
    assert [digest for digest, _ in came] == [name for _, name in came]
    return len(came)


@pytest.mark.parametrize("rounds", [1, 2])
async def test_a_killed_browser_loses_no_render(tmp_path: Path, rounds: int) -> None:
    right = await right_digests(PAGES)
    async with (
        service_process(
            "renderer", WMR1_BLOBS=str(tmp_path), WMR1_PICTURE_CACHE_MB="0", WMR1_PAGES="2"
        ) as (address, process),
        RendererClient(address) as client,
    ):
        for _ in range(rounds):
            calls = [client.render(html, 1080, 2400, SMALL) for html in PAGES]
            found = await disturbed(list(calls), browser_of(process.pid))
            # The pool draws again by itself what was lost.
            assert check(found, right) == CALLS
        assert process.returncode is None


async def test_a_killed_renderer_ends_calls_typed_and_its_successor_answers(
    tmp_path: Path,
) -> None:
    right = await right_digests(PAGES)
    where = {"WMR1_BLOBS": str(tmp_path), "WMR1_PORT": str(free_port()), "WMR1_PAGES": "2"}
    async with (
        service_process("renderer", **where) as (address, first),
        RendererClient(address) as client,
    ):
        calls = [client.render(html, 1080, 2400, SMALL) for html in PAGES]
        found = await disturbed(list(calls), first.pid)
        check(found, right)
        assert any(isinstance(each, Unavailable) for each in found)
        await first.wait()
        async with service_process("renderer", **where):
            await reached(lambda: client.render(PAGES[0], 1080, 2400, SMALL))
            again = [client.render(html, 1080, 2400, SMALL) for html in PAGES]
            assert check(await disturbed(list(again)), right) == CALLS


@pytest.mark.parametrize("victim", ["browser", "renderer"])
async def test_steps_survive_what_draws_their_pictures(
    redis: RedisServer, tmp_path: Path, victim: str
) -> None:
    """Fifty steps from fifty states of a real world model, which is never started again."""
    refs = [TaskRef(template="contacts_delete", seed=i) for i in range(CALLS)]
    step = OpenApp("Contacts")
    after = [phone.step(tasks.make(ref.template, ref.seed).start, step) for ref in refs]
    right = await right_digests([phone.html(here) for here in after])
    blobs = {"WMR1_BLOBS": str(tmp_path / "blobs")}
    where = {**blobs, "WMR1_PORT": str(free_port()), "WMR1_PAGES": "2"}
    async with (
        service_process("renderer", **where) as (renderer_at, first),
        service_process(
            "worldmodel", WMR1_REDIS_URL=redis.url, WMR1_RENDERER=renderer_at, **blobs
        ) as (address, world_process),
        WorldModelClient(address) as world,
    ):
        starts = [(await world.create_state(ref)).state.state_id for ref in refs]

        def steps() -> list[Awaitable[Rendering | Transition]]:
            return [world.step(start, step, image=SMALL) for start in starts]

        killed = browser_of(first.pid) if victim == "browser" else first.pid
        came = check(await disturbed(steps(), killed), right)
        if victim == "browser":
            assert came == CALLS
            assert check(await disturbed(steps()), right) == CALLS
        else:
            assert came < CALLS
            await first.wait()
            # Without pictures the world goes on meanwhile.
            assert (await world.step(starts[0], Tap(Point(0.5, 0.5)))).state is not None
            async with service_process("renderer", **where):
                await reached(lambda: world.step(starts[0], step, image=SMALL))
                assert check(await disturbed(steps()), right) == CALLS
        assert world_process.returncode is None
