"""Job queues: at-least-once delivery with exactly-once effect.

`redis.RedisJobQueue` is the real one, `memory.MemoryJobQueue` its twin for tests and single
processes. Both implement `wmkit.ports.JobQueue` and pass the same contract tests. This
module imports neither: who only wants the twin needs no Redis client.
"""

from wmkit.domain.episode import Result, ResultStatus
from wmkit.ports import Delivery

BLOCK_MS_MAX = 2000
"""No call blocks longer than this: a longer one outlives the Redis client's socket timeout."""

CRASH_REASON = (
    "handed out {deliveries} times and never ended: every worker that took it died, stalled or "
    "could not read it"
)
"""Why a job is dead that was delivered more often than a queue's `max_deliveries`."""


def is_letter(delivery: Delivery, result: Result) -> bool:
    """Whether the end of a job is one that people should look at; see `JobQueue.finish`."""
    ended_well = result.status is ResultStatus.ACCEPTED or bool(result.trajectory)
    return delivery.deliveries > 0 and not ended_well
