"""One worker or eight: the same jobs give the same episodes, byte for byte."""

import asyncio
import json
import random
from collections.abc import Sequence
from contextlib import AsyncExitStack
from pathlib import Path
from typing import Any

import pytest

from services.rollout.app import make_worker
from services.rollout.settings import RolloutSettings
from tests import tiny_checkpoints
from tests.processes import service_process
from tests.redis_server import RedisServer
from tests.rollout_cases import FINISH, L, R, a_job, a_world, call
from wmkit.blobs import open_blobs
from wmkit.clients.policy import PolicyClient
from wmkit.domain.episode import Job, ResultStatus, Trajectory
from wmkit.domain.generation import Sampling, Tokens, Turn
from wmkit.ports import Policy
from wmkit.queue.redis import RedisJobQueue
from wmkit.testing import FakePolicy, FakeWorldModel


def sampled(turns: Sequence[Turn], sampling: Sampling) -> str:
    """What to write follows from the sampling seed and what is shown, from nothing else."""
    draw = random.Random(sampling.seed)
    looking = any(isinstance(part, Tokens) for turn in turns for part in turn.parts)
    if looking:
        return "</think>\nAction: " + draw.choice([L, R])
    return draw.choice(["<think>" + call(L), f"<think>So.</think>\nAction: {R}", FINISH])


async def played(
    folder: Path, jobs: Sequence[Job], workers: int, policies: Sequence[Policy]
) -> dict[str, Trajectory]:
    """All trajectories by job, from so many workers on one Redis, one policy port for each."""
    folder.mkdir(exist_ok=True)
    server = RedisServer(folder).start()
    blobs = str(folder / "blobs")
    settings = RolloutSettings(redis_url=server.url, blobs=blobs, concurrency=3)
    try:
        async with AsyncExitStack() as stack:
            queue = await stack.enter_async_context(RedisJobQueue(server.url))
            tasks, made = [], []
            for n in range(workers):
                own = await stack.enter_async_context(RedisJobQueue(server.url))
                world = FakeWorldModel(
                    a_world()._transition, goal="startR", screen=a_world()._screen,
                    blobs=open_blobs(blobs),
                )  # fmt: skip
                made.append(make_worker(settings, own, world, policies[n % len(policies)]))
                tasks.append(asyncio.create_task(made[-1].run()))
            await queue.submit(jobs)
            found: dict[str, Trajectory] = {}
            cursor = "0"
            async with asyncio.timeout(180):
                while len(found) < len(jobs):
                    results, cursor = await queue.results("r1", cursor, 100, 1000)
                    for result in results:
                        assert result.status is ResultStatus.ACCEPTED, result.reason
                        data = await open_blobs(blobs).get(result.trajectory)
                        found[result.job_id] = Trajectory.model_validate_json(data)
            for worker in made:
                worker.stop()
            await asyncio.gather(*tasks)
            return found
    finally:
        server.kill()


async def test_the_canonical_part_does_not_depend_on_the_number_of_workers(tmp_path: Path) -> None:
    jobs = [a_job(job_id=f"j{n}", member=n, seed=n * 7919) for n in range(48)]
    fakes = [FakePolicy(sampled, policy_id="r1", image_px=(56, 56)) for _ in range(8)]
    one = await played(tmp_path / "one", jobs, 1, fakes)
    eight = await played(tmp_path / "eight", jobs, 8, fakes)

    def written(found: dict[str, Trajectory]) -> dict[str, str]:
        return {name: json.dumps(t.canonical(), sort_keys=True) for name, t in found.items()}

    assert written(one) == written(eight)
    assert len({t.worker for t in one.values()}) == 1
    assert len({t.worker for t in eight.values()}) > 1
    assert len({t.trace for t in eight.values()}) == len(jobs)
    assert len({json.dumps(t.canonical()["steps"]) for t in one.values()}) > 5, "seeds matter"


@pytest.mark.slow
async def test_a_real_policy_at_batch_one_gives_the_same_tokens(
    tmp_path: Path, request: pytest.FixtureRequest
) -> None:
    checkpoint = tiny_checkpoints.make(tmp_path / "tiny")
    spec: dict[str, Any] = {"prompt": "compact", "history": 1, "max_new_tokens": 6}
    jobs = [a_job(job_id=f"j{n}", member=n, seed=n, **spec) for n in range(8)]
    found = []
    (folder := tmp_path / "redis").mkdir()
    server = RedisServer(folder).start()
    request.addfinalizer(server.kill)
    for name, workers in (("one", 1), ("eight", 8)):
        async with (
            service_process(
                "policy",
                WMR1_CHECKPOINT=str(checkpoint),
                WMR1_BLOBS=str(tmp_path / name / "blobs"),
                WMR1_MAX_BATCH="1",
                WMR1_TORCH_THREADS="1",
                WMR1_REDIS_URL=server.url,
            ) as (address, _),
            PolicyClient(address) as policy,
        ):
            found.append(await played(tmp_path / name, jobs, workers, [policy]))
    tokens = [
        {name: [s.segment.token_ids for s in t.steps] for name, t in of.items()} for of in found
    ]
    assert tokens[0] == tokens[1]
    assert len(set(map(str, tokens[0].values()))) == len(jobs), "every seed samples its own"
