"""What only a real Redis can show: restarts, outages, autoscaling's lag, foreign entries."""

import json
from collections.abc import AsyncIterator, Iterator
from pathlib import Path
from typing import Any

import pytest
from redis.asyncio import Redis

from tests.redis_server import RedisServer
from tests.rollout_cases import a_job
from wmkit.domain.episode import Job, Result, ResultStatus
from wmkit.domain.errors import InvalidRequest, Unavailable
from wmkit.ports import Delivery, Ledger
from wmkit.queue import scripts
from wmkit.queue.redis import RedisJobQueue


@pytest.fixture
def server(tmp_path: Path) -> Iterator[RedisServer]:
    server = RedisServer(tmp_path).start()
    yield server
    server.kill()


@pytest.fixture
async def queue(server: RedisServer) -> AsyncIterator[RedisJobQueue]:
    async with RedisJobQueue(server.url, reclaim_after_s=0.0, max_deliveries=2) as queue:
        yield queue


@pytest.fixture
async def redis(server: RedisServer) -> AsyncIterator[Redis]:
    async with Redis.from_url(server.url, decode_responses=True) as redis:
        yield redis


def jobs(*names: str) -> list[Job]:
    return [a_job(job_id=name) for name in names]


def accepted(delivery: Delivery) -> Result:
    job = delivery.job
    return Result(
        job_id=job.job_id,
        run_id=job.run_id,
        phase=job.phase,
        group=job.group,
        member=job.member,
        status=ResultStatus.ACCEPTED,
        trajectory="aa",
    )


async def test_a_restart_of_redis_loses_nothing_and_clients_reconnect(
    server: RedisServer, queue: RedisJobQueue
) -> None:
    await queue.submit(jobs("a", "b", "c"))
    a, b = await queue.take("w1", 2, 0)
    await queue.finish(a, accepted(a))
    await queue.submit([a_job(job_id="paused", priority="high")])
    (paused,) = await queue.take("w1", 1, 0)
    await queue.retry(paused, delay_s=0.001)
    server.kill()
    server.start()
    assert await queue.ledger("r1") == Ledger(requested=4, accepted=1)
    assert await queue.renew("w1", [b]) == []
    assert set(await queue.lost("r1")) == {"paused"}
    assert [d.job.job_id for d in await queue.take("w1", 5, 0)] == ["paused", "c"]
    assert await queue.finish(b, accepted(b)) is True
    found, _ = await queue.results("r1", "0", 10, 0)
    assert [result.job_id for result in found] == ["a", "b"]


async def test_without_redis_every_call_says_so_and_shows_no_password(
    server: RedisServer, queue: RedisJobQueue
) -> None:
    await queue.submit(jobs("a"))
    (held,) = await queue.take("w1", 1, 0)
    server.kill()
    calls = [
        lambda: queue.submit(jobs("b")),
        lambda: queue.take("w1", 1, 10),
        lambda: queue.reclaim("w1", 1),
        lambda: queue.renew("w1", [held]),
        lambda: queue.finish(held, accepted(held)),
        lambda: queue.retry(held),
        lambda: queue.results("r1", "0", 1, 10),
        lambda: queue.ledger("r1"),
        lambda: queue.check(),
    ]
    for call in calls:
        with pytest.raises(Unavailable, match="does not answer"):
            await call()  # type: ignore[no-untyped-call]
    async with RedisJobQueue("redis://me:secret@127.0.0.1:1/0") as closed:
        with pytest.raises(Unavailable) as outage:
            await closed.check()
    assert "127.0.0.1:1" in outage.value.message
    assert "secret" not in outage.value.message
    with pytest.raises(InvalidRequest, match="no Redis address"):
        RedisJobQueue("http://127.0.0.1")


async def test_the_lag_that_autoscaling_reads_is_the_number_of_waiting_jobs(
    queue: RedisJobQueue, redis: Redis
) -> None:
    async def lag() -> Any:
        (group,) = await redis.xinfo_groups("wmr1:jobs")
        return group["lag"], group["pending"]

    await queue.take("w1", 1, 0)
    await queue.submit(jobs(*"abcdef"))
    assert await lag() == (6, 0)
    a, b, c = await queue.take("w1", 3, 0)
    await queue.finish(a, accepted(a))
    assert await lag() == (3, 2)
    await queue.retry(b)
    assert await lag() == (4, 1)
    await queue.finish(c, accepted(c))
    assert await lag() == (4, 0)
    assert await redis.xlen("wmr1:jobs") == 4


async def test_lost_scripts_and_a_lost_group_are_made_again(
    queue: RedisJobQueue, redis: Redis
) -> None:
    await queue.submit(jobs("a", "b"))
    (a,) = await queue.take("w1", 1, 0)
    await redis.script_flush()
    await redis.xgroup_destroy("wmr1:jobs", "workers")
    assert await queue.renew("w1", [a]) == [a]  # the claim went with the group
    assert [d.job.job_id for d in await queue.take("w2", 5, 0)] == ["a", "b"]


async def test_after_losing_all_data_the_outstanding_jobs_can_be_submitted_again(
    queue: RedisJobQueue, redis: Redis
) -> None:
    await queue.submit(jobs("a", "b"))
    a, b = await queue.take("w1", 2, 0)
    await redis.flushall()
    assert await queue.finish(a, accepted(a)) is False  # nobody asked for it, as far as one knows
    await queue.submit(jobs("a", "b"))
    assert await queue.finish(b, accepted(b)) is True
    (again,) = await queue.take("w1", 5, 0)
    assert again.job.job_id == "a"
    await queue.finish(again, accepted(again))
    assert await queue.ledger("r1") == Ledger(requested=2, accepted=2)


async def test_an_end_that_is_sent_again_because_its_answer_was_lost_is_still_the_first(
    queue: RedisJobQueue, redis: Redis
) -> None:
    await queue.submit(jobs("a"))
    (a,) = await queue.take("w1", 1, 0)
    keys = [
        "wmr1:jobs",
        *(f"wmr1:run:r1:{k}" for k in ("requested", "ledger", "results", "counts", "lost")),
        "wmr1:dead",
    ]
    args = ["workers", a.entry_id, "a", "accepted", "nonce", "train-0", "{}", "", "10"]
    answers = [await redis.eval(scripts.FINISH, len(keys), *keys, *args) for _ in range(2)]
    assert answers == [1, 1]
    assert await redis.xlen("wmr1:run:r1:results") == 1
    assert await queue.ledger("r1") == Ledger(requested=1, accepted=1)


async def test_a_job_of_another_version_waits_for_a_worker_that_reads_it_then_is_dead(
    queue: RedisJobQueue, redis: Redis
) -> None:
    await queue.submit(jobs("a"))
    entries: Any = await redis.xrange("wmr1:jobs")
    ((entry_id, fields),) = entries
    newer = json.loads(fields["job"]) | {"from_the_future": 1}
    await redis.xdel("wmr1:jobs", entry_id)
    await redis.xadd("wmr1:jobs", {"job": json.dumps(newer)})
    await redis.xadd("wmr1:jobs", {"job": "no job at all"})
    assert await queue.take("w1", 5, 0) == []
    assert await queue.reclaim("w2", 5) == []  # delivered twice now, as often as is allowed
    assert await queue.ledger("r1") == Ledger(requested=1)
    assert await queue.reclaim("w3", 5) == []
    assert await queue.ledger("r1") == Ledger(requested=1, dead=1)
    assert await redis.xlen("wmr1:jobs") == 0
