"""The trainer as a process, with a real Redis: what a person sees when something is missing."""

import asyncio
import contextlib
import os
import re
import signal
import sys
from asyncio.subprocess import PIPE, Process
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from tests import tiny_checkpoints
from tests.processes import free_port
from tests.redis_server import RedisServer
from wmkit.clients import TrainerClient
from wmkit.domain.errors import Unavailable
from wmkit.rpc.health import wait_serving


@contextlib.asynccontextmanager
async def trainer(folder: Path, **env: str) -> AsyncIterator[Process]:
    values = {"runs": str(folder / "runs"), "blobs": str(folder / "blobs"), **env}
    process = await asyncio.create_subprocess_exec(
        *(sys.executable, "-m", "services.trainer"),
        stdout=PIPE,
        stderr=PIPE,
        env={**os.environ, **{f"WMR1_{key.upper()}": value for key, value in values.items()}},
    )
    try:
        yield process
    finally:
        with contextlib.suppress(ProcessLookupError):
            process.kill()
        await process.wait()


async def test_it_serves_refuses_what_it_cannot_start_and_stops_cleanly(tmp_path: Path) -> None:
    redis = RedisServer(tmp_path).start()
    try:
        port, nobody = free_port(), free_port()
        async with trainer(
            tmp_path, port=str(port), redis_url=redis.url, worldmodel=f"127.0.0.1:{nobody}"
        ) as process:
            await wait_serving(f"127.0.0.1:{port}", 60)
            async with TrainerClient(f"127.0.0.1:{port}") as client:
                assert await client.list_runs() == []
                folder = tiny_checkpoints.make(tmp_path / "tiny")
                recipe = f'checkpoint = "{folder}"\n[tasks]\ntemplates = ["a"]\n'
                with pytest.raises(Unavailable, match="the world model"):
                    await client.create_run(recipe)
            async with trainer(tmp_path, port=str(port)) as second:
                _, err = await second.communicate()
                assert second.returncode == 2
                assert f"port {port} is taken" in err.decode()
            process.send_signal(signal.SIGTERM)
            _, err = await process.communicate()
            assert process.returncode == 0
            assert b"Traceback" not in err
    finally:
        redis.kill()


@pytest.mark.parametrize(
    ("env", "words"),
    [
        ({"device": "toaster"}, r"WMR1_DEVICE=toaster: "),
        ({"runs": "/dev/null/runs"}, r"WMR1_RUNS=/dev/null/runs: Not a directory"),
    ],
)
async def test_a_wrong_setting_is_one_sentence(
    tmp_path: Path, env: dict[str, str], words: str
) -> None:
    async with trainer(tmp_path, port="0", **env) as process:
        out, err = await process.communicate()
        assert process.returncode == 2
        sentences = [line for line in err.decode().splitlines() if line.startswith("trainer: ")]
        assert len(sentences) == 1
        assert re.search(words, sentences[0])
        assert "Traceback" not in err.decode() + out.decode()
