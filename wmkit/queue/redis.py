"""The job queue on Redis Streams: one jobs stream for all runs, results and ledger per run.

Not a cache and not a lock service. Keys, below a prefix (default `wmr1`):

    <prefix>:jobs                       stream, consumer group `workers`; ended entries are deleted
    <prefix>:run:<id>:requested         set of job ids
    <prefix>:run:<id>:ledger            hash job id -> how it ended; each job gets one line
    <prefix>:run:<id>:counts            hash "<status> <phase>" -> number, kept with the two above
    <prefix>:run:<id>:results           stream of results, never trimmed

None carries a TTL. Needs Redis 7 (delivery counts in XPENDING ranges, XAUTOCLAIM that drops
deleted entries) on one node; a cluster would have to hash all keys to one slot.
"""

import json
import uuid
from collections.abc import Awaitable, Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any, Self, TypeVar, cast
from urllib.parse import urlsplit

import structlog
from pydantic import ValidationError
from redis import exceptions
from redis.asyncio import Redis
from redis.asyncio.retry import Retry
from redis.backoff import ExponentialBackoff
from redis.commands.core import AsyncScript

from wmkit.domain.episode import Job, Result, ResultStatus
from wmkit.domain.errors import InvalidRequest, Overloaded, Unavailable
from wmkit.ports import Delivery, Ledger
from wmkit.queue import BLOCK_MS_MAX, CRASH_REASON, scripts

GROUP = "workers"
T = TypeVar("T")
log = structlog.get_logger(__name__)


class RedisJobQueue:
    """`wmkit.ports.JobQueue` on Redis; one instance per process, an async context manager.

    `limit`: jobs outstanding (waiting or being played) above which `submit` raises Overloaded.
    `reclaim_after_s`: a claim that was not renewed for so long may be taken over.
    `max_deliveries`: a job handed out more often than this is dead.

    Every method raises Unavailable when Redis does not answer; calls reconnect by themselves.
    """

    def __init__(
        self,
        url: str,
        *,
        prefix: str = "wmr1",
        limit: int = 10_000,
        reclaim_after_s: float = 15.0,
        max_deliveries: int = 3,
    ) -> None:
        self.limit = limit
        self.reclaim_after_s = reclaim_after_s
        self.max_deliveries = max_deliveries
        self._jobs = f"{prefix}:jobs"
        self._prefix = prefix
        parts = urlsplit(url)  # an address in a message carries no password
        self._where = parts.path if parts.scheme == "unix" else parts.netloc.rpartition("@")[2]
        self._redis = _connect(url, timeout_s=5.0, retries=3)
        # Blocking reads have connections of their own, whose timeout outlasts the block;
        # they are not retried inside the client, since their callers loop anyway.
        self._blocking = _connect(url, timeout_s=BLOCK_MS_MAX / 1000 + 5.0, retries=1)
        self._submit = self._redis.register_script(scripts.SUBMIT)
        self._renew = self._redis.register_script(scripts.RENEW)
        self._finish = self._redis.register_script(scripts.FINISH)
        self._retry = self._redis.register_script(scripts.RETRY)
        self._reclaim = self._redis.register_script(scripts.RECLAIM)

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *exc: object) -> None:
        await self.close()

    async def close(self) -> None:
        await self._blocking.aclose()
        await self._redis.aclose()

    async def check(self) -> None:
        """Raises Unavailable when Redis does not answer."""
        await self._call(lambda: cast(Awaitable[Any], self._redis.ping()))

    async def submit(self, jobs: Sequence[Job]) -> None:
        """Raises Overloaded when the jobs do not fit now, InvalidRequest when they never will.

        All jobs of one run in the call are submitted, or none of them.
        """
        by_run: dict[str, list[Job]] = {}
        for job in jobs:
            by_run.setdefault(job.run_id, []).append(job)
        for run_id, batch in by_run.items():
            if len(batch) > self.limit:
                raise InvalidRequest(
                    f"{len(batch)} jobs at once exceed the queue's limit of {self.limit}"
                )
            keys = [self._jobs, self._key(run_id, "requested"), self._key(run_id, "counts")]
            args: list[Any] = [self.limit]
            for job in batch:
                args += [job.job_id, job.phase, job.model_dump_json()]
            fits, number = await self._run(self._submit, keys, args)
            if not fits:
                raise Overloaded(
                    f"{number} jobs are outstanding and the queue's limit is {self.limit}; "
                    f"{len(batch)} more do not fit"
                )

    async def take(self, worker: str, count: int, block_ms: int) -> Sequence[Delivery]:
        """Up to `count` new jobs; waits for the first one at most min(block_ms, 2000) ms."""
        answer = await self._call(
            lambda: self._blocking.xreadgroup(
                GROUP, worker, {self._jobs: ">"}, count=count, block=_block(block_ms)
            )
        )
        found = [(entry_id, fields["job"], 1) for entry_id, fields in _entries(answer)]
        return await self._playable(found)

    async def reclaim(self, worker: str, count: int) -> Sequence[Delivery]:
        """Jobs of workers that stopped renewing; those delivered too often end here as dead."""
        taken: list[Delivery] = []
        cursor = "0-0"
        while len(taken) < count:
            args = [GROUP, worker, int(self.reclaim_after_s * 1000), count - len(taken), cursor]
            cursor, claimed = await self._run(self._reclaim, [self._jobs], args)
            for entry_id, raw, deliveries in claimed:
                if deliveries > self.max_deliveries:
                    await self._bury(entry_id, raw, deliveries)
            taken += await self._playable([c for c in claimed if c[2] <= self.max_deliveries])
            if cursor == "0-0":
                break
        return taken

    async def renew(self, worker: str, deliveries: Sequence[Delivery]) -> Sequence[Delivery]:
        if not deliveries:
            return []
        keys, args = [self._jobs], [GROUP, worker]
        for delivery in deliveries:
            keys.append(self._key(delivery.job.run_id, "ledger"))
            args += [delivery.entry_id, str(delivery.deliveries), delivery.job.job_id]
        lost = set(await self._run(self._renew, keys, args))
        return [delivery for delivery in deliveries if delivery.entry_id in lost]

    async def finish(self, delivery: Delivery, result: Result) -> bool:
        return await self._end(delivery.entry_id, result)

    async def retry(self, delivery: Delivery, *, failed: bool = True) -> None:
        job = delivery.job.model_copy(update={"attempt": delivery.job.attempt + failed})
        args: list[Any] = [GROUP, delivery.entry_id, delivery.deliveries, job.model_dump_json()]
        await self._run(self._retry, [self._jobs], args)

    async def results(
        self, run_id: str, cursor: str, count: int, block_ms: int
    ) -> tuple[Sequence[Result], str]:
        key = self._key(run_id, "results")
        answer = await self._call(
            lambda: self._blocking.xread({key: cursor}, count=count, block=_block(block_ms))
        )
        entries = _entries(answer)
        found = [Result.model_validate_json(fields["result"]) for _, fields in entries]
        return found, entries[-1][0] if entries else cursor

    async def ledger(self, run_id: str, phase: str = "") -> Ledger:
        """Counts of one phase, or of the whole run for an empty `phase`."""
        counts = await self._call(
            lambda: cast(Awaitable[Any], self._redis.hgetall(self._key(run_id, "counts")))
        )
        totals = dict.fromkeys(("requested", *ResultStatus), 0)
        for field, number in counts.items():
            status, _, of_phase = field.partition(" ")
            if phase in ("", of_phase):
                totals[status] += int(number)
        return Ledger(**totals)

    def _key(self, run_id: str, what: str) -> str:
        return f"{self._prefix}:run:{run_id}:{what}"

    async def _playable(self, found: Sequence[tuple[str, str, int]]) -> list[Delivery]:
        """Deliveries of (entry id, job, deliveries); of ended jobs, the entry is taken away."""
        deliveries = [
            Delivery(entry_id, job, count)
            for entry_id, raw, count in found
            if (job := _read(entry_id, raw)) is not None
        ]
        if not deliveries:
            return []
        asked = self._redis.pipeline(transaction=False)
        for delivery in deliveries:
            asked.hexists(self._key(delivery.job.run_id, "ledger"), delivery.job.job_id)
        ended = await self._call(asked.execute)
        for delivery, has_ended in zip(deliveries, ended, strict=True):
            if has_ended:
                await self._discard(delivery.entry_id)
        return [d for d, has_ended in zip(deliveries, ended, strict=True) if not has_ended]

    async def _discard(self, entry_id: str) -> None:
        both = self._redis.pipeline(transaction=True)
        both.xack(self._jobs, GROUP, entry_id)
        both.xdel(self._jobs, entry_id)
        await self._call(both.execute)

    async def _end(self, entry_id: str, result: Result) -> bool:
        keys = [
            self._jobs,
            *(self._key(result.run_id, k) for k in ("requested", "ledger", "results", "counts")),
        ]
        nonce = uuid.uuid4().hex
        args = [GROUP, entry_id, result.job_id, result.status, nonce, result.phase]
        args.append(result.model_dump_json())
        return bool(await self._run(self._finish, keys, args))

    async def _bury(self, entry_id: str, raw: str, deliveries: int) -> None:
        """End a job that keeps losing its workers; read loosely, so that no version is stuck."""
        reason = CRASH_REASON.format(deliveries=deliveries - 1)
        try:
            job = json.loads(raw)
            named = {key: job[key] for key in ("job_id", "run_id", "phase", "group", "member")}
            result = Result(**named, status=ResultStatus.DEAD, reason=reason)
        except (ValueError, TypeError, KeyError):
            log.error("dropped an entry that is no job", entry_id=entry_id, entry=raw[:200])
            await self._discard(entry_id)
            return
        log.warning("job is dead", job_id=result.job_id, reason=reason)
        await self._end(entry_id, result)

    async def _run(self, script: AsyncScript, keys: list[str], args: list[Any]) -> Any:
        return await self._call(lambda: script(keys=keys, args=args))

    async def _call(self, command: Callable[[], Awaitable[T]]) -> T:
        """Run a command with typed errors; the consumer group is created where it is missing."""
        with _typed(self._where):
            try:
                return await command()
            except exceptions.ResponseError as error:
                if not str(error).startswith("NOGROUP"):
                    raise
            try:
                await self._redis.xgroup_create(self._jobs, GROUP, id="0", mkstream=True)
            except exceptions.ResponseError as error:
                if not str(error).startswith("BUSYGROUP"):
                    raise
            return await command()


def _connect(url: str, *, timeout_s: float, retries: int) -> Redis:
    try:
        client: Redis = Redis.from_url(
            url,
            decode_responses=True,
            socket_timeout=timeout_s,
            socket_connect_timeout=2.0,
            health_check_interval=0,
            retry=Retry(ExponentialBackoff(cap=1.0, base=0.05), retries),
        )
    except ValueError as error:
        raise InvalidRequest(f"{url!r} is no Redis address: {error}", field="redis_url") from None
    return client


@contextmanager
def _typed(where: str) -> Iterator[None]:
    try:
        yield
    except exceptions.OutOfMemoryError as error:
        raise Overloaded(f"Redis is out of memory: {error}", retry_after_s=5.0) from error
    except (
        exceptions.ConnectionError,
        exceptions.TimeoutError,
        exceptions.ReadOnlyError,
        OSError,
    ) as error:
        cause = str(error).rstrip(".")
        raise Unavailable(f"Redis at {where} does not answer ({cause})") from error


def _block(block_ms: int) -> int | None:
    """None does not wait at all; Redis reads 0 as forever."""
    return min(block_ms, BLOCK_MS_MAX) if block_ms > 0 else None


def _entries(answer: Any) -> list[tuple[str, dict[str, str]]]:
    """Entries of the one stream that was read, whichever protocol version shaped the answer."""
    if not answer:
        return []
    if isinstance(answer, dict):
        (batches,) = answer.values()
        return [entry for batch in batches for entry in batch]
    ((_, entries),) = answer
    return cast(list[tuple[str, dict[str, str]]], entries)


def _read(entry_id: str, raw: str) -> Job | None:
    """None for a job that this version cannot read: its claim expires and another worker may."""
    try:
        return Job.model_validate_json(raw)
    except ValidationError as error:
        log.error("cannot read a job", entry_id=entry_id, error=str(error))
        return None
