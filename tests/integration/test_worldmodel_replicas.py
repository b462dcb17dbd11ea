"""Two world-model processes on one Redis: what both are asked at once is computed once."""

import asyncio
import io
import shutil
import signal
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest
from PIL import Image as Pillow

from tests.openai_server import Answer, OpenAiServer, openai_server
from tests.processes import service_process
from tests.redis_server import RedisServer
from wmkit.clients import WorldModelClient
from wmkit.domain.actions import Back
from wmkit.domain.errors import Unavailable
from wmkit.domain.sources import FromScreenshot
from wmkit.domain.transition import Transition

pytestmark = pytest.mark.skipif(
    not shutil.which("redis-server"), reason="redis-server is not installed"
)
PAGE = "<!DOCTYPE html><html><body><div id='render-target'>next</div></body></html>"


@pytest.fixture
def redis(tmp_path: Path) -> Iterator[RedisServer]:
    server = RedisServer(tmp_path).start()
    yield server
    server.kill()


@asynccontextmanager
async def replica(
    redis: RedisServer, folder: Path, model: OpenAiServer
) -> AsyncIterator[tuple[WorldModelClient, asyncio.subprocess.Process]]:
    async with (
        service_process(
            "worldmodel",
            WMR1_BACKENDS="code2world",
            WMR1_BLOBS=str(folder / "blobs"),
            WMR1_REDIS_URL=redis.url,
            WMR1_CODE2WORLD_URL=model.url,
        ) as (address, process),
        WorldModelClient(address) as client,
    ):
        yield client, process


async def start(client: WorldModelClient) -> str:
    out = io.BytesIO()
    Pillow.new("RGB", (108, 240), "#224466").save(out, "PNG")
    return (await client.create_state(FromScreenshot(out.getvalue()))).state.state_id


async def test_equal_steps_at_two_replicas_are_one_call_to_the_model(
    redis: RedisServer, tmp_path: Path
) -> None:
    gate = asyncio.Event()
    async with (
        openai_server(Answer(PAGE, gate=gate)) as model,
        replica(redis, tmp_path, model) as (one, _),
        replica(redis, tmp_path, model) as (two, _),
    ):
        state = await start(one)
        steps = [
            asyncio.create_task(client.step(state, Back(), seed=7))
            for client in (one, two)
            for _ in range(20)
        ]
        await model.until(lambda s: s.open == 1)
        # A state that is another's answer only comes back once its steps are in flight too.
        await asyncio.gather(*(client.get_state(state) for client in (one, two)))
        gate.set()
        found = await asyncio.gather(*steps)
    assert len(model.requests) == 1
    assert len({step.state.state_id for step in found if step.state is not None}) == 1
    assert all(step.state is not None for step in found)
    assert [step.provenance.cache_hit for step in found].count(False) == 1


async def test_when_the_replica_that_computes_is_killed_the_other_takes_over(
    redis: RedisServer, tmp_path: Path
) -> None:
    gate = asyncio.Event()
    async with (
        openai_server(Answer(PAGE, gate=gate)) as model,
        replica(redis, tmp_path, model) as (one, holder),
        replica(redis, tmp_path, model) as (two, _),
    ):
        state = await start(one)
        first = asyncio.create_task(one.step(state, Back()))
        await model.until(lambda s: s.open == 1)
        others = [asyncio.create_task(two.step(state, Back())) for _ in range(20)]
        await two.get_state(state)
        holder.send_signal(signal.SIGKILL)
        await holder.wait()
        # The dead one's connection closes; the survivor asks as soon as the lease has ended.
        await model.until(lambda s: s.abandoned == 1 and s.open == 1)
        gate.set()
        found: list[Transition] = await asyncio.gather(*others)
        with pytest.raises(Unavailable):
            await first
    assert len(model.requests) == 2
    assert len({step.state.state_id for step in found if step.state is not None}) == 1
    assert [step.provenance.cache_hit for step in found].count(False) == 1


async def test_what_fails_at_one_replica_is_tried_by_the_one_that_waits(
    redis: RedisServer, tmp_path: Path
) -> None:
    """The holder's caller leaves; whoever waits at the other replica works in its place."""
    gate = asyncio.Event()
    async with (
        openai_server(Answer(PAGE, gate=gate)) as model,
        replica(redis, tmp_path, model) as (one, _),
        replica(redis, tmp_path, model) as (two, _),
    ):
        state = await start(one)
        first = asyncio.create_task(one.step(state, Back()))
        await model.until(lambda s: s.open == 1)
        second = asyncio.create_task(two.step(state, Back()))
        await two.get_state(state)
        first.cancel()
        await model.until(lambda s: s.abandoned == 1 and s.open == 1)
        gate.set()
        assert (await second).provenance.cache_hit is False
    assert len(model.requests) == 2
