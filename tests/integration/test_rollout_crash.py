"""Workers that die: whatever the moment, the ledger balances and nothing counts twice."""

import asyncio
import signal
import sys
from asyncio.subprocess import PIPE, Process
from collections.abc import AsyncIterator, Callable, Coroutine, Iterator
from pathlib import Path
from typing import Any
from unittest.mock import ANY

import pytest

from tests.redis_server import RedisServer
from tests.rollout_cases import a_job, state
from wmkit.blobs import open_blobs
from wmkit.domain.episode import ResultStatus, Trajectory
from wmkit.ports import Ledger
from wmkit.queue.redis import RedisJobQueue

ROOT = Path(__file__).parents[2]
JOBS = 6
Start = Callable[[str], Coroutine[Any, Any, Process]]


@pytest.fixture
def server(tmp_path: Path) -> Iterator[RedisServer]:
    server = RedisServer(tmp_path).start()
    yield server
    server.kill()


@pytest.fixture
async def start(server: RedisServer, tmp_path: Path) -> AsyncIterator[Start]:
    """Starts worker processes and sees to it that none outlives the test."""
    processes: list[Process] = []

    async def start(hold: str) -> Process:
        process = await asyncio.create_subprocess_exec(
            sys.executable,
            *("-m", "tests.rollout_process", server.url, str(tmp_path / "blobs"), hold),
            cwd=ROOT,
            stdout=PIPE,
        )
        processes.append(process)
        assert await line(process) == "ready"
        return process

    yield start
    for process in processes:
        if process.returncode is None:
            process.kill()
            await process.wait()


async def line(process: Process) -> str:
    assert process.stdout is not None
    async with asyncio.timeout(60):
        return (await process.stdout.readline()).decode().strip()


async def all_ends(queue: RedisJobQueue) -> list[Any]:
    """Results until the ledger balances; those after it would be counted twice."""
    results: list[Any] = []
    cursor = "0"
    async with asyncio.timeout(60):
        while (await queue.ledger("r1")).ended < JOBS:
            found, cursor = await queue.results("r1", cursor, 100, 500)
            results += found
        return results + list((await queue.results("r1", cursor, 100, 0))[0])


@pytest.mark.parametrize("moment", ["taking", "playing", "stored", "ended"])
async def test_a_worker_killed_at_any_moment_loses_nothing_and_counts_nothing_twice(
    server: RedisServer, start: Start, tmp_path: Path, moment: str
) -> None:
    async with RedisJobQueue(server.url) as queue:
        await queue.submit([a_job(job_id=f"j{n}", member=n) for n in range(JOBS)])
        first = await start(moment)
        assert (await line(first)).startswith("holding j")
        ended_before = (await queue.ledger("r1")).ended
        first.send_signal(signal.SIGKILL)
        assert await first.wait() == -signal.SIGKILL

        second = await start("never")
        results = await all_ends(queue)
        assert sorted(result.job_id for result in results) == [f"j{n}" for n in range(JOBS)]
        assert {result.status for result in results} == {ResultStatus.ACCEPTED}
        assert await queue.ledger("r1") == Ledger(requested=JOBS, accepted=JOBS)
        assert ended_before >= 1 if moment == "ended" else ended_before == 0

        blobs = open_blobs(str(tmp_path / "blobs"))
        for result in results:
            trajectory = Trajectory.model_validate_json(await blobs.get(result.trajectory))
            assert trajectory.job.job_id == result.job_id
            assert trajectory.final_state_id == state("startR")
            assert trajectory.calls == 1

        second.terminate()
        assert await second.wait() == 0
        # A worker that stopped in good order leaves no claim behind.
        assert await queue.take("w", 1, 0) == []


async def test_a_worker_that_wakes_up_too_late_finds_its_jobs_ended(
    server: RedisServer, start: Start
) -> None:
    """A worker that was stopped, not killed: it still holds what it played."""
    async with RedisJobQueue(server.url) as queue:
        await queue.submit([a_job(job_id=f"j{n}", member=n) for n in range(JOBS)])
        sleeper = await start("stored")
        for _ in range(2):  # its two episodes in flight
            assert (await line(sleeper)).startswith("holding j")
        sleeper.send_signal(signal.SIGSTOP)
        heir = await start("never")
        results = await all_ends(queue)
        sleeper.send_signal(signal.SIGCONT)
        sleeper.send_signal(signal.SIGUSR1)
        assert [await line(sleeper) for _ in range(2)] == ["late", "late"]
        for process in (sleeper, heir):
            process.terminate()
            assert await process.wait() == 0
        assert len(results) == JOBS
        assert await queue.ledger("r1") == Ledger(requested=JOBS, accepted=JOBS)
        assert await queue.results("r1", "0", 100, 0) == (results, ANY)
