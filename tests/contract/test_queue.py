"""What both job queues promise, on the in-memory twin and on a real Redis."""

import asyncio
import random
import uuid
from collections.abc import AsyncIterator, Iterator, Sequence
from pathlib import Path
from typing import Any, cast

import pytest
from redis.asyncio import Redis

from tests.redis_server import RedisServer
from wmkit.domain.episode import DeadLetter, EpisodeSpec, Job, Priority, Result, ResultStatus
from wmkit.domain.errors import InvalidRequest, Overloaded
from wmkit.domain.tasks import TaskRef
from wmkit.ports import Delivery, JobQueue, Ledger
from wmkit.queue.memory import MemoryJobQueue
from wmkit.queue.redis import RedisJobQueue

LIMIT, DELIVERIES, RECLAIM_S = 8, 3, 15.0
ACCEPTED, MASKED, DEAD = ResultStatus.ACCEPTED, ResultStatus.MASKED, ResultStatus.DEAD


class Harness:
    """A queue and a way to let time pass for claims of normal priority, pauses and losses."""

    def __init__(self, queue: JobQueue) -> None:
        self.queue = queue

    async def age(self, seconds: float) -> None:
        raise NotImplementedError

    async def letters(self) -> list[DeadLetter]:
        raise NotImplementedError


class MemoryHarness(Harness):
    def __init__(self) -> None:
        self.now = 1000.0
        super().__init__(
            MemoryJobQueue(
                limit=LIMIT,
                max_deliveries=DELIVERIES,
                reclaim_after_s=RECLAIM_S,
                clock=lambda: self.now,
            )
        )

    async def age(self, seconds: float) -> None:
        self.now += seconds

    async def letters(self) -> list[DeadLetter]:
        return cast(MemoryJobQueue, self.queue).letters


class RedisHarness(Harness):
    def __init__(self, queue: RedisJobQueue, redis: Redis, stream: str) -> None:
        super().__init__(queue)
        self.redis, self.stream = redis, stream

    async def age(self, seconds: float) -> None:
        prefix = self.stream.removesuffix(":jobs")
        async for waiting, due in self.redis.zscan_iter(f"{prefix}:later"):
            await self.redis.zadd(f"{prefix}:later", {waiting: due - seconds * 1000})
        for job_id, since in (await cast(Any, self.redis.hgetall(f"{prefix}:run:r1:lost"))).items():
            earlier = int(since) - int(seconds * 1000)
            await cast(Any, self.redis.hset(f"{prefix}:run:r1:lost", job_id, str(earlier)))
        claims: Any = await self.redis.xpending_range(self.stream, "workers", "-", "+", 1000)
        for claim in claims:
            await self.redis.xclaim(
                self.stream,
                "workers",
                claim["consumer"],
                0,
                [claim["message_id"]],
                idle=int(claim["time_since_delivered"] + seconds * 1000),
                justid=True,
            )

    async def letters(self) -> list[DeadLetter]:
        entries: Any = await self.redis.xrange(self.stream.removesuffix(":jobs") + ":dead")
        return [DeadLetter.model_validate_json(fields["letter"]) for _, fields in entries]


@pytest.fixture(scope="module")
def redis_url(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    folder: Path = tmp_path_factory.mktemp("redis")
    server = RedisServer(folder).start()
    yield server.url
    server.kill()


@pytest.fixture(params=["memory", "redis"])
async def harness(request: pytest.FixtureRequest) -> AsyncIterator[Harness]:
    if request.param == "memory":
        yield MemoryHarness()
        return
    url, prefix = request.getfixturevalue("redis_url"), uuid.uuid4().hex
    queue = RedisJobQueue(
        url,
        prefix=prefix,
        limit=LIMIT,
        max_deliveries=DELIVERIES,
        reclaim_after_s=RECLAIM_S,
    )
    redis = Redis.from_url(url, decode_responses=True)
    await queue.take("w0", 1, 0)
    yield RedisHarness(queue, redis, f"{prefix}:jobs")
    await queue.close()
    await redis.aclose()


@pytest.fixture
def queue(harness: Harness) -> JobQueue:
    return harness.queue


def a_job(
    name: str, *, run: str = "r1", phase: str = "train-0", priority: Priority = "normal"
) -> Job:
    return Job(
        priority=priority,
        job_id=name,
        run_id=run,
        phase=phase,
        task=TaskRef(template="settings_turn_on", seed=3),
        group=1,
        member=2,
        seed=7,
        spec=EpisodeSpec(),
    )


def jobs(*names: str) -> list[Job]:
    return [a_job(name) for name in names]


def end(delivery: Delivery, status: ResultStatus = ACCEPTED, reason: str = "") -> Result:
    job = delivery.job
    return Result(
        job_id=job.job_id,
        run_id=job.run_id,
        phase=job.phase,
        group=job.group,
        member=job.member,
        status=status,
        reason=reason,
        trajectory="aa" if status == ACCEPTED else "",
    )


def ids(deliveries: Sequence[Delivery]) -> list[str]:
    return [delivery.job.job_id for delivery in deliveries]


async def one(queue: JobQueue, worker: str = "w1") -> Delivery:
    (delivery,) = await queue.take(worker, 1, 0)
    return delivery


async def test_jobs_are_handed_out_once_in_order_and_unaltered(queue: JobQueue) -> None:
    submitted = jobs("a", "b", "c")
    await queue.submit(submitted)
    first = await queue.take("w1", 2, 0)
    second = await queue.take("w2", 2, 0)
    assert [d.job for d in [*first, *second]] == submitted
    assert [d.deliveries for d in first] == [1, 1]
    assert await queue.take("w1", 2, 0) == []


async def test_submitting_an_id_again_is_a_no_op_even_after_it_ended(queue: JobQueue) -> None:
    await queue.submit(jobs("a", "a"))
    await queue.submit(jobs("a"))
    await queue.finish(await one(queue), end(Delivery("", a_job("a"), 1)))
    await queue.submit(jobs("a"))
    assert await queue.take("w1", 5, 0) == []
    assert await queue.ledger("r1") == Ledger(requested=1, accepted=1)


async def test_a_batch_that_does_not_fit_is_refused_whole_until_there_is_room(
    queue: JobQueue,
) -> None:
    await queue.submit(jobs(*"abcdef"))
    with pytest.raises(Overloaded) as refusal:
        await queue.submit(jobs(*"ghi"))
    assert refusal.value.retry_after_s > 0
    assert (await queue.ledger("r1")).requested == 6
    await queue.submit(jobs("a", "b", "g", "h"))  # two known, two that fit
    await queue.submit(jobs(*"abcdefgh"))  # all known: nothing to admit
    with pytest.raises(Overloaded):
        await queue.submit(jobs("i"))
    delivery = await one(queue)  # a job being played still takes its place
    with pytest.raises(Overloaded):
        await queue.submit(jobs("i"))
    await queue.finish(delivery, end(delivery))
    await queue.submit(jobs("i"))
    assert ids(await queue.take("w1", 20, 0)) == list("bcdefghi")


async def test_a_batch_larger_than_the_queue_is_the_callers_mistake(queue: JobQueue) -> None:
    with pytest.raises(InvalidRequest, match="limit of 8"):
        await queue.submit(jobs(*"abcdefghi"))


async def test_jobs_of_a_higher_priority_are_handed_out_first(queue: JobQueue) -> None:
    for name, priority in (("a", "low"), ("b", "normal"), ("c", "high"), ("d", "high")):
        await queue.submit([a_job(name, priority=priority)])  # type: ignore[arg-type]
    first = await queue.take("w1", 3, 0)
    assert ids(first) == ["c", "d", "b"]
    await queue.retry(first[2])
    await queue.retry(first[0], failed=False)
    assert ids(await queue.take("w1", 2, 0)) == ["c", "b"]
    for delivery in (first[1], *await queue.take("w1", 9, 0)):
        assert await queue.finish(delivery, end(delivery)) is True
    assert await queue.renew("w1", first) == first
    assert await queue.ledger("r1") == Ledger(requested=4, accepted=2)


async def test_all_priorities_count_towards_the_limit(queue: JobQueue) -> None:
    await queue.submit([a_job(f"h{n}", priority="high") for n in range(3)])
    await queue.submit([a_job(f"l{n}", priority="low") for n in range(4)])
    (held, *_) = await queue.take("w1", 1, 0)
    await queue.retry(held, delay_s=5.0)
    with pytest.raises(Overloaded, match="7 jobs are outstanding"):
        await queue.submit(jobs("a", "b"))


async def test_take_hands_out_no_more_than_asked_for_while_it_waits(queue: JobQueue) -> None:
    waiting = asyncio.create_task(queue.take("w1", 1, 2000))
    await queue.submit([a_job("a", priority="low"), a_job("b", priority="high")])
    (found,) = await waiting
    rest = await queue.take("w1", 9, 0)
    assert sorted([*ids([found]), *ids(rest)]) == ["a", "b"]


async def test_a_retry_with_a_pause_comes_when_the_pause_is_over(harness: Harness) -> None:
    queue = harness.queue
    await queue.submit(jobs("a"))
    await queue.retry(await one(queue), delay_s=8.0)
    assert await queue.take("w1", 1, 0) == []
    await harness.age(7.0)
    assert await queue.take("w1", 1, 0) == []
    await harness.age(1.0)
    again = await one(queue)
    assert (again.job.attempt, again.deliveries) == (1, 1)
    assert await queue.finish(again, end(again)) is True


async def test_a_job_that_pauses_when_its_run_ends_it_is_not_played(harness: Harness) -> None:
    queue = harness.queue
    await queue.submit(jobs("a"))
    await queue.retry(await one(queue), delay_s=8.0)
    await queue.finish(Delivery("0-0", a_job("a"), 0), end(Delivery("0-0", a_job("a"), 0), DEAD))
    await harness.age(8.0)
    assert await queue.take("w1", 1, 0) == []
    assert await queue.ledger("r1") == Ledger(requested=1, dead=1)


async def test_jobs_that_lost_an_attempt_are_known_until_they_end(harness: Harness) -> None:
    queue = harness.queue
    await queue.submit(jobs("failed", "orphaned", "handed back", "well"))
    failed, _, back, _ = await queue.take("w1", 4, 0)
    assert await queue.lost("r1") == {}
    await queue.retry(failed)
    await queue.retry(back, failed=False)
    await harness.age(RECLAIM_S)
    heirs = await queue.reclaim("w2", 1)
    assert ids(heirs) == ["orphaned"]
    lost = await queue.lost("r1")
    assert set(lost) == {"failed", "orphaned"}
    assert RECLAIM_S <= lost["failed"] < RECLAIM_S + 60 and lost["orphaned"] < 60
    for delivery in (*heirs, *await queue.take("w2", 9, 0)):
        await queue.finish(delivery, end(delivery))
    assert await queue.lost("r1") == {}


async def test_what_ends_without_an_episode_leaves_a_letter_with_reason_and_traceback(
    harness: Harness,
) -> None:
    queue = harness.queue
    await queue.submit(jobs("ok", "unsure", "broken", "masked", "cancelled"))
    ok, unsure, broken, masked, _ = await queue.take("w1", 9, 0)
    kept = end(unsure, MASKED, "unsure").model_copy(update={"trajectory": "aa"})
    await queue.finish(ok, end(ok))
    await queue.finish(unsure, kept)
    await queue.finish(broken, end(broken, DEAD, "a bug"), traceback="Traceback ...")
    await queue.finish(broken, end(broken, DEAD, "a bug"), traceback="again")
    await queue.finish(masked, end(masked, MASKED, "away"))
    nobodys = Delivery("0-0", a_job("cancelled"), 0)
    await queue.finish(nobodys, end(nobodys, DEAD, "cancelled"))
    assert [(x.job.job_id, x.status, x.reason, x.traceback) for x in await harness.letters()] == [
        ("broken", DEAD, "a bug", "Traceback ..."),
        ("masked", MASKED, "away", ""),
    ]


async def test_take_waits_for_a_job(queue: JobQueue) -> None:
    waiting = asyncio.create_task(queue.take("w1", 1, 2000))
    await queue.submit(jobs("a"))
    assert ids(await waiting) == ["a"]


async def test_a_job_ends_once_whoever_says_so_first(harness: Harness) -> None:
    queue = harness.queue
    await queue.submit(jobs("a"))
    zombie = await one(queue, "w1")
    await harness.age(RECLAIM_S)
    (heir,) = await queue.reclaim("w2", 1)
    assert await queue.finish(heir, end(heir)) is True
    assert await queue.finish(zombie, end(zombie, MASKED, "late")) is False
    found, _ = await queue.results("r1", "0", 10, 0)
    assert [(r.job_id, r.status) for r in found] == [("a", ACCEPTED)]
    assert await queue.ledger("r1") == Ledger(requested=1, accepted=1)
    await harness.age(RECLAIM_S)
    assert await queue.reclaim("w3", 1) == []


async def test_a_result_nobody_asked_for_is_not_counted(queue: JobQueue) -> None:
    stray = Delivery("1-1", a_job("ghost"), 1)
    assert await queue.finish(stray, end(stray)) is False
    assert await queue.ledger("r1") == Ledger()
    assert await queue.results("r1", "0", 10, 0) == ([], "0")


async def test_a_job_that_its_run_has_ended_is_not_played_any_more(harness: Harness) -> None:
    """A cancelled run ends its jobs without holding their entries."""
    queue = harness.queue
    await queue.submit(jobs("waiting", "played", "dropped"))
    waiting, played, dropped = (
        Delivery("0-0", a_job(n), 0) for n in ("waiting", "played", "dropped")
    )
    await queue.finish(waiting, end(waiting, DEAD, "cancelled"))
    held = await queue.take("w1", 5, 0)
    assert ids(held) == ["played", "dropped"]
    await queue.finish(played, end(played, DEAD, "cancelled"))
    assert ids(await queue.renew("w1", held)) == ["played"]
    await queue.finish(dropped, end(dropped, DEAD, "cancelled"))
    await harness.age(RECLAIM_S)
    assert await queue.reclaim("w2", 5) == []
    await queue.submit(jobs(*"abcdefgh"))  # none of the three takes a place any more
    assert await queue.ledger("r1") == Ledger(requested=11, dead=3)


async def test_a_retry_counts_an_attempt_and_a_hand_back_does_not(queue: JobQueue) -> None:
    await queue.submit(jobs("a"))
    await queue.retry(await one(queue))
    second = await one(queue, "w2")
    assert (second.job.attempt, second.deliveries) == (1, 1)
    await queue.retry(second, failed=False)
    third = await one(queue)
    assert (third.job.attempt, third.job.job_id) == (1, "a")
    assert (await queue.ledger("r1")).requested == 1


async def test_claims_pass_to_another_worker_only_when_they_are_not_renewed(
    harness: Harness,
) -> None:
    queue = harness.queue
    await queue.submit(jobs("a", "b"))
    kept, left = await queue.take("w1", 2, 0)
    assert await queue.reclaim("w2", 5) == []
    await harness.age(RECLAIM_S - 5)
    assert await queue.renew("w1", [kept]) == []
    await harness.age(RECLAIM_S - 5)
    (heir,) = await queue.reclaim("w2", 5)
    assert (heir.entry_id, heir.job, heir.deliveries) == (left.entry_id, left.job, 2)


async def test_a_worker_that_was_asleep_learns_what_it_lost_and_takes_nothing_back(
    harness: Harness,
) -> None:
    queue = harness.queue
    await queue.submit(jobs("a", "b"))
    lost, done = await queue.take("w1", 2, 0)
    await queue.finish(done, end(done))
    await harness.age(RECLAIM_S)
    (heir,) = await queue.reclaim("w2", 5)
    assert await queue.renew("w1", [lost, done]) == [lost, done]
    await queue.retry(lost)  # not its to hand back
    assert await queue.take("w3", 5, 0) == []
    assert await queue.renew("w2", [heir]) == []


async def test_reclaim_takes_no_more_than_asked_for(harness: Harness) -> None:
    await harness.queue.submit(jobs(*"abcde"))
    await harness.queue.take("w1", 5, 0)
    await harness.age(RECLAIM_S)
    assert ids(await harness.queue.reclaim("w2", 2)) == ["a", "b"]
    assert ids(await harness.queue.reclaim("w3", 9)) == ["c", "d", "e"]


async def test_a_job_that_loses_every_worker_is_dead_with_a_reason(harness: Harness) -> None:
    queue = harness.queue
    await queue.submit(jobs("a", "b"))
    await queue.take("w0", 1, 0)
    for n in range(1, DELIVERIES):
        await harness.age(RECLAIM_S)
        (delivery,) = await queue.reclaim(f"w{n}", 5)
        assert delivery.deliveries == n + 1
    await harness.age(RECLAIM_S)
    assert await queue.reclaim("w9", 5) == []
    ((result,), _) = await queue.results("r1", "0", 10, 0)
    assert (result.job_id, result.status, result.group, result.member) == ("a", DEAD, 1, 2)
    assert "3 times" in result.reason
    assert [(x.job, x.reason) for x in await harness.letters()] == [(a_job("a"), result.reason)]
    assert await queue.ledger("r1") == Ledger(requested=2, dead=1)
    assert ids(await queue.take("w9", 5, 0)) == ["b"]


async def test_results_are_read_from_a_cursor_and_counted_by_run_and_phase(
    queue: JobQueue,
) -> None:
    await queue.submit([a_job("a"), a_job("b", phase="evaluate-before"), a_job("a", run="r2")])
    a, b, other = await queue.take("w1", 3, 0)
    await queue.finish(a, end(a))
    first, cursor = await queue.results("r1", "0", 10, 0)
    reading = asyncio.create_task(queue.results("r1", cursor, 10, 2000))
    await queue.finish(other, end(other, DEAD, "x"))
    await queue.finish(b, end(b, MASKED, "y"))
    second, last = await reading
    assert [r.job_id for r in first] == ["a"]
    assert [(r.job_id, r.reason) for r in second] == [("b", "y")]
    assert await queue.results("r1", last, 10, 0) == ([], last)
    again, _ = await queue.results("r1", "0", 1, 0)
    assert again == first
    assert await queue.ledger("r1") == Ledger(requested=2, accepted=1, masked=1)
    assert await queue.ledger("r1", "train-0") == Ledger(requested=1, accepted=1)
    assert await queue.ledger("r1", "evaluate-before") == Ledger(requested=1, masked=1)
    assert await queue.ledger("r2") == Ledger(requested=1, dead=1)


@pytest.mark.parametrize("seed", range(6))
async def test_whatever_workers_do_each_job_ends_exactly_once(harness: Harness, seed: int) -> None:
    """Random takes, losses, renewals, retries, duplicate ends and resubmissions, then a drain."""
    queue, rng = harness.queue, random.Random(seed)
    names = [f"j{n}" for n in range(LIMIT)]
    held: list[tuple[str, Delivery]] = []  # includes claims that were lost: zombies
    for _ in range(60):
        worker = f"w{rng.randrange(3)}"
        match rng.randrange(7):
            case 0:
                await queue.submit(jobs(*rng.sample(names, rng.randrange(1, LIMIT))))
            case 1:
                held += [(worker, d) for d in await queue.take(worker, 2, 0)]
            case 2:
                await harness.age(rng.choice([1.0, RECLAIM_S]))
                held += [(worker, d) for d in await queue.reclaim(worker, 2)]
            case 3:
                await queue.renew(worker, [d for w, d in held if w == worker])
            case 4 if held:
                await queue.retry(rng.choice(held)[1], failed=rng.random() < 0.5)
            case 5 if held:
                delivery = rng.choice(held)[1]
                await queue.finish(delivery, end(delivery, rng.choice([ACCEPTED, MASKED]), "z"))
    await queue.submit(jobs(*names))
    for _ in range(2 * LIMIT):
        await harness.age(RECLAIM_S)
        for delivery in [*await queue.take("last", 9, 0), *await queue.reclaim("last", 9)]:
            await queue.finish(delivery, end(delivery))
    found, _ = await queue.results("r1", "0", 1000, 0)
    assert sorted(result.job_id for result in found) == sorted(names)
    ledger = await queue.ledger("r1")
    assert (ledger.requested, ledger.ended) == (LIMIT, LIMIT)
    assert ledger.accepted == sum(result.status == ACCEPTED for result in found)
