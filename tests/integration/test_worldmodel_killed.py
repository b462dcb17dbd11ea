"""SIGKILL under load: Redis, the model's server, the world model itself, 50 steps in flight each.

All are real processes. Every step ends in its own right answer or in a typed error; asked again
it has the right answer, and nothing but what was killed has been started again.
"""

import asyncio
import io
import shutil
import signal
import socket
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest
from PIL import Image as Pillow

from tests.openai_process import ModelProcess, expected
from tests.processes import service_process
from tests.redis_server import RedisServer
from wmkit.clients import WorldModelClient
from wmkit.domain.actions import OpenApp
from wmkit.domain.errors import Overloaded, Unavailable
from wmkit.domain.sources import FromScreenshot
from wmkit.domain.transition import Outcome, Transition

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(not shutil.which("redis-server"), reason="redis-server is not installed"),
]
APPS = [f"App {n}" for n in range(50)]


@pytest.fixture
def redis(tmp_path: Path) -> Iterator[RedisServer]:
    server = RedisServer(tmp_path).start()
    yield server
    server.kill()


@pytest.fixture
async def model() -> AsyncIterator[ModelProcess]:
    """A model that holds every answer back until it is told to go on."""
    process = await ModelProcess().start(hold=True)
    yield process
    await process.kill()


@asynccontextmanager
async def world(
    redis: RedisServer, model: ModelProcess, folder: Path, port: int = 0
) -> AsyncIterator[tuple[WorldModelClient, asyncio.subprocess.Process]]:
    async with (
        service_process(
            "worldmodel",
            WMR1_PORT=str(port),
            WMR1_BACKENDS="code2world",
            WMR1_BLOBS=str(folder / "blobs"),
            WMR1_REDIS_URL=redis.url,
            WMR1_CODE2WORLD_URL=model.url,
            WMR1_ENGINE_IN_FLIGHT=str(len(APPS)),
            WMR1_ENGINE_BREAKER_REST_S="0.2",
        ) as (address, process),
        WorldModelClient(address) as client,
    ):
        yield client, process


async def start(client: WorldModelClient) -> str:
    out = io.BytesIO()
    Pillow.new("RGB", (108, 240), "#224466").save(out, "PNG")
    return (await client.create_state(FromScreenshot(out.getvalue()))).state.state_id


async def step(client: WorldModelClient, state: str, app: str) -> Transition | Exception:
    try:
        return await client.step(state, OpenApp(app))
    except (Unavailable, Overloaded) as error:  # Anything else is a wrong end.
        return error


async def begin(client: WorldModelClient, state: str) -> list[asyncio.Task[Transition | Exception]]:
    return [asyncio.create_task(step(client, state, app)) for app in APPS]


async def settle(client: WorldModelClient, state: str, first: list[Transition | Exception]) -> None:
    """What has failed is asked again until it succeeds, and everything is right."""
    answers = dict(zip(APPS, first, strict=True))
    async with asyncio.timeout(120):
        while failed := [app for app, found in answers.items() if isinstance(found, Exception)]:
            again = await asyncio.gather(*(step(client, state, app) for app in failed))
            answers |= dict(zip(failed, again, strict=True))
    for app, found in answers.items():
        assert isinstance(found, Transition) and found.state is not None
        assert found.outcome is Outcome.CHANGED
        assert await client.get_html(found.state.state_id) == expected(app)
    assert len({found.state for found in answers.values() if isinstance(found, Transition)}) == 50


async def test_the_model_s_server_is_killed(
    redis: RedisServer, model: ModelProcess, tmp_path: Path
) -> None:
    async with world(redis, model, tmp_path) as (client, process):
        state = await start(client)
        steps = await begin(client, state)
        await model.until_open(len(APPS))
        await model.kill()
        await model.start()
        await settle(client, state, await asyncio.gather(*steps))
        assert process.returncode is None


async def test_redis_is_killed(redis: RedisServer, model: ModelProcess, tmp_path: Path) -> None:
    async with world(redis, model, tmp_path) as (client, process):
        state = await start(client)
        steps = await begin(client, state)
        await model.until_open(len(APPS))
        redis.kill()
        model.go()
        # All answers come while there is no Redis, or one that is starting, to keep them.
        redis.start()
        await settle(client, state, await asyncio.gather(*steps))
        assert process.returncode is None and model.process.returncode is None


async def test_the_world_model_is_killed(
    redis: RedisServer, model: ModelProcess, tmp_path: Path
) -> None:
    with socket.create_server(("127.0.0.1", 0)) as probe:
        port = probe.getsockname()[1]
    async with world(redis, model, tmp_path, port) as (client, process):
        state = await start(client)
        steps = await begin(client, state)
        await model.until_open(len(APPS))
        process.send_signal(signal.SIGKILL)
        await process.wait()
        await model.until_open(0)
        model.go()
        async with world(redis, model, tmp_path, port):
            # The very client whose calls were cut off goes on, with the state that it held.
            await settle(client, state, await asyncio.gather(*steps))
        assert model.process.returncode is None
