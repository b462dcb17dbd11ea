"""The limits of the renderer's wire: large answers, larger requests, deadlines, the drain."""

import asyncio
import base64
import io
import random
import signal
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path
from typing import Any

import grpc
import pytest
import pytest_asyncio
from PIL import Image
from wmr1.renderer.v1 import renderer_pb2 as pb
from wmr1.renderer.v1 import renderer_pb2_grpc as rpc

from services.renderer.app import registration
from services.renderer.settings import RendererSettings
from services.worldmodel.app import registration as worldmodel_registration
from services.worldmodel.settings import WorldModelSettings
from tests.processes import service_process
from tests.redis_server import RedisServer
from tests.renderer_cases import case, document, pixels
from wmkit.blobs import digest
from wmkit.clients import WorldModelClient
from wmkit.clients.renderer import RendererClient
from wmkit.domain.actions import OpenApp
from wmkit.domain.errors import DeadlineExpired, InvalidRequest, PayloadTooLarge
from wmkit.domain.sources import FromHtml
from wmkit.domain.tasks import TaskRef
from wmkit.domain.transition import ImageRequest
from wmkit.rpc.channel import open_channel
from wmkit.rpc.server import running
from wmkit.settings import ServiceSettings

pytestmark = pytest.mark.asyncio(loop_scope="module")

SMALL = ImageRequest(scale=0.1)
MIB = 1 << 20


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def address(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[str]:
    blobs = str(tmp_path_factory.mktemp("blobs"))
    settings = RendererSettings(port=0, blobs=blobs, pages=1, drain_pause_s=0)
    resources = AsyncExitStack()
    register = registration(settings, resources)
    async with running(settings, "renderer", register, resources.aclose) as server:
        yield server.address


async def test_an_answer_of_twelve_megabytes_passes_whole(address: str) -> None:
    """Noise cannot be compressed: 1600x2700 pixels of it take 3 bytes each. The copies lie further
    apart than deflate looks back."""
    wide, high = 1600, 10
    noise = Image.frombytes("RGB", (wide, high), random.Random(1).randbytes(wide * high * 3))
    out = io.BytesIO()
    noise.save(out, "PNG")
    url = "data:image/png;base64," + base64.b64encode(out.getvalue()).decode()
    html = document(f"<div style='position:fixed;inset:0;background:url({url})'></div>").replace(
        "overflow:hidden", ""
    )
    async with RendererClient(address) as client:
        rendering = await client.render(html, 1600, 2700, ImageRequest())
    assert rendering.image is not None
    assert 12 * MIB <= len(rendering.image.data) < 32 * MIB
    assert digest(rendering.image.data) == rendering.image.digest
    picture = pixels(rendering)
    assert picture.size == (1600, 2700)
    corner = (0, 2700 - high, wide, 2700)
    assert picture.crop(corner).tobytes() == noise.tobytes()


async def test_a_request_of_forty_megabytes_is_refused_with_a_sentence(address: str) -> None:
    large = "x" * (40 * MIB)
    async with open_channel(address) as channel:
        with pytest.raises(grpc.aio.AioRpcError) as refused:
            await rpc.RendererServiceStub(channel).Render(pb.RenderRequest(html=large), timeout=60)
    assert refused.value.code() is grpc.StatusCode.RESOURCE_EXHAUSTED
    assert "larger than max" in (refused.value.details() or "")
    async with RendererClient(address) as client:
        with pytest.raises(PayloadTooLarge, match=r"the renderer at .* larger than max"):
            await client.render(large, 1080, 2400, SMALL)
        assert (await client.render(document("<p>x"), 1080, 2400, SMALL)).reason is None


async def test_half_of_a_surrogate_pair_is_an_error_of_the_caller(address: str) -> None:
    async with RendererClient(address) as client, WorldModelClient(address) as world:
        with pytest.raises(InvalidRequest, match="half of a surrogate pair at character 3"):
            await client.render("<p>\ud800", 1080, 2400, SMALL)
        with pytest.raises(InvalidRequest, match="half of a surrogate pair at character 0"):
            await world.create_state(FromHtml("\udfff<p>"))


async def test_a_callers_deadline_ends_the_drawing_and_frees_the_page(address: str) -> None:
    """The only page of this renderer is hung, and at once free again for the next caller."""
    async with RendererClient(address, timeout_s=0.3) as hurried, RendererClient(address) as other:
        with pytest.raises(DeadlineExpired):
            await hurried.render(case("backdrop_layers.html"), 1080, 2400, ImageRequest())
        assert (await other.render(document("<p>after"), 1080, 2400, SMALL)).image is not None


class Watch(rpc.RendererServiceServicer):  # type: ignore[misc]
    """A renderer that never answers and tells when a call was given up."""

    def __init__(self) -> None:
        self.calls = 0
        self.begun, self.given_up = asyncio.Event(), asyncio.Event()

    async def Render(self, _: pb.RenderRequest, __: Any) -> pb.RenderResponse:
        self.calls += 1
        self.begun.set()
        try:
            await asyncio.Event().wait()
        except asyncio.CancelledError:
            self.given_up.set()
            raise
        raise AssertionError


@asynccontextmanager
async def world_before(watch: Watch, redis: RedisServer, folder: Path) -> AsyncIterator[str]:
    """A world model whose renderer is `watch`, with an hour's patience of its own."""

    def register(server: Any) -> list[str]:
        rpc.add_RendererServiceServicer_to_server(watch, server)
        return [pb.DESCRIPTOR.services_by_name["RendererService"].full_name]

    quick: dict[str, Any] = {"port": 0, "drain_pause_s": 0, "drain_grace_s": 0}
    async with running(ServiceSettings(**quick), "renderer", register) as server:
        settings = WorldModelSettings(
            blobs=str(folder / "blobs"),
            redis_url=redis.url,
            renderer=server.address,
            render_timeout_s=3600,
            **quick,
        )
        resources = AsyncExitStack()
        parts = worldmodel_registration(settings, resources)
        async with running(settings, "worldmodel", parts, resources.aclose) as world:
            yield world.address


async def test_the_deadline_of_a_step_ends_its_render_when_nobody_else_waits_for_it(
    tmp_path: Path,
) -> None:
    watch = Watch()
    redis = RedisServer(tmp_path).start()
    try:
        async with (
            world_before(watch, redis, tmp_path) as address,
            WorldModelClient(address, timeout_s=3600) as patient,
            WorldModelClient(address, timeout_s=1.0) as hurried,
        ):
            task = TaskRef(template="settings_turn_on", seed=1)
            state = (await patient.create_state(task)).state.state_id
            step = OpenApp("Clock")
            waiting = asyncio.create_task(patient.step(state, step, image=SMALL))
            await watch.begun.wait()
            with pytest.raises(DeadlineExpired):
                await hurried.step(state, step, image=SMALL)
            assert not watch.given_up.is_set()
            waiting.cancel()
            await watch.given_up.wait()
            watch.given_up.clear()
            with pytest.raises(DeadlineExpired):
                await hurried.step(state, step, image=SMALL)
            await watch.given_up.wait()
    finally:
        redis.kill()
    assert watch.calls == 2


async def test_a_stopped_renderer_draws_what_it_was_asked_for(tmp_path: Path) -> None:
    shades = [(i, 200 - i, 2 * i) for i in range(40)]
    async with (
        service_process(
            "renderer", WMR1_BLOBS=str(tmp_path), WMR1_PAGES="2", WMR1_DRAIN_GRACE_S="300"
        ) as (at, process),
        RendererClient(at) as client,
    ):
        calls = [
            asyncio.create_task(
                client.render(document("<p>", background=f"background:rgb{s}"), 1080, 2400, SMALL)
            )
            for s in shades
        ]
        await asyncio.wait(calls, return_when=asyncio.FIRST_COMPLETED)
        assert not all(call.done() for call in calls)
        process.send_signal(signal.SIGTERM)
        drawn = await asyncio.gather(*calls)
        assert await process.wait() == 0
    assert [pixels(each).getpixel((50, 200)) for each in drawn] == shades
