"""The run's side of the queue: every job is waited for, and the books balance at any end."""

import asyncio
from collections.abc import Sequence
from typing import Any

import pytest

from services.trainer.gather import Collector, Episode, patiently
from tests.trainer_cases import job, trajectory
from wmkit.blobs import MemoryBlobs
from wmkit.domain.episode import Job, Result, ResultStatus
from wmkit.domain.errors import Unavailable, WMError
from wmkit.queue.memory import MemoryJobQueue


def jobs(count: int) -> list[Job]:
    return [job(job_id=f"run/train-1/0/{i}", member=i) for i in range(count)]


def ended(of: Job, status: ResultStatus, blob: str = "") -> Result:
    return Result(
        job_id=of.job_id,
        run_id=of.run_id,
        phase=of.phase,
        group=of.group,
        member=of.member,
        status=status,
        trajectory=blob,
    )


class Setting:
    """A collector, a queue, and a worker that accepts even members and masks odd ones."""

    def __init__(
        self, *, stall_s: float = 30.0, queue: Any = None, member_wait_s: float = 0.0
    ) -> None:
        self.queue = queue or MemoryJobQueue()
        self.blobs = MemoryBlobs()
        self.recorded: list[Episode] = []
        self.progress: list[tuple[int, int]] = []
        self.collector = Collector(
            "run",
            self.queue,
            self.blobs,
            stall_s=stall_s,
            member_wait_s=member_wait_s,
            on_episode=self.recorded.append,
        )

    async def play(self, of: Sequence[Job]) -> list[Episode]:
        return await self.collector.play(
            of, lambda episode: episode, lambda n, total: self.progress.append((n, total))
        )

    async def work(self, count: int) -> None:
        while count:
            for delivery in await self.queue.take("w", 4, 500):
                of = delivery.job
                status, blob = ResultStatus.MASKED, ""
                if of.member % 2 == 0:
                    status = ResultStatus.ACCEPTED
                    blob = await self.blobs.put(trajectory(of).model_dump_json().encode())
                await self.queue.finish(delivery, ended(of, status, blob))
                count -= 1


async def test_every_job_ends_and_comes_back_in_order() -> None:
    here = Setting()
    asked = jobs(70)
    episodes, _ = await asyncio.gather(here.play(asked), here.work(70))
    assert [e.job for e in episodes] == asked
    assert [e.valid for e in episodes] == [i % 2 == 0 for i in range(70)]
    assert all((e.trajectory is not None) == e.valid for e in episodes)
    assert here.progress[0] == (0, 70)
    assert here.progress[-1] == (70, 70)
    ledger = await here.queue.ledger("run")
    assert (ledger.requested, ledger.accepted, ledger.masked) == (70, 35, 35)
    assert len(here.recorded) == 70


async def test_a_queue_smaller_than_the_phase_is_fed_as_it_empties() -> None:
    here = Setting(queue=MemoryJobQueue(limit=40))
    episodes, _ = await asyncio.gather(here.play(jobs(100)), here.work(100))
    assert len(episodes) == 100
    assert (await here.queue.ledger("run")).requested == 100


async def test_an_unsure_verdict_is_not_valid() -> None:
    of = job()
    episode = Episode(of, ended(of, ResultStatus.ACCEPTED), trajectory(of, success=None))
    assert not episode.valid
    assert episode.lost == "the judge was unsure: looked at it"


async def test_nothing_ending_for_too_long_is_one_clear_sentence() -> None:
    here = Setting(stall_s=0.05)
    with pytest.raises(Unavailable, match=r"\(0 of 3 have\): is a rollout worker running"):
        await here.play(jobs(3))


async def test_abandoned_jobs_end_as_dead_and_late_workers_change_nothing() -> None:
    here = Setting(stall_s=0.05)
    with pytest.raises(Unavailable):
        await here.play(jobs(4))
    late = list(await here.queue.take("w", 2, 0))
    first = late[0]
    await here.queue.finish(first, ended(first.job, ResultStatus.MASKED))
    await here.collector.abandon("cancelled")
    ledger = await here.queue.ledger("run")
    assert (ledger.requested, ledger.masked, ledger.dead) == (4, 1, 3)
    assert not await here.queue.finish(late[1], ended(late[1].job, ResultStatus.ACCEPTED, "x"))
    assert (await here.queue.ledger("run")).ended == 4
    statuses = {e.job.member: e.result.status for e in here.recorded}
    assert statuses[first.job.member] == ResultStatus.MASKED
    assert len(statuses) == 4


class Flaky(MemoryJobQueue):
    """Every other call fails, half of the failures after the call came through."""

    calls = 0

    async def submit(self, jobs: Sequence[Job]) -> None:
        self.calls += 1
        if self.calls % 4 == 3:
            await super().submit(jobs)
        if self.calls % 2:
            raise Unavailable("Redis does not answer", retry_after_s=0)
        await super().submit(jobs)

    async def results(self, *args: Any) -> Any:
        self.calls += 1
        if self.calls % 2:
            raise Unavailable("Redis does not answer", retry_after_s=0)
        return await super().results(*args)


async def test_an_unreliable_queue_costs_no_job(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("services.trainer.gather.PAUSE_S", 0.0)
    here = Setting(queue=Flaky())
    episodes, _ = await asyncio.gather(here.play(jobs(70)), here.work(70))
    assert len(episodes) == 70
    assert (await here.queue.ledger("run")).requested == 70


async def test_a_trajectory_that_is_not_in_the_store_is_explained() -> None:
    here = Setting()

    async def lie() -> None:
        (delivery,) = await here.queue.take("w", 1, 500)
        await here.queue.finish(delivery, ended(delivery.job, ResultStatus.ACCEPTED, "ab" * 32))

    with pytest.raises(WMError, match="do trainer and rollout workers share one"):
        await asyncio.gather(here.play(jobs(1)), lie())


async def test_patience_ends() -> None:
    tries = 0

    async def never() -> None:
        nonlocal tries
        tries += 1
        raise Unavailable("down", retry_after_s=0)

    with pytest.raises(Unavailable, match="down"):
        await patiently(never, 0.01)
    assert tries > 1

    async def second_time() -> str:
        if tries_left.pop():
            raise Unavailable("down", retry_after_s=0)
        return "up"

    tries_left = [False, True]
    assert await patiently(second_time, 5) == "up"


async def test_results_that_came_before_their_jobs_were_asked_for_are_kept() -> None:
    """As after a restart: the queue knows jobs that this collector submits only later."""
    here = Setting()
    first, second = jobs(4)[:2], jobs(4)[2:]
    await here.queue.submit([*first, *second])
    await here.work(4)
    here.collector.go_to("0")
    assert [e.result.status for e in await here.play(first)] == ["accepted", "masked"]
    # To go on from here one must read all four again.
    assert here.collector.position == "0"
    assert [e.job.member for e in await here.play(second)] == [2, 3]
    assert here.collector.position == "4"
    assert [e.job.member for e in here.recorded] == [0, 1, 2, 3]


class Losing:
    """Members of one group: `well` of them end, `lost` ones are handed back, `slow` ones held."""

    def __init__(self, *, well: int, lost: int, slow: int = 0, member_wait_s: float = 50.0) -> None:
        self.now = 0.0
        self.well, self.count = well, well + lost + slow
        self.slow = slow
        queue = MemoryJobQueue(clock=lambda: self.now)
        self.setting = Setting(queue=queue, member_wait_s=member_wait_s)
        self.looked = asyncio.Event()
        ask = queue.lost

        async def lost_(run_id: str) -> Any:
            self.looked.set()
            return await ask(run_id)

        queue.lost = lost_  # type: ignore[method-assign]

    async def looks_again(self) -> None:
        """Return when the collector has acted on what it saw after this call."""
        for _ in range(2):
            self.looked.clear()
            await self.looked.wait()

    async def begin(self) -> "asyncio.Task[list[Episode]]":
        here = self.setting
        playing = asyncio.create_task(here.play(jobs(self.count)))
        held: list[Any] = []
        while len(held) < self.count:
            held += await here.queue.take("w", self.count, 100)
        for delivery in held[: self.well]:
            blob = await here.blobs.put(trajectory(delivery.job).model_dump_json().encode())
            await here.queue.finish(delivery, ended(delivery.job, ResultStatus.ACCEPTED, blob))
        for delivery in held[self.well : self.count - self.slow]:
            await here.queue.retry(delivery, delay_s=1000.0)
        return playing


async def test_a_group_goes_on_without_a_lost_member_when_its_retry_takes_too_long() -> None:
    case = Losing(well=3, lost=1)
    playing = await case.begin()
    case.now = 49.0
    await case.looks_again()
    assert not playing.done()
    case.now = 50.0
    episodes = await playing
    assert [e.valid for e in episodes] == [True, True, True, False]
    assert "its group went on without it" in episodes[3].lost
    ledger = await case.setting.queue.ledger("run")
    assert (ledger.requested, ledger.accepted, ledger.dead) == (4, 3, 1)


@pytest.mark.parametrize(
    "case",
    [
        pytest.param({"well": 1, "lost": 2}, id="fewer than two would be left"),
        pytest.param({"well": 2, "lost": 1, "slow": 1}, id="a member is slow, not lost"),
        pytest.param({"well": 3, "lost": 1, "member_wait_s": 0.0}, id="no limit is set"),
    ],
)
async def test_a_group_waits_as_long_as(case: dict[str, Any]) -> None:
    losing = Losing(**case)
    playing = await losing.begin()
    losing.now = 999.0
    if losing.setting.collector._member_wait_s:
        await losing.looks_again()
    assert not playing.done()
    ledger = await losing.setting.queue.ledger("run")
    assert ledger.ended == losing.well
    losing.now = 1001.0  # the pause of the retries is over
    while (await losing.setting.queue.ledger("run")).ended < losing.count:
        for held in await losing.setting.queue.take("w", 4, 0):
            await losing.setting.queue.finish(held, ended(held.job, ResultStatus.MASKED))
        for held in await losing.setting.queue.reclaim("w", 4):
            await losing.setting.queue.finish(held, ended(held.job, ResultStatus.MASKED))
    assert len(await playing) == losing.count
