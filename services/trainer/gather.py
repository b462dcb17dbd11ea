"""Plays episodes through the job queue: submits jobs, waits until each has ended, and
reads the trajectories of the accepted ones.

It neither plays nor judges an episode. A job ends as the queue says (accepted, masked, dead);
only a member of a group that was lost and whose retry takes too long is given up here.
"""

import asyncio
import time
from collections import Counter, defaultdict
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from typing import TypeVar

import structlog

from wmkit.domain.episode import Job, Result, ResultStatus, Trajectory
from wmkit.domain.errors import NotFound, Overloaded, Unavailable, WMError
from wmkit.domain.tasks import Verdict
from wmkit.ports import BlobStore, Delivery, JobQueue

log = structlog.get_logger(__name__)
T = TypeVar("T")
K = TypeVar("K")

SUBMIT_CHUNK = 32
BLOCK_MS = 500
PAUSE_S = 0.5
PATIENCE_S = 60.0
"""How long a peer may be away before what needs it fails."""


@dataclass(frozen=True, slots=True)
class Episode:
    """A job that has ended. `trajectory` is there exactly when it was accepted."""

    job: Job
    result: Result
    trajectory: Trajectory | None = None

    @property
    def valid(self) -> bool:
        """Accepted, with a verdict of success or failure: may enter a group's statistics."""
        return self.trajectory is not None and self.trajectory.judgement.verdict != Verdict.UNSURE

    @property
    def lost(self) -> str:
        """Why there is no verdict; "" for a valid episode."""
        if self.valid:
            return ""
        if self.trajectory is not None:
            return f"the judge was unsure: {self.trajectory.judgement.reason}"
        return self.result.reason or self.result.status.value


def ends(episodes: Sequence[Episode]) -> dict[str, float]:
    """How many were asked for, and how they ended; see docs/metrics.md."""
    found = Counter(episode.result.status for episode in episodes)
    return {"requested": len(episodes), **{s.value: found[s] for s in ResultStatus}}


async def patiently(call: Callable[[], Awaitable[T]], patience_s: float) -> T:
    """Repeat an idempotent call while infrastructure is down, for at most `patience_s`."""
    deadline = time.monotonic() + patience_s
    while True:
        try:
            return await call()
        except (Unavailable, Overloaded) as error:
            if time.monotonic() + error.retry_after_s > deadline:
                raise
            log.warning("retrying", error=error.message)
            await asyncio.sleep(error.retry_after_s)


class Collector:
    """The run's side of the job queue. Raises Unavailable when nothing ends for `stall_s`.

    A group that only waits for members that were lost goes on without them `member_wait_s`
    after their loss (0: never), where two valid ones are left. Slow members are waited for:
    leaving them out would favour short episodes.
    """

    def __init__(
        self,
        run_id: str,
        queue: JobQueue,
        blobs: BlobStore,
        *,
        stall_s: float,
        member_wait_s: float = 0.0,
        on_episode: Callable[[Episode], None],
    ) -> None:
        self._run_id = run_id
        self._queue = queue
        self._blobs = blobs
        self._stall_s = stall_s
        self._member_wait_s = member_wait_s
        self._on_episode = on_episode
        self._valid: Counter[tuple[str, int]] = Counter()  # members by phase and group
        self._cursor = "0"
        self._position = "0"
        self._early: dict[str, Result] = {}
        self._outstanding: dict[str, Job] = {}

    @property
    def position(self) -> str:
        """Place in the queue's results up to which none is needed any more."""
        return self._position

    def go_to(self, position: str) -> None:
        """Read on from a `position` of an earlier process.

        Behind it may lie results of jobs that this process has yet to ask for: they are kept
        until it does.
        """
        self._cursor = self._position = position

    async def play(
        self,
        jobs: Sequence[Job],
        keep: Callable[[Episode], K],
        progress: Callable[[int, int], None],
    ) -> list[K]:
        """Play all jobs; what `keep` makes of their episodes comes back in the order of the
        jobs (so that an evaluation need not hold every trajectory at once)."""
        waiting = list(jobs)
        ended: dict[str, K] = {}
        last = time.monotonic()
        progress(0, len(jobs))
        while waiting or self._outstanding:
            try:
                await self._submit(waiting)
                block_ms = BLOCK_MS if not waiting else BLOCK_MS // 10
                results = self._claim_early()
                if not results:
                    results = await self._next(block_ms)
                if not results:
                    await self._go_on_without_the_lost()
            except Unavailable as error:
                log.warning("the job queue does not answer", error=error.message)
                results = []
                await asyncio.sleep(PAUSE_S)
            for episode in await self._read(results):
                ended[episode.job.job_id] = keep(episode)
                last = time.monotonic()
            if results:
                progress(len(ended), len(jobs))
            elif time.monotonic() - last > self._stall_s:
                raise Unavailable(
                    f"no episode has ended for {self._stall_s:g} s ({len(ended)} of {len(jobs)} "
                    "have): is a rollout worker running, and do policy and world model answer?"
                )
        return [ended[job.job_id] for job in jobs]

    async def abandon(self, reason: str) -> None:
        """End as dead what has not ended, so that the ledger balances.

        A worker that still plays such a job finds it ended; a job that ended just now keeps
        its own result.
        """
        for job in self._outstanding.values():
            await self._end(job, reason)
        while True:
            results = await self._next(0)
            if not results:
                break
            await self._read(results)
        self._outstanding.clear()

    async def _end(self, job: Job, reason: str) -> None:
        named = job.model_dump(include={"job_id", "run_id", "phase", "group", "member"})
        result = Result(**named, status=ResultStatus.DEAD, reason=reason)
        # "0-0" is never the id of a stream entry: there is none of ours to acknowledge.
        await self._queue.finish(Delivery("0-0", job, 0), result)

    async def _go_on_without_the_lost(self) -> None:
        if not self._member_wait_s or not self._outstanding:
            return
        lost = await self._queue.lost(self._run_id)
        overdue = {job_id for job_id, since_s in lost.items() if since_s >= self._member_wait_s}
        missing = defaultdict(list)
        for job in self._outstanding.values():
            missing[job.phase, job.group].append(job)
        for group, jobs in missing.items():
            if self._valid[group] >= 2 and all(job.job_id in overdue for job in jobs):
                for job in jobs:
                    log.warning("a group goes on without a lost member", job_id=job.job_id)
                    await self._end(
                        job,
                        f"lost, and not played again within {self._member_wait_s:g} s: "
                        "its group went on without it",
                    )

    async def _submit(self, waiting: list[Job]) -> None:
        """Submit as much as the queue admits and take it off the list."""
        while waiting:
            chunk = waiting[:SUBMIT_CHUNK]
            # Known before they are asked for: a call that fails may have come through.
            self._outstanding.update((job.job_id, job) for job in chunk)
            try:
                await self._queue.submit(chunk)
            except Overloaded:
                break
            del waiting[:SUBMIT_CHUNK]

    async def _next(self, block_ms: int) -> Sequence[Result]:
        """The next results of the run; empty when there are none within `block_ms`."""
        results, self._cursor = await self._queue.results(self._run_id, self._cursor, 256, block_ms)
        return results

    def _claim_early(self) -> Sequence[Result]:
        """Results that came before their jobs were asked for, by now."""
        return [self._early.pop(job) for job in list(self._outstanding) if job in self._early]

    async def _read(self, results: Sequence[Result]) -> list[Episode]:
        known = []
        for result in results:
            if result.job_id in self._outstanding:
                known.append(result)
            else:
                self._early[result.job_id] = result
        if not self._early:
            self._position = self._cursor
        episodes = await asyncio.gather(*(self._episode(result) for result in known))
        for episode in episodes:
            del self._outstanding[episode.job.job_id]
            self._valid[episode.job.phase, episode.job.group] += episode.valid
            self._on_episode(episode)
        return episodes

    async def _episode(self, result: Result) -> Episode:
        job = self._outstanding[result.job_id]
        if result.status != ResultStatus.ACCEPTED:
            return Episode(job, result)
        try:
            data = await patiently(lambda: self._blobs.get(result.trajectory), self._stall_s)
        except NotFound:
            raise WMError(
                f"the trajectory of job {result.job_id} is not in the blob store; do trainer "
                "and rollout workers share one (WMR1_BLOBS)?"
            ) from None
        return Episode(job, result, Trajectory.model_validate_json(data))
