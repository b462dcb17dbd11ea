"""Records in Redis: lifetimes, first answers, batches, and a Redis that is gone."""

import asyncio

import pytest

from tests.worldmodel_fakes import Counter, Process
from wmkit.domain.errors import Unavailable


async def test_what_is_put_is_there_for_its_lifetime() -> None:
    process = Process(Counter(), ttl_s=60)
    await process.index.put("a", b"1")
    assert await process.index.get("a") == b"1"
    assert await process.index.get("b") is None
    assert 59_000 < await process.redis.pttl("t:a") <= 60_000


async def test_the_first_value_wins() -> None:
    index = Process(Counter()).index
    assert await index.put_first("a", b"1") == b"1"
    assert await index.put_first("a", b"2") == b"1"
    assert await index.get("a") == b"1"


async def test_use_renews_a_lifetime_and_restores_what_was_evicted() -> None:
    process = Process(Counter(), ttl_s=60)
    await process.index.put("kept", b"1")
    await process.redis.pexpire("t:kept", 500)
    process.index.touch("kept", b"1")
    process.index.touch("evicted", b"2")
    assert process.index.touched("kept")
    assert await process.index.renew() == 1
    assert not process.index.touched("kept")
    assert await process.redis.pttl("t:kept") > 59_000
    assert await process.redis.get("t:evicted") == b"2"
    assert await process.redis.pttl("t:evicted") > 59_000


async def test_what_could_not_be_renewed_waits_for_the_next_time() -> None:
    process = Process(Counter())
    process.index.touch("a", b"1")
    process.server.connected = False
    with pytest.raises(Unavailable):
        await process.index.renew()
    process.server.connected = True
    assert await process.index.renew() == 1
    assert await process.index.get("a") == b"1"


async def test_commands_that_wait_together_travel_together_and_in_order() -> None:
    process = Process(Counter())
    pipelines = []
    real = process.redis.pipeline

    def counted(transaction: bool) -> object:
        pipelines.append(transaction)
        return real(transaction=transaction)

    process.redis.pipeline = counted
    answers = await asyncio.gather(
        *(process.index.put(f"k{i}", b"x") for i in range(50)),
        *(process.index.get(f"k{i}") for i in range(50)),
    )
    assert answers[50:] == [b"x"] * 50
    assert pipelines == [False]


async def test_a_redis_that_is_gone_is_unavailable_and_may_come_back() -> None:
    process = Process(Counter())
    process.server.connected = False
    answers = await asyncio.gather(
        process.index.get("a"), process.index.put("b", b"1"), return_exceptions=True
    )
    assert [type(answer) for answer in answers] == [Unavailable, Unavailable]
    with pytest.raises(Unavailable, match=r"^Redis does not answer"):
        await process.index.ping()
    process.server.connected = True
    await process.index.put("b", b"1")
    assert await process.index.get("b") == b"1"
