"""The engine client against a server that answers well, late, cut, with faults and in pieces."""

import asyncio
from collections.abc import AsyncIterator

import pytest

from services.worldmodel.engine import Ask, Completion, Endpoint, Engine, Limits
from services.worldmodel.engine.breaker import Breaker
from services.worldmodel.engine.wire import Refused
from tests.openai_server import Answer, Fault, OpenAiServer, Raw, openai_server
from wmkit.domain.errors import DeadlineExpired, EngineDown, InvalidRequest, Overloaded
from wmkit.rpc import context as call_context

ASK = Ask([{"role": "user", "content": "draw"}], max_tokens=100)
TEXT = "<!DOCTYPE html><p>ü 🙂 \u2028 \x85" + "x" * 300
QUICK = {"backoff_s": 0.001, "backoff_cap_s": 0.001}


@pytest.fixture
async def server() -> AsyncIterator[OpenAiServer]:
    async with openai_server() as running:
        yield running


def engine(server: OpenAiServer, **limits: float) -> Engine:
    return Engine(Endpoint(server.url, "m", "secret"), Limits(**{**QUICK, **limits}))  # type: ignore[arg-type]


@pytest.mark.parametrize("document", [False, True])
async def test_a_whole_answer(server: OpenAiServer, document: bool) -> None:
    server.play(Answer(TEXT, tokens=123, document=document))
    model = engine(server)
    assert await model.complete(ASK) == Completion(TEXT, "stop", 123)
    (sent,) = server.requests
    assert sent == {
        "model": "m",
        "messages": [{"role": "user", "content": "draw"}],
        "max_tokens": 100,
        "stream": True,
        "stream_options": {"include_usage": True},
    }
    assert server.headers[0]["authorization"] == "Bearer secret"


async def test_decoding_and_schema_are_sent_only_where_they_are_set(server: OpenAiServer) -> None:
    server.play(Answer("{}"))
    ask = Ask(ASK.messages, 5, temperature=0.0, seed=42, schema={"type": "object"})
    await engine(server).complete(ask)
    (sent,) = server.requests
    assert (sent["temperature"], sent["seed"]) == (0.0, 42)
    assert sent["response_format"]["json_schema"]["schema"] == {"type": "object"}


@pytest.mark.parametrize("reason", ["length", "content_filter"])
async def test_the_finish_reason_is_the_server_s(server: OpenAiServer, reason: str) -> None:
    server.play(Answer(TEXT, reason))
    assert (await engine(server).complete(ASK)).finish_reason == reason
    assert len(server.requests) == 1, "an answer that is cut is not asked for again"


@pytest.mark.parametrize(
    "bad",
    [
        Fault(500),
        Fault(503),
        Fault(429, retry_after="0"),
        Answer(TEXT, hang_up_after=0),
        Answer(TEXT, hang_up_after=128),
        Answer(TEXT, "abort"),
        Raw(b""),
        Raw(b'data: {"choices": [{"delta": {"content": "<p>"}}]}\n\n'),
        Raw(b"data: [DONE]\n\n"),
        Raw(b"data: {broken\n\n"),
        Raw(b'data: {"error": {"message": "out of memory"}}\n\n'),
        Raw(b"data: 5\n\n"),
    ],
)
async def test_a_fault_is_tried_again(server: OpenAiServer, bad: Fault | Answer | Raw) -> None:
    server.play(bad, Answer(TEXT))
    assert (await engine(server).complete(ASK)).text == TEXT
    assert len(server.requests) == 2


async def test_after_the_last_try_it_is_down_and_says_why(server: OpenAiServer) -> None:
    server.play(Fault(500, "CUDA error"))
    with pytest.raises(EngineDown, match=r"m at 127\.0\.0\.1:\d+ was asked 3 times: .*CUDA error"):
        await engine(server).complete(ASK)
    assert len(server.requests) == 3


async def test_a_server_with_too_much_to_do_is_overloaded_and_not_broken(
    server: OpenAiServer,
) -> None:
    server.play(Fault(429, "slow down", retry_after="7"))
    model = engine(server, timeout_s=5, breaker_failures=1)
    for _ in range(2):
        with pytest.raises(Overloaded, match="slow down") as caught:
            await model.complete(ASK)
        assert caught.value.retry_after_s >= 7
    assert len(server.requests) == 2, "7 s do not fit in, so nothing is tried again"


@pytest.mark.parametrize("status", [400, 401, 404, 422])
async def test_a_request_that_is_refused_is_not_sent_again(
    server: OpenAiServer, status: int
) -> None:
    server.play(Fault(status, "no such model"))
    with pytest.raises(EngineDown, match=f"refuses the request: HTTP {status}: no such model"):
        await engine(server, breaker_failures=1).complete(ASK)
    assert len(server.requests) == 1


async def test_a_refused_schema_is_for_the_caller_to_decide(server: OpenAiServer) -> None:
    server.play(Fault(400, "response_format is not supported"))
    with pytest.raises(Refused, match="response_format"):
        await engine(server).complete(Ask(ASK.messages, 5, schema={}))


async def test_nobody_listens() -> None:
    model = Engine(Endpoint("http://127.0.0.1:9/v1", "m"), Limits(**QUICK))  # type: ignore[arg-type]
    with pytest.raises(EngineDown, match="Connect"):
        await model.complete(ASK)


async def test_a_cancelled_call_frees_the_server_s_slot_and_ours(server: OpenAiServer) -> None:
    server.play(Answer(TEXT, gate=asyncio.Event()))
    model = engine(server, in_flight=1)
    call = asyncio.create_task(model.complete(ASK))
    await server.until(lambda s: s.open == 1)
    call.cancel()
    await server.until(lambda s: s.open == 0)
    assert server.abandoned == 1
    server.play(Answer(TEXT))
    assert (await model.complete(ASK)).text == TEXT


async def test_our_time_and_the_caller_s_time(server: OpenAiServer) -> None:
    server.play(Answer(TEXT, gate=asyncio.Event()))
    with pytest.raises(EngineDown, match=r"did not answer within 0\.05 s"):
        await engine(server, timeout_s=0.05).complete(ASK)
    loop = asyncio.get_running_loop()
    call = call_context.Call("t", loop.time() + 0.05)
    call_context.current.set(call)
    try:
        with pytest.raises(DeadlineExpired):
            await engine(server).complete(ASK)
    finally:
        call_context.current.set(None)
    await server.until(lambda s: s.open == 0)


async def test_silence_within_an_answer_is_a_fault(server: OpenAiServer) -> None:
    server.play(Answer(TEXT, gate=asyncio.Event()), Answer(TEXT))
    assert (await engine(server, idle_s=1.0).complete(ASK)).text == TEXT
    assert len(server.requests) >= 2


async def test_calls_beyond_the_slots_wait_and_beyond_these_are_refused(
    server: OpenAiServer,
) -> None:
    gate = asyncio.Event()
    server.play(Answer(TEXT, gate=gate))
    model = engine(server, in_flight=2, waiting=3)
    calls = [asyncio.create_task(model.complete(ASK)) for _ in range(5)]
    await server.until(lambda s: s.open == 2)
    with pytest.raises(Overloaded, match="5 requests wait"):
        await model.complete(ASK)
    assert len(server.requests) == 2
    gate.set()
    assert [answer.text for answer in await asyncio.gather(*calls)] == [TEXT] * 5
    assert server.connections == 2, "connections are kept and used again"


async def test_a_dead_server_is_left_alone(server: OpenAiServer) -> None:
    server.play(Fault(500))
    model = engine(server, attempts=1, breaker_failures=3, breaker_rest_s=60)
    for _ in range(3):
        with pytest.raises(EngineDown, match="HTTP 500"):
            await model.complete(ASK)
    for _ in range(5):
        with pytest.raises(EngineDown, match="left alone") as caught:
            await model.complete(ASK)
        assert 50 < caught.value.retry_after_s <= 60
    assert len(server.requests) == 3


def test_after_a_rest_one_call_tries_whether_it_lives() -> None:
    now = 0.0
    breaker = Breaker("m", failures=2, rest_s=10, clock=lambda: now)
    for _ in range(2):
        breaker.enter()
        breaker.failure()
    with pytest.raises(EngineDown):
        breaker.enter()
    now = 10.0
    breaker.enter()
    with pytest.raises(EngineDown):  # another call while one is on trial
        breaker.enter()
    breaker.failure()
    with pytest.raises(EngineDown):
        breaker.enter()
    now = 20.0
    breaker.enter()
    breaker.leave()  # it was cancelled: the next one may try
    breaker.enter()
    breaker.success()
    breaker.enter()
    breaker.failure()
    breaker.enter()  # counted anew: one failure is not two


@pytest.mark.parametrize(
    ("one", "other", "same"),
    [
        ("http://127.0.0.1:8000/v1", "http://localhost:8000/v1/", True),
        ("http://127.0.0.1:8000/v1", "http://0.0.0.0:8000", True),
        ("http://[::1]:8000/v1", "http://127.0.0.1:8000/v1", True),
        ("http://GPU-1/v1", "http://gpu-1.:80/v1", True),
        ("http://gpu-1/v1", "http://gpu-2/v1", False),
        ("http://127.0.0.1:8000/v1", "http://127.0.0.1:8001/v1", False),
        ("http://gpu/a/v1", "http://gpu/b/v1", False),
    ],
)
def test_the_same_endpoint_however_it_is_spelt(one: str, other: str, same: bool) -> None:
    assert Endpoint(one, "M").same(Endpoint(other, "m ")) is same
    assert not Endpoint(one, "M").same(Endpoint(one, "n"))


@pytest.mark.parametrize("url", ["", "gpu:8000", "ftp://gpu", "http://", "http://gpu:99999/v1"])
def test_an_address_that_is_none_is_refused(url: str) -> None:
    with pytest.raises(InvalidRequest):
        Endpoint(url, "m")


def test_a_key_is_never_shown() -> None:
    endpoint = Endpoint("http://user:pass@gpu/v1", "m", "secret")
    assert "secret" not in repr(endpoint)
    assert "pass" not in endpoint.place
