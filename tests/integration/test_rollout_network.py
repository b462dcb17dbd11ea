"""A worker behind a bad network: latency, resets, half-open connections on all its ways out."""

import asyncio
from pathlib import Path

import pytest

from services.rollout.episode import play
from tests.integration.test_rollout_service import peers, rollout
from tests.proxy import BadNetwork, Streams
from tests.redis_server import RedisServer
from tests.rollout_cases import a_job, a_world
from tests.rollout_process import answer
from wmkit.blobs import open_blobs
from wmkit.domain.episode import ResultStatus, Trajectory
from wmkit.domain.validation import problems
from wmkit.ports import Ledger
from wmkit.queue.redis import RedisJobQueue
from wmkit.testing import FakePolicy

JOBS = 60
SEED = 5


@pytest.mark.slow
async def test_a_bad_network_loses_no_job_doubles_none_and_changes_no_episode(
    tmp_path: Path,
) -> None:
    server = RedisServer(tmp_path).start()
    jobs = [a_job(job_id=f"j{n}", member=n, seed=n, policy_id="r1") for n in range(JOBS)]
    try:
        async with peers() as address, RedisJobQueue(server.url) as queue:
            host, _, port = address.rpartition(":")

            async def to_peers() -> Streams:
                return await asyncio.open_connection(host, int(port))

            async def to_redis() -> Streams:
                return await asyncio.open_unix_connection(server.url.removeprefix("unix://"))

            bad = {"seed": SEED, "latency_s": 0.002}
            async with (
                BadNetwork(to_peers, every=60, resets=4, silences=1, **bad) as world,
                BadNetwork(to_peers, every=60, resets=4, silences=1, **bad) as policy,
                BadNetwork(to_redis, every=15, resets=4, silences=1, **bad) as redis,
                rollout(
                    port=0,
                    redis_url=f"redis://{redis.address}/0",
                    blobs=tmp_path / "blobs",
                    worldmodel=world.address,
                    policy=policy.address,
                    reclaim_after_s=3,
                    concurrency=8,
                ),
            ):
                await queue.submit(jobs)
                results = []
                cursor = "0"
                async with asyncio.timeout(240):
                    while len(results) < JOBS:
                        found, cursor = await queue.results("r1", cursor, 100, 1000)
                        results += found
                for network in (world, policy, redis):
                    assert network.done["reset"] >= 1 and network.done["silence"] == 1
            assert await queue.ledger("r1") == Ledger(requested=JOBS, accepted=JOBS)
            assert sorted(r.job_id for r in results) == sorted(job.job_id for job in jobs)
            assert {r.status for r in results} == {ResultStatus.ACCEPTED}
            assert (await queue.results("r1", "0", 1000, 0))[0] == results
            by_id = {job.job_id: job for job in jobs}
            for result in results:
                data = await open_blobs(str(tmp_path / "blobs")).get(result.trajectory)
                stored = Trajectory.model_validate_json(data)
                assert problems(stored) == []
                alone = FakePolicy(answer, policy_id="r1", image_px=(56, 56))
                expected = await play(by_id[result.job_id], world=a_world(), policy=alone)
                assert stored.canonical() == expected.canonical()
    finally:
        server.kill()
