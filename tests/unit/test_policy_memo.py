"""The memo of answered requests: joined, replayed, forgotten."""

import asyncio
import time

import pytest

from services.policy.memo import Memo
from wmkit.domain.errors import EngineDown, InvalidRequest

KEY = ("Generate", "r1")


class Work:
    def __init__(self, *answers: bytes | Exception) -> None:
        self.calls = 0
        self.go = asyncio.Event()
        self.go.set()
        self._answers = answers

    async def __call__(self) -> bytes:
        self.calls += 1
        answer = self._answers[min(self.calls, len(self._answers)) - 1]
        await self.go.wait()
        if isinstance(answer, Exception):
            raise answer
        return answer


async def test_an_answered_request_is_replayed() -> None:
    memo, work = Memo(), Work(b"one", b"two")
    assert await memo.once(KEY, "body", work) == b"one"
    assert await memo.once(KEY, "body", work) == b"one"
    assert await memo.once(("Generate", "r2"), "body", work) == b"two"


async def test_a_request_in_flight_is_joined() -> None:
    memo, work = Memo(), Work(b"one")
    work.go.clear()
    calls = [asyncio.create_task(memo.once(KEY, "body", work)) for _ in range(3)]
    await asyncio.sleep(0)
    work.go.set()
    assert await asyncio.gather(*calls) == [b"one"] * 3
    assert work.calls == 1


async def test_the_same_id_with_another_body_is_refused() -> None:
    memo, work = Memo(), Work(b"one")
    await memo.once(KEY, "body", work)
    with pytest.raises(InvalidRequest, match="'r1' was used for another request"):
        await memo.once(KEY, "other", work)


async def test_failures_are_not_kept() -> None:
    memo, work = Memo(), Work(EngineDown("down"), b"two")
    with pytest.raises(EngineDown):
        await memo.once(KEY, "body", work)
    assert await memo.once(KEY, "body", work) == b"two"


async def test_when_the_first_caller_leaves_the_next_takes_over() -> None:
    memo, work = Memo(), Work(b"one", b"two")
    work.go.clear()
    first = asyncio.create_task(memo.once(KEY, "body", work))
    await asyncio.sleep(0)
    second = asyncio.create_task(memo.once(KEY, "body", work))
    await asyncio.sleep(0)
    first.cancel()
    work.go.set()
    assert await second == b"two"
    with pytest.raises(asyncio.CancelledError):
        await first


async def test_a_joining_caller_that_leaves_disturbs_nobody() -> None:
    memo, work = Memo(), Work(b"one")
    work.go.clear()
    first, second = (asyncio.create_task(memo.once(KEY, "body", work)) for _ in range(2))
    await asyncio.sleep(0)
    second.cancel()
    work.go.set()
    assert await first == b"one"
    with pytest.raises(asyncio.CancelledError):
        await second


async def test_answers_are_forgotten_after_their_time_or_when_too_many() -> None:
    now = 0.0
    memo, work = Memo(ttl_s=600, max_bytes=7, clock=lambda: now), Work(b"one1", b"two2", b"six6")
    assert await memo.once(KEY, "body", work) == b"one1"
    now = 599.0
    assert await memo.once(KEY, "body", work) == b"one1"
    now = 601.0
    assert await memo.once(KEY, "body", work) == b"two2"
    assert await memo.once(("Generate", "r2"), "body", work) == b"six6"
    # 8 bytes are held now, so the older answer has gone.
    assert await memo.once(KEY, "body", work) == b"six6"
    assert work.calls == 4


async def test_what_is_remembered_costs_a_new_request_nothing() -> None:
    memo, work = Memo(), Work(b"one")

    async def calls(first: int) -> float:
        begin = time.process_time()
        for i in range(first, first + 500):
            await memo.once(("Generate", str(i)), "body", work)
        return time.process_time() - begin

    fresh = min([await calls(500 * i) for i in range(3)])
    for i in range(1500, 10_000):
        await memo.once(("Generate", str(i)), "body", work)
    full = min([await calls(10_000 + 500 * i) for i in range(3)])
    assert full < 5 * fresh  # 20 times when every request looked at all answers
