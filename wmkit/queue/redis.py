"""The job queue on Redis Streams: jobs of all runs by priority, results and ledger per run.

Not a cache and not a lock service. Looking after it is `wmkit.queue.admin`. Keys, below a
prefix (default `wmr1`):

    <prefix>:jobs                       stream, consumer group `workers`; ended entries are deleted
    <prefix>:jobs:high, :jobs:low       the same for the other priorities
    <prefix>:later                      jobs that pause before their next attempt, by time
    <prefix>:dead                       stream of dead letters; the newest 10,000 or so are kept
    <prefix>:runs                       set of run ids
    <prefix>:run:<id>:requested         set of job ids
    <prefix>:run:<id>:lost              hash job id -> time when an attempt was lost first
    <prefix>:run:<id>:ledger            hash job id -> how it ended; each job gets one line
    <prefix>:run:<id>:counts            hash "<status> <phase>" -> number, kept with the two above
    <prefix>:run:<id>:results           stream of results, never trimmed

None carries a TTL. Needs Redis 7 (delivery counts in XPENDING ranges, XAUTOCLAIM that drops
deleted entries) on one node; a cluster would have to hash all keys to one slot.
"""

import json
import uuid
from collections.abc import Awaitable, Callable, Iterator, Mapping, Sequence
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

from wmkit.domain.episode import PRIORITIES, DeadLetter, Job, Priority, Result, ResultStatus
from wmkit.domain.errors import InvalidRequest, Overloaded, Unavailable
from wmkit.ports import Delivery, Ledger
from wmkit.queue import BLOCK_MS_MAX, CRASH_REASON, is_letter, scripts

GROUP = "workers"
LETTERS_KEPT = 10_000
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
        self._prefix = prefix
        self._streams = [self._stream(priority) for priority in PRIORITIES]
        self._later = f"{prefix}:later"
        self._dead = f"{prefix}:dead"
        self._runs = f"{prefix}:runs"
        parts = urlsplit(url)  # an address in a message carries no password
        self._where = parts.path if parts.scheme == "unix" else parts.netloc.rpartition("@")[2]
        self._redis = _connect(url, timeout_s=5.0, retries=3)
        # Blocking reads have connections of their own, whose timeout outlasts the block;
        # they are not retried inside the client, since their callers loop anyway.
        self._blocking = _connect(url, timeout_s=BLOCK_MS_MAX / 1000 + 5.0, retries=1)
        self._submit = self._redis.register_script(scripts.SUBMIT)
        self._take = self._redis.register_script(scripts.TAKE)
        self._renew = self._redis.register_script(scripts.RENEW)
        self._finish = self._redis.register_script(scripts.FINISH)
        self._retry = self._redis.register_script(scripts.RETRY)
        self._reclaim = self._redis.register_script(scripts.RECLAIM)
        self._lose = self._redis.register_script(scripts.LOSE)

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
            keys = [self._key(run_id, "requested"), self._key(run_id, "counts"), self._runs]
            args: list[Any] = [run_id, self.limit]
            for job in batch:
                args += [job.job_id, job.phase, _rank(job), job.model_dump_json()]
            keys += [self._later, *self._streams]
            fits, number = await self._run(self._submit, keys, args)
            if not fits:
                raise Overloaded(
                    f"{number} jobs are outstanding and the queue's limit is {self.limit}; "
                    f"{len(batch)} more do not fit"
                )

    async def take(self, worker: str, count: int, block_ms: int) -> Sequence[Delivery]:
        """Up to `count` new jobs; waits for the first one at most min(block_ms, 2000) ms."""
        keys = [self._later, *self._streams]
        taken = await self._run(self._take, keys, [GROUP, worker, count])
        found = [(self._streams[rank - 1], entry_id, raw, 1) for rank, entry_id, raw in taken]
        if not found and block_ms > 0:
            found = await self._wait(worker, block_ms)
        deliveries = await self._playable(found)
        for extra in deliveries[count:]:
            await self.retry(extra, failed=False)
        return deliveries[:count]

    async def _wait(self, worker: str, block_ms: int) -> list[tuple[str, str, str, int]]:
        """The first job that comes; one of each priority when they come at the same moment."""
        answer = await self._call(
            lambda: self._blocking.xreadgroup(
                GROUP, worker, dict.fromkeys(self._streams, ">"), count=1, block=_block(block_ms)
            )
        )
        return [
            (stream, entry_id, fields["job"], 1)
            for stream, entries in _by_stream(answer)
            for entry_id, fields in entries
        ]

    async def reclaim(self, worker: str, count: int) -> Sequence[Delivery]:
        """Jobs of workers that stopped renewing; those delivered too often end here as dead."""
        taken: list[Delivery] = []
        for stream in self._streams:
            cursor = "0-0"
            while len(taken) < count:
                min_idle_ms = int(self.reclaim_after_s * 1000)
                args = [GROUP, worker, min_idle_ms, count - len(taken), cursor]
                cursor, claimed = await self._run(self._reclaim, [stream], args)
                alive = []
                for entry_id, raw, deliveries in claimed:
                    if deliveries > self.max_deliveries:
                        await self._bury(stream, entry_id, raw, deliveries)
                    else:
                        alive.append((stream, entry_id, raw, deliveries))
                taken += await self._playable(alive)
                if cursor == "0-0":
                    break
        by_run: dict[str, list[str]] = {}
        for delivery in taken:
            by_run.setdefault(delivery.job.run_id, []).append(delivery.job.job_id)
        for run_id, job_ids in by_run.items():
            await self._run(self._lose, [self._key(run_id, "lost")], job_ids)
        return taken

    async def renew(self, worker: str, deliveries: Sequence[Delivery]) -> Sequence[Delivery]:
        if not deliveries:
            return []
        keys, args = [], [GROUP, worker]
        for delivery in deliveries:
            job = delivery.job
            keys += [self._stream(job.priority), self._key(job.run_id, "ledger")]
            args += [delivery.entry_id, str(delivery.deliveries), job.job_id]
        lost = set(await self._run(self._renew, keys, args))
        return [delivery for delivery in deliveries if delivery.entry_id in lost]

    async def finish(self, delivery: Delivery, result: Result, *, traceback: str = "") -> bool:
        letter = ""
        if is_letter(delivery, result):
            letter = DeadLetter(
                job=delivery.job, status=result.status, reason=result.reason, traceback=traceback
            ).model_dump_json()
        stream = self._stream(delivery.job.priority)
        return await self._end(stream, delivery.entry_id, result, letter)

    async def retry(self, delivery: Delivery, *, failed: bool = True, delay_s: float = 0.0) -> None:
        job = delivery.job.model_copy(update={"attempt": delivery.job.attempt + failed})
        keys = [self._stream(job.priority), self._later, self._key(job.run_id, "lost")]
        args: list[Any] = [GROUP, delivery.entry_id, delivery.deliveries, job.job_id, _rank(job)]
        args += [job.model_dump_json(), int(delay_s * 1000), int(failed)]
        await self._run(self._retry, keys, args)

    async def lost(self, run_id: str) -> Mapping[str, float]:
        key = self._key(run_id, "lost")
        since = await self._call(lambda: cast(Awaitable[Any], self._redis.hgetall(key)))
        if not since:
            return {}
        seconds, micros = await self._call(lambda: cast(Awaitable[Any], self._redis.time()))
        now = seconds + micros / 1e6
        return {job_id: max(now - int(then) / 1000, 0.0) for job_id, then in since.items()}

    async def results(
        self, run_id: str, cursor: str, count: int, block_ms: int
    ) -> tuple[Sequence[Result], str]:
        key = self._key(run_id, "results")
        answer = await self._call(
            lambda: self._blocking.xread({key: cursor}, count=count, block=_block(block_ms))
        )
        entries = [entry for _, found in _by_stream(answer) for entry in found]
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

    def _stream(self, priority: Priority) -> str:
        jobs = f"{self._prefix}:jobs"
        return jobs if priority == "normal" else f"{jobs}:{priority}"

    async def _playable(self, found: Sequence[tuple[str, str, str, int]]) -> list[Delivery]:
        """Deliveries of (stream, entry id, job, deliveries); an ended job's entry is taken away."""
        readable = [
            (stream, Delivery(entry_id, job, count))
            for stream, entry_id, raw, count in found
            if (job := _read(entry_id, raw)) is not None
        ]
        if not readable:
            return []
        asked = self._redis.pipeline(transaction=False)
        for _, delivery in readable:
            asked.hexists(self._key(delivery.job.run_id, "ledger"), delivery.job.job_id)
        ended = await self._call(asked.execute)
        deliveries = []
        for (stream, delivery), has_ended in zip(readable, ended, strict=True):
            if has_ended:
                await self._discard(stream, delivery.entry_id)
            else:
                deliveries.append(delivery)
        return deliveries

    async def _discard(self, stream: str, entry_id: str) -> None:
        both = self._redis.pipeline(transaction=True)
        both.xack(stream, GROUP, entry_id)
        both.xdel(stream, entry_id)
        await self._call(both.execute)

    async def _end(self, stream: str, entry_id: str, result: Result, letter: str) -> bool:
        of_run = ("requested", "ledger", "results", "counts", "lost")
        keys = [stream, *(self._key(result.run_id, key) for key in of_run), self._dead]
        nonce = uuid.uuid4().hex
        args: list[Any] = [GROUP, entry_id, result.job_id, result.status, nonce, result.phase]
        args += [result.model_dump_json(), letter, LETTERS_KEPT]
        return bool(await self._run(self._finish, keys, args))

    async def _bury(self, stream: str, entry_id: str, raw: str, deliveries: int) -> None:
        """End a job that keeps losing its workers; read loosely, so that no version is stuck."""
        reason = CRASH_REASON.format(deliveries=deliveries - 1)
        try:
            job = json.loads(raw)
            named = {key: job[key] for key in ("job_id", "run_id", "phase", "group", "member")}
            result = Result(**named, status=ResultStatus.DEAD, reason=reason)
        except (ValueError, TypeError, KeyError):
            log.error("dropped an entry that is no job", entry_id=entry_id, entry=raw[:200])
            await self._discard(stream, entry_id)
            return
        log.warning("job is dead", job_id=result.job_id, reason=reason)
        letter = json.dumps({"job": job, "status": result.status, "reason": reason})
        await self._end(stream, entry_id, result, letter)

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
            for stream in self._streams:
                try:
                    await self._redis.xgroup_create(stream, GROUP, id="0", mkstream=True)
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


def _rank(job: Job) -> int:
    """Place of the job's stream among the streams, from 1 as Lua counts."""
    return PRIORITIES.index(job.priority) + 1


def _by_stream(answer: Any) -> list[tuple[str, list[tuple[str, dict[str, str]]]]]:
    """Entries by stream, whichever protocol version shaped the answer."""
    if not answer:
        return []
    if isinstance(answer, dict):
        return [(stream, [e for batch in found for e in batch]) for stream, found in answer.items()]
    return [(stream, entries) for stream, entries in answer]


def _read(entry_id: str, raw: str) -> Job | None:
    """None for a job that this version cannot read: its claim expires and another worker may."""
    try:
        return Job.model_validate_json(raw)
    except ValidationError as error:
        log.error("cannot read a job", entry_id=entry_id, error=str(error))
        return None
