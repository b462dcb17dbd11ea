"""What a worker does with its jobs, on the queue's in-memory twin."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import asynccontextmanager

import pytest
from prometheus_client import REGISTRY

from services.rollout import worker as worker_module
from services.rollout.episode import play
from services.rollout.failures import EpisodeFailed
from services.rollout.worker import Limits, Worker
from tests.rollout_cases import FINISH, L, R, a_job, a_world, acts, an_agent, call
from wmkit.blobs import MemoryBlobs
from wmkit.domain.episode import Job, Result, ResultStatus, Trajectory
from wmkit.domain.errors import Unavailable
from wmkit.domain.tasks import Verdict
from wmkit.ports import Delivery, Ledger
from wmkit.queue.memory import MemoryJobQueue

Play = Callable[[Job], Awaitable[Trajectory]]
LIMITS = Limits(concurrency=4, max_retries=2, retry_pause_s=0.0, beat_s=0.005, grace_s=5.0)


@pytest.fixture(autouse=True)
def no_pauses(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(worker_module, "PAUSE_S", 0.0)


def jobs(count: int) -> list[Job]:
    return [a_job(job_id=f"j{n}", member=n) for n in range(count)]


async def played(job: Job) -> Trajectory:
    return await play(job, world=a_world(), policy=an_agent(acts(R), FINISH))


@asynccontextmanager
async def working(
    queue: MemoryJobQueue,
    play: Play = played,
    blobs: MemoryBlobs | None = None,
    limits: Limits = LIMITS,
    name: str = "w1",
) -> AsyncIterator[Worker]:
    worker = Worker(name, queue, blobs or MemoryBlobs(), play, limits)
    running = asyncio.create_task(worker.run())
    try:
        async with asyncio.timeout(30):  # a worker that hangs fails its test
            yield worker
            worker.stop()
            await running
    finally:
        running.cancel()


async def ends(queue: MemoryJobQueue, count: int) -> dict[str, Result]:
    """The first `count` results; gives up when nothing ends for a while."""
    found: dict[str, Result] = {}
    cursor = "0"
    while len(found) < count:
        results, cursor = await queue.results("r1", cursor, 100, 2000)
        assert results, f"only {len(found)} of {count} jobs have ended"
        found |= {result.job_id: result for result in results}
    return found


async def test_all_jobs_end_with_at_most_the_allowed_number_in_flight() -> None:
    queue, blobs = MemoryJobQueue(), MemoryBlobs()
    gate, most, now = asyncio.Event(), 0, 0

    async def counted(job: Job) -> Trajectory:
        nonlocal most, now
        now += 1
        most = max(most, now)
        if now == LIMITS.concurrency:
            gate.set()  # the worker is as full as it may be
        await gate.wait()
        now -= 1
        return await played(job)

    await queue.submit(jobs(11))
    async with working(queue, counted, blobs):
        results = await ends(queue, 11)
    assert most == LIMITS.concurrency
    assert await queue.ledger("r1") == Ledger(requested=11, accepted=11)
    stored = Trajectory.model_validate_json(await blobs.get(results["j3"].trajectory))
    assert (stored.job.job_id, results["j3"].member) == ("j3", 3)


async def test_a_trajectory_is_stored_before_its_job_ends() -> None:
    blobs = MemoryBlobs()

    class Watching(MemoryJobQueue):
        async def finish(self, delivery: Delivery, result: Result, **told: str) -> bool:
            assert await blobs.has(result.trajectory)
            return await super().finish(delivery, result, **told)

    queue = Watching()
    await queue.submit(jobs(1))
    async with working(queue, blobs=blobs):
        assert (await ends(queue, 1))["j0"].status is ResultStatus.ACCEPTED


@pytest.mark.parametrize(
    ("failure", "status", "attempts"),
    [
        (EpisodeFailed("the renderer is away", retryable=True), ResultStatus.MASKED, [0, 1, 2]),
        (EpisodeFailed("the page is blank", retryable=False), ResultStatus.MASKED, [0]),
        (
            EpisodeFailed("there is no such task", retryable=False, hopeless=True),
            ResultStatus.DEAD,
            [0],
        ),
        (ZeroDivisionError("a bug"), ResultStatus.DEAD, [0, 1, 2]),
    ],
)
async def test_what_cannot_be_played_is_retried_then_ends_with_its_reason(
    failure: Exception, status: ResultStatus, attempts: list[int]
) -> None:
    tried: list[int] = []

    async def failing(job: Job) -> Trajectory:
        tried.append(job.attempt)
        raise failure

    queue = MemoryJobQueue()
    await queue.submit(jobs(1))
    async with working(queue, failing):
        result = (await ends(queue, 1))["j0"]
    assert tried == attempts
    assert (result.status, result.trajectory) == (status, "")
    assert str(failure) in result.reason


async def test_a_retry_that_succeeds_is_accepted_once() -> None:
    async def flaky(job: Job) -> Trajectory:
        if job.attempt == 0:
            raise EpisodeFailed("away", retryable=True)
        return await played(job)

    queue = MemoryJobQueue()
    await queue.submit(jobs(3))
    async with working(queue, flaky):
        await ends(queue, 3)
    assert await queue.ledger("r1") == Ledger(requested=3, accepted=3)


async def test_an_unsure_verdict_masks_the_episode_and_keeps_its_trajectory() -> None:
    async def doubtful(job: Job) -> Trajectory:
        trajectory = await played(job)
        unsure = trajectory.judgement.model_copy(
            update={"verdict": Verdict.UNSURE, "reason": "the screen is half drawn"}
        )
        return trajectory.model_copy(update={"judgement": unsure})

    queue, blobs = MemoryJobQueue(), MemoryBlobs()
    await queue.submit(jobs(1))
    async with working(queue, doubtful, blobs):
        result = (await ends(queue, 1))["j0"]
    assert result.status is ResultStatus.MASKED
    assert "half drawn" in result.reason
    assert await blobs.has(result.trajectory)


async def test_an_outage_of_the_queue_or_the_store_costs_no_episode() -> None:
    class Outages:
        def __init__(self) -> None:
            self.left = 3

        def next(self) -> None:
            if self.left:
                self.left -= 1
                raise Unavailable("away")

    storing, ending, taking = Outages(), Outages(), Outages()
    plays = 0

    class Store(MemoryBlobs):
        async def put(self, data: bytes) -> str:
            storing.next()
            return await super().put(data)

    class Queue(MemoryJobQueue):
        async def take(self, worker: str, count: int, block_ms: int) -> Sequence[Delivery]:
            taking.next()
            return await super().take(worker, count, block_ms)

        async def finish(self, delivery: Delivery, result: Result, **told: str) -> bool:
            ending.next()
            return await super().finish(delivery, result, **told)

    async def counted(job: Job) -> Trajectory:
        nonlocal plays
        plays += 1
        return await played(job)

    queue = Queue()
    await queue.submit(jobs(1))
    async with working(queue, counted, Store()):
        await ends(queue, 1)
    assert plays == 1
    assert await queue.ledger("r1") == Ledger(requested=1, accepted=1)


async def test_a_stopping_worker_ends_what_it_can_and_hands_back_the_rest_uncounted() -> None:
    begun = asyncio.Event()
    may_end = asyncio.Event()

    async def one_never_ends(job: Job) -> Trajectory:
        if job.job_id == "j1":
            begun.set()
            await asyncio.Event().wait()
        await may_end.wait()
        return await played(job)

    queue = MemoryJobQueue()
    await queue.submit(jobs(2))
    async with working(queue, one_never_ends, limits=Limits(concurrency=2, grace_s=0.2)) as worker:
        await begun.wait()
        worker.stop()
        may_end.set()
    assert await queue.ledger("r1") == Ledger(requested=2, accepted=1)
    (back,) = await queue.take("w2", 5, 0)
    assert (back.job.job_id, back.job.attempt, back.deliveries) == ("j1", 0, 1)


async def test_a_worker_takes_over_from_one_that_was_lost_and_the_loser_gives_up() -> None:
    """The clock leaps: the first worker's claim is old although it still plays."""
    now = 0.0
    asleep, gave_up, taken_over = asyncio.Event(), asyncio.Event(), asyncio.Event()

    class Queue(MemoryJobQueue):
        async def renew(self, worker: str, deliveries: Sequence[Delivery]) -> Sequence[Delivery]:
            if worker == "w1":
                await taken_over.wait()  # it wakes up too late
            return await super().renew(worker, deliveries)

        async def reclaim(self, worker: str, count: int) -> Sequence[Delivery]:
            found = await super().reclaim(worker, count)
            if found:
                taken_over.set()
            return found

    async def hangs(job: Job) -> Trajectory:
        asleep.set()
        try:
            await asyncio.Event().wait()
        except asyncio.CancelledError:
            gave_up.set()
            raise
        raise AssertionError("nobody wakes it")

    queue = Queue(reclaim_after_s=15.0, clock=lambda: now)
    await queue.submit(jobs(1))
    async with working(queue, hangs, name="w1"):
        await asleep.wait()
        now = 15.0
        async with working(queue, name="w2"):
            await ends(queue, 1)
            await gave_up.wait()
    assert await queue.ledger("r1") == Ledger(requested=1, accepted=1)


async def test_a_living_worker_keeps_its_claim_however_long_it_plays() -> None:
    now = 0.0
    renewals = 0

    class Queue(MemoryJobQueue):
        async def renew(self, worker: str, deliveries: Sequence[Delivery]) -> Sequence[Delivery]:
            nonlocal now, renewals
            lost = await super().renew(worker, deliveries)
            if deliveries:
                renewals += 1
                now += 10.0  # less than the 15 s after which a claim is old
            return lost

    many = asyncio.Event()

    async def long(job: Job) -> Trajectory:
        while renewals < 5:
            await asyncio.sleep(0)
        many.set()
        return await played(job)

    queue = Queue(reclaim_after_s=15.0, clock=lambda: now)
    await queue.submit(jobs(1))
    async with working(queue, long, name="w1"):
        await many.wait()
        assert await queue.reclaim("w2", 1) == []
        await ends(queue, 1)


async def test_ends_steps_and_calls_are_counted() -> None:
    def value(name: str, **labels: str) -> float:
        return REGISTRY.get_sample_value(f"wmr1_rollout_{name}_total", labels) or 0.0

    names: list[tuple[str, dict[str, str]]] = [
        ("episodes", {"end": "finish"}),
        ("episodes", {"end": "masked"}),
        ("steps", {}),
        ("calls", {"answer": "screen"}),
        ("calls", {"answer": "refused"}),
        ("calls", {"answer": "failed"}),
        ("retries", {"kind": "WorldModelFailed"}),
    ]
    before = [value(name, **labels) for name, labels in names]

    async def mixed(job: Job) -> Trajectory:
        if job.job_id == "j1":
            raise EpisodeFailed("away", retryable=True)
        scroll = call("scroll(direction='up')")
        agent = an_agent("<think>" + call(L), call("junk"), scroll, "</think>Action: " + R, FINISH)
        return await play(job, world=a_world(), policy=agent)

    queue = MemoryJobQueue()
    await queue.submit(jobs(2))
    async with working(queue, mixed):
        await ends(queue, 2)
    after = [value(name, **labels) for name, labels in names]
    assert [b - a for a, b in zip(before, after, strict=True)] == [1, 1, 2, 1, 1, 1, 2]
