"""Deadlines, admission and provenance of steps through a model, over gRPC."""

import asyncio
import io

import grpc
import pytest
from PIL import Image as Pillow
from wmr1.worldmodel.v1 import worldmodel_pb2 as pb
from wmr1.worldmodel.v1 import worldmodel_pb2_grpc as rpc

from tests.integration.test_worldmodel_service import Service, redis, service
from tests.openai_server import Answer, openai_server
from wmkit import convert
from wmkit.clients import WorldModelClient
from wmkit.domain.actions import Action, Back, Home, OpenApp, Recents
from wmkit.domain.errors import Overloaded
from wmkit.domain.sources import FromScreenshot
from wmkit.domain.transition import Outcome
from wmkit.rpc.status import decode_call

__all__ = ["redis", "service"]

PAGE = "<!DOCTYPE html><html><body><div id='render-target'>next</div></body></html>"


async def start(client: WorldModelClient) -> str:
    out = io.BytesIO()
    Pillow.new("RGB", (90, 200)).save(out, "PNG")
    return (await client.create_state(FromScreenshot(out.getvalue()))).state.state_id


def request(state: str, action: Action) -> pb.StepRequest:
    message = convert.action_to_pb(action)
    return pb.StepRequest(state_id=state, action=message, purpose=pb.PURPOSE_COMMIT)


async def test_a_step_whose_deadline_passes_frees_the_model_s_slot(service: Service) -> None:
    async with (
        openai_server(Answer(PAGE, gate=asyncio.Event())) as model,
        service.run(backends="code2world", code2world_url=model.url) as client,
    ):
        state = await start(client)
        async with grpc.aio.insecure_channel(service.address) as channel:
            step = rpc.WorldModelServiceStub(channel).Step(request(state, Back()), timeout=3)
            await model.until(lambda s: s.open == 1)
            with pytest.raises(grpc.aio.AioRpcError) as caught:
                await step
        assert caught.value.code() is grpc.StatusCode.DEADLINE_EXCEEDED
        await model.until(lambda s: s.open == 0)
        assert model.abandoned == 1


async def test_one_step_more_than_may_wait_is_refused_with_a_time(service: Service) -> None:
    gate = asyncio.Event()
    limits = {"engine_in_flight": 1, "engine_waiting": 1}
    async with (
        openai_server(Answer(PAGE, gate=gate)) as model,
        service.run(backends="code2world", code2world_url=model.url, **limits) as client,
    ):
        state = await start(client)
        # A bare channel: our own client would wait and try again.
        async with grpc.aio.insecure_channel(service.address) as channel:
            stub = rpc.WorldModelServiceStub(channel)
            steps = [
                asyncio.ensure_future(stub.Step(request(state, action)))
                for action in (Back(), Home(), Recents())
            ]
            done, waiting = await asyncio.wait(steps, return_when=asyncio.FIRST_COMPLETED)
            (refused,) = done
            error = refused.exception()
            assert isinstance(error, grpc.aio.AioRpcError)
            assert error.code() is grpc.StatusCode.RESOURCE_EXHAUSTED
            told = decode_call(error)
            assert isinstance(told, Overloaded) and told.retry_after_s > 0
            gate.set()
            assert len(await asyncio.gather(*waiting)) == 2


async def test_every_answer_says_where_it_comes_from(service: Service) -> None:
    async with (
        openai_server(
            Answer(PAGE.replace("</html>", ""), tokens=9), Answer("<!DOCTYPE", "length", 8192)
        ) as model,
        service.run(backends="code2world", code2world_url=model.url) as client,
    ):
        state = await start(client)
        (backend,) = await client.list_backends()
        made = await client.step(state, OpenApp("Clock"))
        again = await client.step(state, OpenApp("Clock"))
        cut = await client.step(state, Back())
    assert [step.provenance.cache_hit for step in (made, again, cut)] == [False, True, False]
    for step in (made, again, cut):
        assert step.provenance.backend == "code2world"
        assert step.provenance.revision == backend.revision
    for step in (made, again):
        assert (step.provenance.tokens, step.provenance.finish_reason) == (9, "stop")
        assert step.provenance.warnings == ("UNCLOSED: the document has no </html>",)
    assert cut.outcome is Outcome.FAILED
    assert (cut.provenance.tokens, cut.provenance.finish_reason) == (8192, "length")
