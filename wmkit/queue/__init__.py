"""Job queues: at-least-once delivery with exactly-once effect.

`redis.RedisJobQueue` is the real one, `memory.MemoryJobQueue` its twin for tests and single
processes. Both implement `wmkit.ports.JobQueue` and pass the same contract tests. This
module imports neither: who only wants the twin needs no Redis client.
"""

BLOCK_MS_MAX = 2000
"""No call blocks longer than this: a longer one outlives the Redis client's socket timeout."""

CRASH_REASON = (
    "handed out {deliveries} times and never ended: every worker that took it died, stalled or "
    "could not read it"
)
"""Why a job is dead that was delivered more often than a queue's `max_deliveries`."""
