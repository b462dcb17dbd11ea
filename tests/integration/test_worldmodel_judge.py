"""Judge over gRPC: one verdict per request id, across retries, callers and restarts."""

import asyncio
import io
import json

import grpc
import pytest
from PIL import Image as Pillow
from redis.asyncio import Redis
from wmr1.worldmodel.v1 import worldmodel_pb2 as pb
from wmr1.worldmodel.v1 import worldmodel_pb2_grpc as rpc

from tests.integration.test_worldmodel_service import Service, redis, service
from tests.openai_server import Answer, Fault, OpenAiServer, openai_server
from wmkit.clients import WorldModelClient
from wmkit.domain.errors import InvalidRequest, Unavailable
from wmkit.domain.sources import FromScreenshot
from wmkit.domain.tasks import Judgement, Verdict

__all__ = ["redis", "service"]

GOAL = "Open the inbox."


def vote(verdict: str) -> Answer:
    return Answer(json.dumps({"reason": f"said {verdict}", "verdict": verdict}))


def learned(model: OpenAiServer, judge: OpenAiServer) -> dict[str, object]:
    return {
        "backends": "code2world",
        "code2world_url": model.url,
        "judge_url": judge.url,
        "judge_model": "judge",
        "judge_votes": 1,
        "engine_attempts": 1,
    }


async def start(client: WorldModelClient) -> str:
    out = io.BytesIO()
    Pillow.new("RGB", (90, 200)).save(out, "PNG")
    return (await client.create_state(FromScreenshot(out.getvalue()))).state.state_id


async def test_a_repeated_id_hears_the_first_verdict_even_after_a_restart(
    service: Service,
) -> None:
    async with openai_server() as model, openai_server() as judge:
        judge.play(vote("success"), vote("failure"))
        more = learned(model, judge)
        async with service.run(**more) as client:
            state = await start(client)

            async def ask(goal: str = GOAL, request_id: str = "r1") -> Judgement:
                return await service.client.judge(None, state, goal=goal, request_id=request_id)

            first = await asyncio.gather(*(ask() for _ in range(8)))
            assert {found.reason for found in first} == {"said success"}
            with pytest.raises(InvalidRequest, match="used for another request") as caught:
                await ask("Another goal.")
            assert caught.value.field == "request_id"
        async with service.run(**more):
            assert (await ask()).verdict is Verdict.SUCCESS
            assert len(judge.requests) == 1
            assert (await ask(request_id="r2")).verdict is Verdict.FAILURE
        async with Redis.from_url(service.redis.url) as bare:
            lives = [await bare.pttl(key) for key in await bare.keys("*:judge:*")]
    assert len(lives) == 2
    assert all(500_000 < left <= 600_000 for left in lives), "ten minutes"


async def test_a_failure_is_not_remembered(service: Service) -> None:
    async with openai_server() as model, openai_server() as judge:
        judge.play(Fault(500), vote("success"))
        async with service.run(**learned(model, judge)) as client:
            request = pb.JudgeRequest(
                final_state_id=await start(client), goal=GOAL, request_id="r1"
            )
            # A bare channel: our own client's would try again by itself.
            async with grpc.aio.insecure_channel(service.address) as channel:
                stub = rpc.WorldModelServiceStub(channel)
                with pytest.raises(grpc.aio.AioRpcError) as caught:
                    await stub.Judge(request)
                assert caught.value.code() is grpc.StatusCode.UNAVAILABLE
                assert (await stub.Judge(request)).verdict == pb.VERDICT_SUCCESS


async def test_without_an_id_every_call_is_judged(service: Service) -> None:
    async with openai_server() as model, openai_server() as judge:
        judge.play(vote("success"), vote("unsure"))
        async with service.run(**learned(model, judge)) as client:
            request = pb.JudgeRequest(final_state_id=await start(client), goal=GOAL)
            async with grpc.aio.insecure_channel(service.address) as channel:
                stub = rpc.WorldModelServiceStub(channel)
                verdicts = [(await stub.Judge(request)).verdict for _ in range(2)]
    assert verdicts == [pb.VERDICT_SUCCESS, pb.VERDICT_UNSURE]


async def test_an_engine_that_is_down_is_unavailable_to_the_client(service: Service) -> None:
    async with (
        openai_server() as model,
        openai_server(Fault(503)) as judge,
        service.run(**learned(model, judge)) as client,
    ):
        state = await start(client)
        with pytest.raises(Unavailable, match="HTTP 503"):
            await client.judge(None, state, goal=GOAL)
