"""Two of every service behind one address: each of them gets work, and nothing is mixed up.

The address is a list (`ipv4:A,B`), which gRPC resolves to two as it does a `dns:///` name with
two records; balancing is the same code.
"""

import asyncio
import re
import shutil
import urllib.request
from contextlib import AsyncExitStack
from pathlib import Path

import pytest

from services.renderer.chromium import NAMES
from tests.chaos import ROOT, Report, audit, jobs
from tests.processes import free_port, service_process
from tests.redis_server import RedisServer
from wmkit.blobs import open_blobs
from wmkit.domain.episode import Result, Trajectory
from wmkit.queue.redis import RedisJobQueue

EPISODES = 24
METHODS = {
    "renderer": "/wmr1.renderer.v1.RendererService/Render",
    "worldmodel": "/wmr1.worldmodel.v1.WorldModelService/Step",
    "policy": "/wmr1.policy.v1.PolicyService/Generate",
}

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(not any(map(shutil.which, NAMES)), reason="no Chromium found"),
]


def calls(metrics_port: int, method: str) -> int:
    """How many calls of the method a process has answered well."""
    with urllib.request.urlopen(f"http://127.0.0.1:{metrics_port}/metrics") as answer:
        text = answer.read().decode()
    line = rf'wmr1_rpc_seconds_count{{code="OK",method="{re.escape(method)}"}} (\S+)'
    found = re.search(line, text)
    return int(float(found[1])) if found else 0


async def test_two_of_everything_share_the_work(tmp_path: Path) -> None:
    redis = RedisServer(tmp_path).start()
    blobs = str(tmp_path / "blobs")
    env = {"WMR1_REDIS_URL": redis.url, "WMR1_BLOBS": blobs, "WMR1_TORCH_THREADS": "1"}
    env["WMR1_CHECKPOINT"] = str(ROOT / "examples" / "tiny-policy")
    ports: dict[str, list[int]] = {}
    try:
        async with AsyncExitStack() as stack:

            async def two(name: str, **more: str) -> None:
                addresses = []
                for _ in range(2):
                    ports.setdefault(name, []).append(free_port())
                    where = {"WMR1_METRICS_PORT": str(ports[name][-1]), "WMR1_CONCURRENCY": "6"}
                    process = service_process(name, **env, **where, **more)
                    address, _ = await stack.enter_async_context(process)
                    addresses.append(address)
                env[f"WMR1_{name.upper()}"] = f"ipv4:{','.join(addresses)}"

            for name in ("renderer", "worldmodel", "policy"):
                await two(name)
            await two("rollout")
            queue = await stack.enter_async_context(RedisJobQueue(redis.url))
            asked = jobs(3, EPISODES)
            await queue.submit(asked)
            results: list[Result] = []
            cursor = "0"
            async with asyncio.timeout(600):
                while len(results) < EPISODES:
                    found, cursor = await queue.results("chaos", cursor, 100, 1000)
                    results += found
            report = Report(seed=3, ledger=await queue.ledger("chaos"))
            await audit(asked, results, open_blobs(blobs), report)
            assert report.wrong == [] and report.ledger.accepted == EPISODES
            for name, method in METHODS.items():
                shares = [calls(port, method) for port in ports[name]]
                assert min(shares) > 0, (name, shares)
            stored = open_blobs(blobs)
            workers = {
                Trajectory.model_validate_json(await stored.get(r.trajectory)).worker
                for r in results
            }
            assert len(workers) == 2
    finally:
        redis.kill()
