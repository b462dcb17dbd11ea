"""The policy, renderer and trainer clients against servicers over fakes."""

from collections.abc import AsyncIterator, Callable
from typing import Any

import pytest
from wmr1.policy.v1 import policy_pb2 as policy
from wmr1.policy.v1 import policy_pb2_grpc
from wmr1.renderer.v1 import renderer_pb2 as renderer
from wmr1.renderer.v1 import renderer_pb2_grpc
from wmr1.trainer.v1 import trainer_pb2 as trainer
from wmr1.trainer.v1 import trainer_pb2_grpc

from wmkit import convert
from wmkit.clients import Page, PolicyClient, RendererClient, TrainerClient
from wmkit.domain.errors import BadHtml, RunNotFound, StalePolicyVersion, WMError
from wmkit.domain.generation import Picture, Sampling, Text, Turn
from wmkit.domain.runs import Run, RunEvent, RunStatus
from wmkit.domain.transition import FailureReason, Image, ImageRequest, Rendering
from wmkit.rpc.server import running
from wmkit.rpc.status import encode
from wmkit.settings import ServiceSettings
from wmkit.testing import FakePolicy, read


def serving(add: Callable[[Any, Any], None], servicer: Any, service: str) -> Any:
    def register(server: Any) -> list[str]:
        add(servicer, server)
        return [service]

    return running(ServiceSettings(drain_pause_s=0.0), "toy", register)


class PolicyServicer(policy_pb2_grpc.PolicyServiceServicer):  # type: ignore[misc]
    def __init__(self, inner: FakePolicy) -> None:
        self.inner = inner
        self.images: dict[str, bytes] = {}

    async def Generate(self, request: policy.GenerateRequest, _: Any) -> policy.GenerateResponse:
        call = convert.generate_call_from_pb(request)
        self.images.update(call.images)
        return convert.generation_to_pb(
            await self.inner.generate(
                call.turns,
                call.sampling,
                policy_id=call.policy_id,
                min_version=call.min_version,
            )
        )

    async def UpdateWeights(
        self, request: policy.UpdateWeightsRequest, _: Any
    ) -> policy.UpdateWeightsResponse:
        version = await self.inner.update_weights(
            request.policy_id, request.version, request.weights_digest
        )
        return policy.UpdateWeightsResponse(version=version)

    async def GetInfo(self, _: policy.GetInfoRequest, __: Any) -> policy.GetInfoResponse:
        return convert.info_to_pb(await self.inner.info())


async def test_a_generation_is_the_same_over_the_wire() -> None:
    from wmkit.blobs import digest

    name = digest(b"png")
    turns = (Turn("user", (Picture(name), Text("tap the clock"))),)
    fake = FakePolicy(lambda turns, _: f"I read {read(turns)!r}<stop> and more")
    servicer = PolicyServicer(fake)
    add = policy_pb2_grpc.add_PolicyServiceServicer_to_server
    async with (
        serving(add, servicer, "wmr1.policy.v1.PolicyService") as server,
        PolicyClient(server.address) as client,
    ):
        sampling = Sampling(0.5, 200, ("<stop>",), 3)
        there = await client.generate(turns, sampling, images={name: b"png"})
        assert there == await fake.generate(turns, sampling)
        assert servicer.images == {name: b"png"}
        assert await client.update_weights("run", 4, "w" * 64) == 4
        assert (await client.info()).version == 4
        with pytest.raises(StalePolicyVersion, match="version 4 is loaded"):
            await client.generate(turns, sampling, policy_id="run", min_version=5)


class RendererServicer(renderer_pb2_grpc.RendererServiceServicer):  # type: ignore[misc]
    async def Render(self, request: renderer.RenderRequest, _: Any) -> renderer.RenderResponse:
        if not request.html:
            raise BadHtml("there is no document", "html")
        if request.html == "blank":
            return convert.rendering_to_pb(Rendering(None, FailureReason.BLANK))
        image = Image("d", request.width_px, request.height_px, data=request.html.encode())
        return convert.rendering_to_pb(Rendering(image, revision="toy"))

    async def BatchRender(
        self, requests: AsyncIterator[renderer.BatchRenderRequest], context: Any
    ) -> AsyncIterator[renderer.BatchRenderResponse]:
        async for item in requests:
            try:
                response = await self.Render(item.request, context)
            except WMError as error:
                s = encode(error)
                fault = renderer.RenderError(code=s.code, message=s.message, details=s.details)
                yield renderer.BatchRenderResponse(key=item.key, error=fault)
            else:
                yield renderer.BatchRenderResponse(key=item.key, response=response)


async def test_pages_are_drawn_one_by_one_and_in_batches() -> None:
    add = renderer_pb2_grpc.add_RendererServiceServicer_to_server
    wanted = ImageRequest()
    async with (
        serving(add, RendererServicer(), "wmr1.renderer.v1.RendererService") as server,
        RendererClient(server.address) as client,
    ):
        drawn = await client.render("<p>hi", 108, 240, wanted)
        assert drawn.image == Image("d", 108, 240, data=b"<p>hi")
        with pytest.raises(BadHtml, match="there is no document") as caught:
            await client.render("", 108, 240, wanted)
        assert caught.value.field == "html"
        pages = [Page(key, key, 1, 2, wanted) for key in ("a", "blank", "")]
        answers = {key: answer async for key, answer in client.batch_render(pages)}
    assert isinstance(answers["a"], Rendering)
    assert answers["blank"] == Rendering(None, FailureReason.BLANK)
    assert type(answers[""]) is BadHtml


EVENTS = [
    RunEvent(RunStatus.RUNNING, "train", 1, 3, 64),
    RunEvent(RunStatus.RUNNING, "train", 1, metrics={"success": 0.5}),
    RunEvent(RunStatus.SUCCEEDED, message="done"),
]


class TrainerServicer(trainer_pb2_grpc.TrainerServiceServicer):  # type: ignore[misc]
    def __init__(self) -> None:
        self.request_ids: list[str] = []

    async def CreateRun(
        self, request: trainer.CreateRunRequest, _: Any
    ) -> trainer.CreateRunResponse:
        self.request_ids.append(request.request_id)
        run = Run(request.recipe_toml, RunStatus.QUEUED)
        return trainer.CreateRunResponse(run=convert.run_to_pb(run))

    async def WatchRun(
        self, request: trainer.WatchRunRequest, _: Any
    ) -> AsyncIterator[trainer.WatchRunResponse]:
        if request.run_id != "r1":
            raise RunNotFound(f"there is no run {request.run_id!r}", request.run_id)
        for event in EVENTS:
            yield convert.event_to_pb(event)


async def test_a_run_is_created_and_watched_to_its_end() -> None:
    add, servicer = trainer_pb2_grpc.add_TrainerServiceServicer_to_server, TrainerServicer()
    async with (
        serving(add, servicer, "wmr1.trainer.v1.TrainerService") as server,
        TrainerClient(server.address) as client,
    ):
        assert await client.create_run("r1") == Run("r1", RunStatus.QUEUED)
        await client.create_run("r1")
        await client.create_run("r1", request_id="mine")
        assert [event async for event in client.watch_run("r1")] == EVENTS
        with pytest.raises(RunNotFound, match="there is no run 'r2'"):
            await anext(client.watch_run("r2"))
    first, second, third = servicer.request_ids
    assert first
    assert first != second
    assert third == "mine"
