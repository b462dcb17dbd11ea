"""Looking after a job queue on Redis: what is in it, what died, ending what is left.

For people and their tools. Workers and trainers need none of it, and the ledger stays
balanced whatever is done here.
"""

from collections.abc import AsyncIterator, Iterable
from dataclasses import asdict, dataclass, field
from typing import Any, cast

from pydantic import ValidationError

from wmkit.domain.episode import PRIORITIES, DeadLetter, Job, Result, ResultStatus
from wmkit.domain.errors import NotFound
from wmkit.ports import Delivery, Ledger
from wmkit.queue.redis import GROUP, RedisJobQueue

PAGE = 500
NOBODY = "0-0"
"""Never the id of a stream entry: there is none of ours to acknowledge."""
AGAIN = "~again"
"""Ends the run id under which a dead letter is played again: its own run's books are closed."""


@dataclass(frozen=True, slots=True)
class StreamStats:
    """`waiting` = not handed out yet, `held` = with a worker, of which the one not renewed for
    longest was renewed `oldest_held_s` ago."""

    priority: str
    waiting: int = 0
    held: int = 0
    oldest_held_s: float = 0.0
    workers: dict[str, int] = field(default_factory=dict)
    """Jobs in the hands of each worker that has any."""


@dataclass(frozen=True, slots=True)
class QueueStats:
    streams: tuple[StreamStats, ...]
    pausing: int
    """Jobs between two attempts."""
    letters: int
    runs: dict[str, Ledger]

    def as_dict(self) -> dict[str, Any]:
        return asdict(self)


class QueueAdmin(RedisJobQueue):
    """A `RedisJobQueue` with the commands of whoever looks after it. Raises Unavailable."""

    async def stats(self) -> QueueStats:
        streams = [
            await self._stream_stats(priority, stream)
            for priority, stream in zip(PRIORITIES, self._streams, strict=True)
        ]
        redis = self._redis
        pausing = await self._call(lambda: cast(Any, redis.zcard(self._later)))
        letters = await self._call(lambda: cast(Any, redis.xlen(self._dead)))
        runs = await self._call(lambda: cast(Any, redis.smembers(self._runs)))
        ledgers = {run_id: await self.ledger(run_id) for run_id in sorted(runs)}
        return QueueStats(tuple(streams), pausing, letters, ledgers)

    async def letters(self, run_id: str = "") -> list[tuple[str, DeadLetter]]:
        """Dead letters with their ids, the oldest first; those of one run where one is named."""
        found = []
        async for letter_id, fields in self._entries(self._dead):
            try:
                letter = DeadLetter.model_validate_json(fields["letter"])
            except ValidationError:
                continue  # of another version; it stays where it is
            if run_id in ("", letter.job.run_id):
                found.append((letter_id, letter))
        return found

    async def play_again(self, letter_ids: Iterable[str]) -> list[Job]:
        """Submit the jobs of letters anew and take the letters away.

        They are played for the run `<run id>~again`, which has a ledger and results of its own.
        Raises NotFound for an unknown letter, Overloaded; what went through before stays so.
        """
        known = dict(await self.letters())
        jobs = []
        for letter_id in letter_ids:
            if letter_id not in known:
                raise NotFound(f"there is no dead letter {letter_id}", letter_id)
            job = known[letter_id].job
            run_id = job.run_id.removesuffix(AGAIN) + AGAIN
            again = {"run_id": run_id, "job_id": f"{job.job_id}~{letter_id}", "attempt": 0}
            jobs.append(job.model_copy(update=again))
            await self.submit([jobs[-1]])
            await self._forget(letter_id)
        return jobs

    async def drain(self, reason: str, run_id: str = "") -> int:
        """End all outstanding jobs (of one run, where one is named) as dead; how many there were.

        Workers find out when they meet or renew such a job. No letters are written.
        """
        ended = 0
        for job in await self._outstanding():
            if run_id in ("", job.run_id):
                ended += await self.finish(Delivery(NOBODY, job, 0), _dead(job, reason))
        # Handing out takes away the entries of ended jobs; what came meanwhile is ended too.
        # With jobs of other runs among them, workers will do the same.
        while not run_id and (taken := await self.take("drain", PAGE, 0)):
            for delivery in taken:
                result = _dead(delivery.job, reason)
                ended += await self.finish(Delivery(delivery.entry_id, delivery.job, 0), result)
        return ended

    async def _outstanding(self) -> list[Job]:
        raw = []
        for stream in self._streams:
            raw += [fields["job"] async for _, fields in self._entries(stream)]
        pausing = await self._call(lambda: cast(Any, self._redis.zrange(self._later, 0, -1)))
        raw += [member.partition(" ")[2] for member in pausing]
        jobs = []
        for text in raw:
            try:
                jobs.append(Job.model_validate_json(text))
            except ValidationError:
                continue  # workers deal with what no version can read
        return jobs

    async def _forget(self, letter_id: str) -> None:
        await self._call(lambda: self._redis.xdel(self._dead, letter_id))

    async def _page(self, stream: str, start: str) -> list[Any]:
        return cast(
            list[Any],
            await self._call(lambda: self._redis.xrange(stream, start, "+", PAGE)),
        )

    async def _entries(self, stream: str) -> AsyncIterator[tuple[str, dict[str, str]]]:
        start = "-"
        while True:
            page = await self._page(stream, start)
            for entry in page:
                yield entry
            if len(page) < PAGE:
                return
            start = f"({page[-1][0]}"

    async def _stream_stats(self, priority: str, stream: str) -> StreamStats:
        if not await self._call(lambda: cast(Any, self._redis.exists(stream))):
            return StreamStats(priority)
        groups: Any = await self._call(lambda: cast(Any, self._redis.xinfo_groups(stream)))
        if not groups:
            return StreamStats(priority, await self._call(lambda: self._redis.xlen(stream)))
        group = groups[0]
        consumers: Any = await self._call(
            lambda: cast(Any, self._redis.xinfo_consumers(stream, GROUP))
        )
        held: Any = await self._call(
            lambda: cast(Any, self._redis.xpending_range(stream, GROUP, "-", "+", 10_000))
        )
        return StreamStats(
            priority,
            waiting=group["lag"] or 0,
            held=group["pending"],
            oldest_held_s=max((x["time_since_delivered"] for x in held), default=0) / 1000,
            workers={c["name"]: c["pending"] for c in consumers if c["pending"]},
        )


def _dead(job: Job, reason: str) -> Result:
    named = job.model_dump(include={"job_id", "run_id", "phase", "group", "member"})
    return Result(**named, status=ResultStatus.DEAD, reason=reason)
