"""Equal work in flight is done once; who gives up disturbs nobody."""

import asyncio

import pytest

from services.worldmodel.flight import Flight
from wmkit.rpc.context import Call, current, left_s


async def test_equal_work_in_flight_is_done_once() -> None:
    flight: Flight[str, int] = Flight()
    calls = []

    async def work() -> int:
        calls.append(1)
        await asyncio.sleep(0)
        return 7

    answers = await asyncio.gather(*(flight.run("k", work) for _ in range(64)))
    assert len(calls) == 1
    assert sorted(shared for _, shared in answers) == [False] + [True] * 63
    assert {value for value, _ in answers} == {7}
    await flight.run("k", work)
    assert len(calls) == 2, "nothing is remembered afterwards"


async def test_a_caller_that_gives_up_does_not_take_the_others_down() -> None:
    flight: Flight[str, int] = Flight()
    gate = asyncio.Event()

    async def work() -> int:
        await gate.wait()
        return 7

    first = asyncio.create_task(flight.run("k", work))
    second = asyncio.create_task(flight.run("k", work))
    await asyncio.sleep(0)
    first.cancel()
    with pytest.raises(asyncio.CancelledError):
        await first
    gate.set()
    assert await second == (7, True)


async def test_work_that_nobody_waits_for_is_cancelled_and_not_joined() -> None:
    flight: Flight[str, int] = Flight()
    ended = []

    async def stuck() -> int:
        try:
            await asyncio.Event().wait()
        finally:
            ended.append(1)
        raise AssertionError

    async def quick() -> int:
        return 8

    only = asyncio.create_task(flight.run("k", stuck))
    await asyncio.sleep(0)
    await asyncio.sleep(0)
    only.cancel()
    with pytest.raises(asyncio.CancelledError):
        await only
    assert await flight.run("k", quick) == (8, False)
    assert ended == [1]


async def test_shared_work_has_no_callers_deadline() -> None:
    flight: Flight[str, float | None] = Flight()
    current.set(Call("t", end=1e18))

    async def work() -> float | None:
        return left_s()

    assert await flight.run("k", work) == (None, False)
    assert left_s() is not None


async def test_every_caller_gets_the_error() -> None:
    flight: Flight[str, int] = Flight()

    async def fail() -> int:
        await asyncio.sleep(0)
        raise ValueError("no")

    answers = await asyncio.gather(
        *(flight.run("k", fail) for _ in range(3)), return_exceptions=True
    )
    assert [str(answer) for answer in answers] == ["no", "no", "no"]
