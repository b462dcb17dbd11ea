"""What a cancelled run, a deadline and a drain leave behind: nothing, in any service.

World model and policy are fakes behind the real servicers and real gRPC; their slots are
counted where the calls are answered. Nothing here waits for time to pass: each step waits
for the event that shows it.
"""

import asyncio
from collections.abc import AsyncIterator, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path
from typing import Any, cast

import pytest
from prometheus_client import REGISTRY
from wmr1.policy.v1 import policy_pb2_grpc
from wmr1.worldmodel.v1 import worldmodel_pb2_grpc

from services.policy.memo import Memo
from services.policy.servicer import PolicyServicer
from services.rollout.app import make_worker
from services.rollout.settings import RolloutSettings
from services.rollout.worker import Worker
from services.worldmodel.servicer import WorldModelServicer
from tests.redis_server import RedisServer
from tests.rollout_cases import R, a_job, a_world, acts
from wmkit.clients.policy import PolicyClient
from wmkit.clients.worldmodel import WorldModelClient
from wmkit.domain.episode import Job, Result, ResultStatus
from wmkit.domain.generation import Generation
from wmkit.domain.transition import Transition
from wmkit.ports import Delivery
from wmkit.queue.redis import RedisJobQueue
from wmkit.rpc.server import running
from wmkit.settings import ServiceSettings
from wmkit.testing import FakePolicy, FakeWorldModel

SLOTS = 6


class Slots:
    """Calls that are being answered; they hang while `held`."""

    def __init__(self) -> None:
        self.held = True
        self.busy = 0
        self._changed = asyncio.Condition()

    @asynccontextmanager
    async def one(self) -> AsyncIterator[None]:
        await self._count(1)
        try:
            if self.held:
                await asyncio.Event().wait()
            yield
        finally:
            # Shielded: the counting must not fall victim to the cancellation that it counts.
            await asyncio.shield(asyncio.create_task(self._count(-1)))

    async def _count(self, by: int) -> None:
        async with self._changed:
            self.busy += by
            self._changed.notify_all()

    async def until(self, busy: int) -> None:
        async with asyncio.timeout(120), self._changed:
            await self._changed.wait_for(lambda: self.busy == busy)


class Policy(FakePolicy):
    slots: Slots

    async def generate(self, *args: Any, images: object = None, **kwargs: Any) -> Generation:
        async with self.slots.one():
            return await super().generate(*args, **kwargs)


class World(FakeWorldModel):
    slots: Slots

    async def step(self, *args: Any, **kwargs: Any) -> Transition:
        async with self.slots.one():
            return await super().step(*args, **kwargs)


class Place:
    """A worker of `SLOTS` episodes, its queue, and the slots of the two services."""

    queue: RedisJobQueue
    worker: Worker
    running: "asyncio.Task[None]"

    def __init__(self) -> None:
        self.policy, self.world = Slots(), Slots()

    async def submit(self, run_id: str, **changes: Any) -> list[Job]:
        jobs = [
            a_job(job_id=f"{run_id}/{n}", run_id=run_id, member=n, **changes) for n in range(SLOTS)
        ]
        await self.queue.submit(jobs)
        return jobs

    async def cancel(self, jobs: Sequence[Job]) -> None:
        """As a trainer does it: the jobs end, whoever holds them."""
        for job in jobs:
            named = job.model_dump(include={"job_id", "run_id", "phase", "group", "member"})
            end = Result(**named, status=ResultStatus.DEAD, reason="the run was cancelled")
            await self.queue.finish(Delivery("0-0", job, 0), end)

    async def ended(self, run_id: str) -> list[Result]:
        found: list[Result] = []
        cursor = "0"
        async with asyncio.timeout(120):
            while len(found) < SLOTS:
                results, cursor = await self.queue.results(run_id, cursor, 100, 1000)
                found += results
        return found


@asynccontextmanager
async def place(folder: Path) -> AsyncIterator[Place]:
    here, server = Place(), RedisServer(folder).start()
    policy = Policy(lambda *_: acts(R), policy_id="r1", image_px=(56, 56))
    world = World(a_world()._transition, goal="startR", screen=a_world()._screen)
    policy.slots, world.slots = here.policy, here.world

    def register(server: Any) -> list[str]:
        worldmodel_pb2_grpc.add_WorldModelServiceServicer_to_server(
            WorldModelServicer(cast(Any, world), 8), server
        )
        policy_pb2_grpc.add_PolicyServiceServicer_to_server(
            PolicyServicer(cast(Any, policy), Memo()), server
        )
        return []

    async with AsyncExitStack() as stack:
        stack.callback(server.kill)
        quick = ServiceSettings(drain_pause_s=0.0, drain_grace_s=0.0)
        peers = await stack.enter_async_context(running(quick, "peers", register))
        here.queue = await stack.enter_async_context(RedisJobQueue(server.url))
        own = await stack.enter_async_context(RedisJobQueue(server.url, reclaim_after_s=0.6))
        settings = RolloutSettings(
            redis_url=server.url,
            blobs=str(folder / "blobs"),
            concurrency=SLOTS,
            reclaim_after_s=0.6,
            drain_grace_s=0.0,
            max_retries=0,
        )
        here.worker = make_worker(
            settings,
            own,
            await stack.enter_async_context(WorldModelClient(peers.address)),
            await stack.enter_async_context(PolicyClient(peers.address)),
        )
        here.running = asyncio.create_task(here.worker.run())
        yield here
        here.worker.stop()
        await here.running


def calls_out() -> float:
    return sum(
        REGISTRY.get_sample_value("wmr1_rollout_calls_out", {"service": name}) or 0.0
        for name in ("policy", "worldmodel")
    )


@pytest.mark.parametrize("where", ["policy", "world"])
async def test_a_cancelled_run_frees_every_slot_in_every_service(
    tmp_path: Path, where: str
) -> None:
    async with place(tmp_path) as here:
        if where == "world":
            here.policy.held = False
        slots = here.policy if where == "policy" else here.world
        cancelled = await here.submit("r1")
        await slots.until(SLOTS)
        await here.cancel(cancelled)
        await slots.until(0)
        slots.held = False
        here.policy.held = here.world.held = False
        await here.submit("r2")  # every slot of the worker is free for the next run
        assert {r.status for r in await here.ended("r2")} == {ResultStatus.ACCEPTED}
        assert calls_out() == here.policy.busy == here.world.busy == 0
        assert (await here.queue.ledger("r1")).dead == SLOTS


async def test_an_episode_past_its_deadline_frees_its_slots_and_is_masked(tmp_path: Path) -> None:
    async with place(tmp_path) as here:
        await here.submit("r1", timeout_s=0.5)
        results = await here.ended("r1")
        await here.policy.until(0)
        assert {r.status for r in results} == {ResultStatus.MASKED}
        assert {r.reason for r in results} == {"not finished after 0.5 s"}
        assert calls_out() == 0


async def test_a_drained_worker_hands_back_what_it_holds_and_frees_the_slots(
    tmp_path: Path,
) -> None:
    async with place(tmp_path) as here:
        jobs = await here.submit("r1")
        await here.policy.until(SLOTS)
        here.worker.stop()
        await here.running
        await here.policy.until(0)
        assert calls_out() == 0
        back = await here.queue.take("w2", 2 * SLOTS, 0)
        assert sorted(d.job.job_id for d in back) == sorted(job.job_id for job in jobs)
        assert {(d.job.attempt, d.deliveries) for d in back} == {(0, 1)}
