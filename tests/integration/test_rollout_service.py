"""The rollout worker as it is started: a process, real Redis, its peers over real gRPC."""

import asyncio
import contextlib
import os
import sys
from asyncio.subprocess import PIPE, Process
from collections.abc import AsyncIterator, Iterator
from pathlib import Path
from typing import Any, ClassVar, cast

import pytest
from wmr1.policy.v1 import policy_pb2_grpc
from wmr1.worldmodel.v1 import worldmodel_pb2_grpc

from services.policy.memo import Memo
from services.policy.servicer import PolicyServicer
from services.rollout.episode import play
from services.worldmodel.servicer import WorldModelServicer
from tests.processes import free_port
from tests.redis_server import RedisServer
from tests.rollout_cases import a_job, a_world
from tests.rollout_process import answer
from wmkit.blobs import open_blobs
from wmkit.domain.episode import Result, ResultStatus, Trajectory
from wmkit.domain.generation import Generation
from wmkit.domain.tasks import TaskRef
from wmkit.ports import Ledger
from wmkit.queue.redis import RedisJobQueue
from wmkit.rpc import context
from wmkit.rpc.health import wait_serving
from wmkit.rpc.server import running
from wmkit.settings import ServiceSettings
from wmkit.testing import FakePolicy


class WirePolicy(FakePolicy):
    """The fake behind the real servicer, which hands pictures on besides. Notes trace ids."""

    traces: ClassVar[set[str]] = set()

    async def generate(self, *args: Any, images: object = None, **kwargs: Any) -> Generation:
        self.traces.add(context.trace())
        return await super().generate(*args, **kwargs)


@pytest.fixture
def server(tmp_path: Path) -> Iterator[RedisServer]:
    server = RedisServer(tmp_path).start()
    yield server
    server.kill()


@contextlib.asynccontextmanager
async def peers() -> AsyncIterator[str]:
    """World model and policy on one port, fakes behind the real servicers."""

    def register(server: Any) -> list[str]:
        policy = WirePolicy(answer, policy_id="r1", image_px=(56, 56))
        worldmodel_pb2_grpc.add_WorldModelServiceServicer_to_server(
            WorldModelServicer(cast(Any, a_world()), 8), server
        )
        policy_pb2_grpc.add_PolicyServiceServicer_to_server(
            PolicyServicer(cast(Any, policy), Memo()), server
        )
        return []

    async with running(ServiceSettings(), "peers", register) as server:
        yield server.address


@contextlib.asynccontextmanager
async def rollout(**env: object) -> AsyncIterator[Process]:
    process = await asyncio.create_subprocess_exec(
        sys.executable,
        *("-m", "services.rollout"),
        stdout=PIPE,
        stderr=PIPE,
        env={**os.environ, **{f"WMR1_{key.upper()}": str(value) for key, value in env.items()}},
    )
    try:
        yield process
    finally:
        with contextlib.suppress(ProcessLookupError):
            process.kill()
        await process.wait()


async def test_jobs_are_played_over_the_wire_and_every_token_arrives_as_it_was_sampled(
    server: RedisServer, tmp_path: Path
) -> None:
    port, blobs = free_port(), tmp_path / "blobs"
    jobs = [a_job(job_id=f"j{n}", member=n, policy_id="r1") for n in range(3)]
    unknown = a_job(job_id="j3", task=TaskRef(template="nonsense", seed=1))
    async with (
        RedisJobQueue(server.url) as queue,
        peers() as address,
        rollout(
            port=port, redis_url=server.url, blobs=blobs, worldmodel=address, policy=address
        ) as process,
    ):
        await queue.submit([*jobs, unknown])
        results: dict[str, Result] = {}
        cursor = "0"
        async with asyncio.timeout(60):
            while len(results) < 4:
                found, cursor = await queue.results("r1", cursor, 10, 1000)
                results |= {result.job_id: result for result in found}
        await wait_serving(f"127.0.0.1:{port}", 30)
        assert await queue.ledger("r1") == Ledger(requested=4, accepted=3, dead=1)
        assert results["j3"].status is ResultStatus.DEAD
        assert "nonsense" in results["j3"].reason
        for job in jobs:
            data = await open_blobs(str(blobs)).get(results[job.job_id].trajectory)
            over_the_wire = Trajectory.model_validate_json(data)
            policy = FakePolicy(answer, policy_id="r1", image_px=(56, 56))
            in_process = await play(job, world=a_world(), policy=policy)
            assert over_the_wire.canonical() == in_process.canonical()
            assert over_the_wire.worker
            assert over_the_wire.trace in WirePolicy.traces
        process.terminate()
        _, log = await asyncio.wait_for(process.communicate(), 30)
    assert process.returncode == 0
    assert b"Traceback" not in log


async def test_a_missing_redis_is_one_sentence() -> None:
    async with rollout(port=0, redis_url="redis://127.0.0.1:1/0") as process:
        _, log = await asyncio.wait_for(process.communicate(), 60)
    assert process.returncode == 2
    (line,) = [line for line in log.decode().splitlines() if not line.startswith("{")]
    assert line.startswith("rollout: Redis at 127.0.0.1:1 does not answer")
    assert line.endswith("start redis-server or set WMR1_REDIS_URL")
