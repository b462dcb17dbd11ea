"""The job queue in memory: the twin of `wmkit.queue.redis` for tests and single processes.

Same contract, same errors, one event loop, nothing survives the process. Time comes from
`clock` (seconds), so that a test can let a claim expire without waiting.
"""

import asyncio
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from wmkit.domain.episode import PRIORITIES, DeadLetter, Job, Result, ResultStatus
from wmkit.domain.errors import InvalidRequest, Overloaded
from wmkit.ports import Delivery, Ledger
from wmkit.queue import BLOCK_MS_MAX, CRASH_REASON, is_letter


@dataclass
class _Claim:
    worker: str
    since: float
    deliveries: int


class MemoryJobQueue:
    """`wmkit.ports.JobQueue` in memory; parameters as in `RedisJobQueue`."""

    def __init__(
        self,
        *,
        limit: int = 10_000,
        reclaim_after_s: float = 15.0,
        max_deliveries: int = 3,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self.limit = limit
        self.reclaim_after_s = reclaim_after_s
        self.max_deliveries = max_deliveries
        self._clock = clock
        self._entries: dict[str, Job] = {}  # outstanding, oldest first
        self._claims: dict[str, _Claim] = {}  # of those that were handed out
        self._requested: dict[tuple[str, str], str] = {}  # (run, job) -> phase
        self._ended: dict[tuple[str, str], ResultStatus] = {}
        self._results: dict[str, list[Result]] = {}
        self._later: list[tuple[float, Job]] = []  # jobs that pause, with the time of their turn
        self._lost: dict[tuple[str, str], float] = {}  # since when, for jobs that have not ended
        self.letters: list[DeadLetter] = []
        self._next = 0
        self._changed = asyncio.Condition()

    async def submit(self, jobs: Sequence[Job]) -> None:
        by_run: dict[str, dict[str, Job]] = {}
        for job in jobs:
            by_run.setdefault(job.run_id, {}).setdefault(job.job_id, job)
        for run_id, batch in by_run.items():
            if len(batch) > self.limit:
                raise InvalidRequest(
                    f"{len(batch)} jobs at once exceed the queue's limit of {self.limit}"
                )
            fresh = [
                job for job_id, job in batch.items() if (run_id, job_id) not in self._requested
            ]
            outstanding = len(self._entries) + len(self._later)
            if outstanding + len(fresh) > self.limit:
                raise Overloaded(
                    f"{outstanding} jobs are outstanding and the queue's limit is "
                    f"{self.limit}; {len(batch)} more do not fit"
                )
            for job in fresh:
                self._requested[run_id, job.job_id] = job.phase
                self._add(job)
        await self._notify()

    async def take(self, worker: str, count: int, block_ms: int) -> Sequence[Delivery]:
        def waiting() -> list[str]:
            self._drop_ended()
            free = [entry for entry in self._entries if entry not in self._claims]
            return sorted(free, key=lambda e: PRIORITIES.index(self._entries[e].priority))[:count]

        await self._wait(lambda: bool(waiting()), block_ms)
        return [self._claim(entry, worker, 1) for entry in waiting()]

    async def reclaim(self, worker: str, count: int) -> Sequence[Delivery]:
        self._drop_ended()
        taken: list[Delivery] = []
        deadline = self._clock() - self.reclaim_after_s
        for entry, claim in list(self._claims.items()):
            if len(taken) == count:
                break
            if claim.since > deadline:
                continue
            delivery = self._claim(entry, worker, claim.deliveries + 1)
            if delivery.deliveries > self.max_deliveries:
                job = delivery.job
                reason = CRASH_REASON.format(deliveries=claim.deliveries)
                named = job.model_dump(include={"job_id", "run_id", "phase", "group", "member"})
                await self.finish(
                    delivery, Result(**named, status=ResultStatus.DEAD, reason=reason)
                )
            else:
                taken.append(delivery)
                self._lost.setdefault((delivery.job.run_id, delivery.job.job_id), self._clock())
        return taken

    async def renew(self, worker: str, deliveries: Sequence[Delivery]) -> Sequence[Delivery]:
        self._drop_ended()
        lost = []
        for delivery in deliveries:
            claim = self._claims.get(delivery.entry_id)
            if claim and (claim.worker, claim.deliveries) == (worker, delivery.deliveries):
                claim.since = self._clock()
            else:
                lost.append(delivery)
        return lost

    async def finish(self, delivery: Delivery, result: Result, *, traceback: str = "") -> bool:
        key = (result.run_id, result.job_id)
        first = key in self._requested and key not in self._ended
        if first:
            self._ended[key] = result.status
            self._results.setdefault(result.run_id, []).append(result)
            self._lost.pop(key, None)
            if is_letter(delivery, result):
                letter = DeadLetter(
                    job=delivery.job,
                    status=result.status,
                    reason=result.reason,
                    traceback=traceback,
                )
                self.letters.append(letter)
        self._remove(delivery.entry_id)
        await self._notify()
        return first

    async def retry(self, delivery: Delivery, *, failed: bool = True, delay_s: float = 0.0) -> None:
        claim = self._claims.get(delivery.entry_id)
        if claim is None or claim.deliveries != delivery.deliveries:
            return
        self._remove(delivery.entry_id)
        job = delivery.job.model_copy(update={"attempt": delivery.job.attempt + failed})
        if delay_s > 0:
            self._later.append((self._clock() + delay_s, job))
        else:
            self._add(job)
        if failed:
            self._lost.setdefault((job.run_id, job.job_id), self._clock())
        await self._notify()

    async def lost(self, run_id: str) -> Mapping[str, float]:
        now = self._clock()
        return {job_id: now - since for (run, job_id), since in self._lost.items() if run == run_id}

    async def results(
        self, run_id: str, cursor: str, count: int, block_ms: int
    ) -> tuple[Sequence[Result], str]:
        start = int(cursor)
        await self._wait(lambda: len(self._results.get(run_id, [])) > start, block_ms)
        found = self._results.get(run_id, [])[start : start + count]
        return found, str(start + len(found))

    async def ledger(self, run_id: str, phase: str = "") -> Ledger:
        jobs = {
            key for key, of in self._requested.items() if key[0] == run_id and phase in ("", of)
        }
        ends = [status for key, status in self._ended.items() if key in jobs]
        return Ledger(
            requested=len(jobs), **{status: ends.count(status) for status in ResultStatus}
        )

    def _add(self, job: Job) -> None:
        self._next += 1
        self._entries[str(self._next)] = job

    def _remove(self, entry_id: str) -> None:
        self._entries.pop(entry_id, None)
        self._claims.pop(entry_id, None)

    def _drop_ended(self) -> None:
        """Forget entries of ended jobs; jobs whose pause is over come back first."""
        now = self._clock()
        for job in [job for due, job in self._later if due <= now]:
            self._add(job)
        self._later = [(due, job) for due, job in self._later if due > now]
        for entry, job in list(self._entries.items()):
            if (job.run_id, job.job_id) in self._ended:
                self._remove(entry)

    def _claim(self, entry_id: str, worker: str, deliveries: int) -> Delivery:
        self._claims[entry_id] = _Claim(worker, self._clock(), deliveries)
        return Delivery(entry_id, self._entries[entry_id], deliveries)

    async def _notify(self) -> None:
        async with self._changed:
            self._changed.notify_all()

    async def _wait(self, ready: Callable[[], bool], block_ms: int) -> None:
        if ready() or block_ms <= 0:
            return
        async with self._changed:
            try:
                async with asyncio.timeout(min(block_ms, BLOCK_MS_MAX) / 1000):
                    await self._changed.wait_for(ready)
            except TimeoutError:
                return
