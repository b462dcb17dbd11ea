"""A rollout worker: takes jobs, keeps many episodes in flight, brings every job to its end.

It knows the queue's promises and nothing of how an episode is played. An episode is stored
first and its job ended second, so a worker may die between any two instructions: the job is
then played again, and the ledger takes its first end only. See `docs/rollout.md`.
"""

import asyncio
import random
import traceback
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from typing import TypeVar

import structlog

from services.rollout import metrics
from services.rollout.failures import EpisodeFailed
from wmkit.domain.episode import Job, Result, ResultStatus, Trajectory
from wmkit.domain.errors import Overloaded, Unavailable
from wmkit.domain.tasks import Verdict
from wmkit.ports import BlobStore, Delivery, JobQueue

T = TypeVar("T")
Play = Callable[[Job], Awaitable[Trajectory]]
log = structlog.get_logger(__name__)

BLOCK_MS = 1000
PAUSE_S = 1.0
LONGEST_PAUSE_S = 30.0


@dataclass(frozen=True, slots=True)
class Limits:
    """`beat_s` = how often claims are renewed and dead workers' jobs looked for."""

    concurrency: int = 64
    max_retries: int = 3
    retry_pause_s: float = 1.0
    beat_s: float = 5.0
    grace_s: float = 20.0


@dataclass(eq=False, slots=True)
class _Flight:
    """A job in hand. Once it is `ending` it is no longer given up for a lost claim."""

    delivery: Delivery
    task: "asyncio.Task[None]" = field(init=False)
    ending: bool = False
    lost: bool = False


class Worker:
    """`run` until `stop`; `name` is the consumer's, unlike that of any other process."""

    def __init__(
        self, name: str, queue: JobQueue, blobs: BlobStore, play: Play, limits: Limits
    ) -> None:
        self.name = name
        self._queue = queue
        self._blobs = blobs
        self._play = play
        self._limits = limits
        self._flights: dict[str, _Flight] = {}
        self._stopping = asyncio.Event()
        self._landed = asyncio.Event()

    def stop(self) -> None:
        """Take no more jobs; `run` returns when those in hand have ended or are handed back."""
        self._stopping.set()
        self._landed.set()

    async def run(self) -> None:
        """Raises only what is a bug: outages of queue and blob store are waited for."""
        renewing = asyncio.create_task(self._renew())
        try:
            taking = asyncio.create_task(self._take())
            await asyncio.wait((taking, renewing), return_when=asyncio.FIRST_COMPLETED)
            if renewing.done():
                taking.cancel()
                await renewing
            await taking
            await self._land()
        finally:
            renewing.cancel()
            for flight in self._flights.values():
                flight.task.cancel()

    async def _take(self) -> None:
        clock = asyncio.get_running_loop().time
        next_look = clock()
        while not self._stopping.is_set():
            if (free := self._limits.concurrency - len(self._flights)) <= 0:
                self._landed.clear()
                await self._landed.wait()
                continue
            try:
                if clock() >= next_look:
                    found = await self._queue.reclaim(self.name, free)
                    metrics.RECLAIMED.inc(len(found))
                    next_look = clock() + self._limits.beat_s
                else:
                    found = await self._queue.take(self.name, free, self._block_ms())
            except (Unavailable, Overloaded) as error:
                log.warning("the job queue does not answer", error=error.message)
                await self._pause(PAUSE_S)
                continue
            for delivery in found:
                if self._stopping.is_set():
                    await self._hand_back(delivery)
                else:
                    self._start(delivery)

    def _block_ms(self) -> int:
        return min(BLOCK_MS, max(int(self._limits.beat_s * 1000), 1))

    async def _renew(self) -> None:
        pause_s = self._limits.beat_s
        while True:
            await asyncio.sleep(pause_s)
            pause_s = self._limits.beat_s
            held = [flight.delivery for flight in self._flights.values()]
            try:
                lost = await self._queue.renew(self.name, held)
            except (Unavailable, Overloaded) as error:
                log.warning("claims cannot be renewed", error=error.message)
                pause_s = min(PAUSE_S, self._limits.beat_s)
                continue
            for delivery in lost:
                flight = self._flights.get(delivery.entry_id)
                if flight is not None and flight.delivery is delivery and not flight.ending:
                    log.warning("lost the claim on a job", job_id=delivery.job.job_id)
                    metrics.LOST.inc()
                    flight.lost = True
                    flight.task.cancel()

    def _start(self, delivery: Delivery) -> None:
        flight = _Flight(delivery)
        self._flights[delivery.entry_id] = flight
        flight.task = asyncio.create_task(self._fly(flight), name=delivery.job.job_id)
        metrics.IN_FLIGHT.set(len(self._flights))

    async def _fly(self, flight: _Flight) -> None:
        """Play one job and end it, hand it back, or lose it."""
        try:
            await self._bring_to_end(flight)
        except asyncio.CancelledError:
            if not flight.lost and not flight.ending:
                await self._hand_back(flight.delivery)
        finally:
            if self._flights.get(flight.delivery.entry_id) is flight:
                del self._flights[flight.delivery.entry_id]
            self._landed.set()
            metrics.IN_FLIGHT.set(len(self._flights))

    async def _bring_to_end(self, flight: _Flight) -> None:
        job = flight.delivery.job
        try:
            trajectory = await self._play(job)
        except EpisodeFailed as failure:
            await self._failed(flight, failure)
        except Exception as error:  # a bug: it must neither stop the worker nor lose the job
            log.exception("an episode raised", job_id=job.job_id)
            broken = EpisodeFailed(
                f"internal error: {type(error).__name__}: {error}", retryable=True, hopeless=True
            )
            broken.__cause__ = error
            await self._failed(flight, broken)
        else:
            flight.ending = True
            await self._store(flight, trajectory)

    async def _failed(self, flight: _Flight, failure: EpisodeFailed) -> None:
        job = flight.delivery.job
        known = log.bind(job_id=job.job_id, attempt=job.attempt, reason=failure.reason)
        if failure.retryable and job.attempt < self._limits.max_retries:
            known.warning("episode failed, will be played again")
            cause = failure.__cause__
            metrics.RETRIES.labels(type(cause).__name__ if cause else "WorldModelFailed").inc()
            pause_s = min(self._limits.retry_pause_s * 2.0**job.attempt, LONGEST_PAUSE_S)
            # Jitter: whatever failed for one episode has failed for many at the same moment.
            delay_s = pause_s * random.uniform(0.5, 1.0)
            flight.ending = True
            await self._persist(lambda: self._queue.retry(flight.delivery, delay_s=delay_s))
            return
        known.error("episode is lost")
        flight.ending = True
        status = ResultStatus.DEAD if failure.hopeless else ResultStatus.MASKED
        told = "".join(traceback.format_exception(failure))
        await self._finish(flight, status, reason=failure.reason, told=told)

    async def _store(self, flight: _Flight, trajectory: Trajectory) -> None:
        data = trajectory.model_dump_json().encode()
        digest = await self._persist(lambda: self._blobs.put(data))
        verdict = trajectory.judgement
        if verdict.verdict is Verdict.UNSURE:
            reason = f"the judge ({verdict.judge}) is unsure: {verdict.reason}"
            first = await self._finish(flight, ResultStatus.MASKED, digest, reason)
        else:
            first = await self._finish(
                flight, ResultStatus.ACCEPTED, digest, end=trajectory.ending.value
            )
        if first:
            metrics.count_episode(trajectory)

    async def _finish(
        self,
        flight: _Flight,
        status: ResultStatus,
        trajectory: str = "",
        reason: str = "",
        end: str = "",
        told: str = "",
    ) -> bool:
        """End the job; False when it had ended. `told` = the traceback of what went wrong."""
        job = flight.delivery.job
        result = Result(
            job_id=job.job_id,
            run_id=job.run_id,
            phase=job.phase,
            group=job.group,
            member=job.member,
            status=status,
            trajectory=trajectory,
            reason=reason,
        )
        first = await self._persist(
            lambda: self._queue.finish(flight.delivery, result, traceback=told)
        )
        metrics.EPISODES.labels((end or status.value) if first else "duplicate").inc()
        return first

    async def _persist(self, call: Callable[[], Awaitable[T]]) -> T:
        """Repeat until Redis or the blob store takes it: the work is done and must not be lost."""
        while True:
            try:
                return await call()
            except (Unavailable, Overloaded) as error:
                log.warning("cannot store an end yet", error=error.message)
                await asyncio.sleep(PAUSE_S)

    async def _pause(self, seconds: float) -> None:
        """Wait, but not into a shutdown."""
        try:
            async with asyncio.timeout(seconds):
                await self._stopping.wait()
        except TimeoutError:
            return

    async def _hand_back(self, delivery: Delivery) -> None:
        try:
            await self._queue.retry(delivery, failed=False)
        except (Unavailable, Overloaded) as error:
            # Then the claim expires and another worker takes over.
            log.warning("cannot hand a job back", error=error.message)

    async def _land(self) -> None:
        """Let episodes end within the grace period, then hand the others back."""
        tasks = [flight.task for flight in self._flights.values()]
        if not tasks:
            return
        log.info("finishing episodes", in_flight=len(tasks), grace_s=self._limits.grace_s)
        _, unfinished = await asyncio.wait(tasks, timeout=self._limits.grace_s)
        for task in unfinished:
            task.cancel()
        if unfinished:
            log.info("handing jobs back", jobs=len(unfinished))
            await asyncio.wait(unfinished)
