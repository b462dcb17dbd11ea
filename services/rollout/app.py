"""Puts the worker together: queue, blobs, clients, the health server around them."""

import asyncio
import os
import secrets
import socket
from contextlib import AsyncExitStack
from typing import Any

import structlog

from services.rollout.bounds import bounded
from services.rollout.episode import play
from services.rollout.settings import RolloutSettings
from services.rollout.worker import Limits, Worker
from wmkit.blobs import open_blobs
from wmkit.clients.policy import PolicyClient
from wmkit.clients.worldmodel import WorldModelClient
from wmkit.domain.episode import Job, Trajectory
from wmkit.domain.errors import Unavailable
from wmkit.ports import JobQueue, Policy, WorldModel
from wmkit.queue.redis import RedisJobQueue
from wmkit.rpc import context
from wmkit.rpc.server import serve

log = structlog.get_logger(__name__)


async def serve_rollout(settings: RolloutSettings) -> None:
    """Play jobs until told to stop; a worker that breaks ends the process with its error."""
    serving = asyncio.current_task()
    assert serving is not None
    worker: Worker | None = None
    working: asyncio.Task[None] | None = None

    def broke(task: asyncio.Task[None]) -> None:
        if not task.cancelled() and task.exception() is not None:
            serving.cancel()

    async with AsyncExitStack() as resources:

        async def register(server: Any) -> list[str]:
            nonlocal worker, working
            queue = await resources.enter_async_context(open_queue(settings))
            await _check(queue)
            world = await resources.enter_async_context(WorldModelClient(settings.worldmodel))
            policy = await resources.enter_async_context(PolicyClient(settings.policy))
            worker = make_worker(settings, queue, world, policy)
            working = asyncio.create_task(worker.run())
            working.add_done_callback(broke)
            log.info("taking jobs", worker=worker.name, concurrency=settings.concurrency)
            return []

        async def close() -> None:
            if worker is not None and working is not None:
                worker.stop()
                await asyncio.wait((working,))

        try:
            await serve(settings, "rollout", register, close)
        except asyncio.CancelledError:
            if working is not None and working.done():
                working.result()
            raise


def open_queue(settings: RolloutSettings) -> RedisJobQueue:
    """The job queue as the settings describe it. Raises InvalidRequest for a bad address."""
    return RedisJobQueue(
        settings.redis_url,
        reclaim_after_s=settings.reclaim_after_s,
        max_deliveries=settings.max_deliveries,
    )


def make_worker(
    settings: RolloutSettings, queue: JobQueue, world: WorldModel, policy: Policy
) -> Worker:
    """A worker that plays against these ports."""
    name = f"{socket.gethostname()}-{os.getpid()}-{secrets.token_hex(3)}"
    blobs = open_blobs(settings.blobs)
    world = bounded(world, settings.worldmodel_calls, "worldmodel")
    policy = bounded(policy, settings.policy_calls, "policy")

    async def play_job(job: Job) -> Trajectory:
        trace = context.new_trace()
        context.current.set(
            context.Call(trace)
        )  # each episode runs in a task, so in a context, of its own
        structlog.contextvars.bind_contextvars(trace=trace, job_id=job.job_id)
        return await play(
            job,
            world=world,
            policy=policy,
            blobs=blobs,
            worker=name,
            trace=trace,
            patience_s=settings.patience_s,
        )

    limits = Limits(
        concurrency=settings.concurrency,
        max_retries=settings.max_retries,
        retry_pause_s=settings.retry_pause_s,
        beat_s=settings.reclaim_after_s / 3,
        grace_s=settings.drain_grace_s,
    )
    return Worker(name, queue, blobs, play_job, limits)


async def _check(queue: RedisJobQueue) -> None:
    try:
        await queue.check()
    except Unavailable as error:
        raise Unavailable(f"{error.message}; start redis-server or set WMR1_REDIS_URL") from error
