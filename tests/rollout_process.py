"""A rollout worker as a process of its own, to be killed: real queue and blobs, fake players.

    python -m tests.rollout_process REDIS_URL BLOBS HOLD

plays like the service does. An episode that gets to the point HOLD prints `holding JOB_ID` and
stays there until SIGUSR1; with HOLD `never` it plays everything. Points: `taking` = jobs are
claimed and the worker does not know which, `playing` = in the middle of an episode, `stored` =
the trajectory is in the blob store and the job has not ended, `ended` = the job has ended and
the worker does not know it yet. A job that goes on to its end after it was held prints `first`
or `late`.
"""

import asyncio
import signal
import sys
from collections.abc import Sequence
from typing import Any

from services.rollout.app import make_worker
from services.rollout.settings import RolloutSettings
from tests.rollout_cases import FINISH, L, R, a_world, call
from wmkit.domain.episode import Result
from wmkit.domain.generation import Generation, Sampling, Tokens, Turn
from wmkit.ports import Delivery
from wmkit.queue.redis import RedisJobQueue
from wmkit.testing import FakePolicy, read

RECLAIM_AFTER_S = 1.0


woken = asyncio.Event()


async def hold(job_id: str) -> None:
    print("holding", job_id, flush=True)
    await woken.wait()


def answer(turns: Sequence[Turn], sampling: Sampling) -> str:
    """Look left, tap right, finish: a function of what is shown, so that episodes may mix."""
    looking = any(isinstance(part, Tokens) for turn in turns for part in turn.parts)
    if "1. tap" in read(turns):
        return FINISH
    return "</think>\nAction: " + R if looking else "<think>" + call(L)


class HoldingPolicy(FakePolicy):
    async def generate(self, *args: Any, **kwargs: Any) -> Generation:
        if kwargs["request_id"].split("/")[-2:] == ["0", "2"]:  # after an imagined screen
            await hold(kwargs["request_id"])
        return await super().generate(*args, **kwargs)


class HoldingQueue(RedisJobQueue):
    hold_after = False
    hold_taken = False

    async def take(self, worker: str, count: int, block_ms: int) -> Sequence[Delivery]:
        found = await super().take(worker, count, block_ms)
        if self.hold_taken and found:
            await hold(found[0].job.job_id)
        return found

    async def finish(self, delivery: Delivery, result: Result, **told: str) -> bool:
        if self.hold_taken:
            return await super().finish(delivery, result, **told)
        if self.hold_after:
            first = await super().finish(delivery, result, **told)
            await hold(delivery.job.job_id)
        else:
            await hold(delivery.job.job_id)
            first = await super().finish(delivery, result, **told)
        print("first" if first else "late", flush=True)
        return first


async def main(redis_url: str, blobs: str, where: str) -> None:
    settings = RolloutSettings(
        redis_url=redis_url, blobs=blobs, concurrency=2, reclaim_after_s=RECLAIM_AFTER_S
    )
    queue_class = HoldingQueue if where in ("taking", "stored", "ended") else RedisJobQueue
    policy_class = HoldingPolicy if where == "playing" else FakePolicy
    async with queue_class(redis_url, reclaim_after_s=RECLAIM_AFTER_S) as queue:
        HoldingQueue.hold_after = where == "ended"
        HoldingQueue.hold_taken = where == "taking"
        worker = make_worker(settings, queue, a_world(), policy_class(answer, policy_id="r1"))
        loop = asyncio.get_running_loop()
        loop.add_signal_handler(signal.SIGTERM, worker.stop)
        loop.add_signal_handler(signal.SIGUSR1, woken.set)
        print("ready", flush=True)
        await worker.run()


if __name__ == "__main__":
    asyncio.run(main(*sys.argv[1:]))
