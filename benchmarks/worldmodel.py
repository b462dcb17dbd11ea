"""Steps per second of the world-model service, against a bare gRPC echo in the same run.

    python benchmarks/worldmodel.py [--steps 3000] [--concurrency 32] [--seed 0] [--rounds 3]

Starts its own redis-server, the service and the echo, each a process of its own, and prints
JSON. The echo answers with a message of the same size and does nothing else. No pictures.
Every phase is played `--rounds` times in turn with the echo, and medians are kept. Beside
steps per second stands the server's own CPU time per step, which other work on the machine
disturbs less (Linux only).
"""

import argparse
import asyncio
import json
import os
import platform
import random
import shutil
import statistics
import sys
import tempfile
import time
from collections.abc import AsyncIterator, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import grpc
from wmr1.worldmodel.v1 import worldmodel_pb2 as pb
from wmr1.worldmodel.v1 import worldmodel_pb2_grpc as rpc

from services.worldmodel import phone, tasks
from services.worldmodel.backends.scripted import Scripted
from services.worldmodel.states import state_name
from wmkit import convert
from wmkit.domain.actions import Action, Back, Home, OpenApp, Recents, Scroll, Tap
from wmkit.domain.screen import Point

TEMPLATE = "settings_turn_on"


class Echo(rpc.WorldModelServiceServicer):  # type: ignore[misc]
    """Answers every step with the same full-sized message."""

    response = pb.StepResponse(
        outcome=pb.OUTCOME_CHANGED,
        state=pb.State(
            state_id="0" * 64,
            screen_id="0" * 64,
            backend="scripted",
            revision="scripted-0000000000000000",
            payload_digest="0" * 64,
        ),
    )

    async def Step(self, request: pb.StepRequest, _: Any) -> pb.StepResponse:
        return self.response


async def echo() -> None:
    server = grpc.aio.server(options=[("grpc.so_reuseport", 0)])
    rpc.add_WorldModelServiceServicer_to_server(Echo(), server)
    port = server.add_insecure_port("127.0.0.1:0")
    await server.start()
    print(json.dumps({"event": "serving", "address": f"127.0.0.1:{port}"}), file=sys.stderr)
    await server.wait_for_termination()


def random_actions(count: int, seed: int) -> list[Action]:
    rng = random.Random(seed)
    fixed: list[Action] = [
        Back(),
        Home(),
        Recents(),
        Scroll("down"),
        Scroll("up"),
        OpenApp("Clock"),
    ]
    return [
        rng.choice(fixed) if rng.random() < 0.3 else Tap(Point(rng.random(), rng.random()))
        for _ in range(count)
    ]


async def in_process(actions: Sequence[Action]) -> float:
    """Transitions and state ids per second, without service."""
    scripted = Scripted()
    value = tasks.make(TEMPLATE, 0).start
    begin = time.perf_counter()
    for action in actions:
        predicted = await scripted.predict(value, scripted.snap(action), 0)
        assert predicted.value is not None
        value = predicted.value
        state_name(scripted.name, scripted.screen, scripted.kind, phone.digest(value))
    return len(actions) / (time.perf_counter() - begin)


@dataclass(frozen=True)
class Server:
    """A process that serves at an address."""

    address: str
    pid: int

    def cpu_s(self) -> float:
        """CPU seconds used so far; 0 where the system does not tell."""
        try:
            cells = Path(f"/proc/{self.pid}/stat").read_text().rpartition(")")[2].split()
        except OSError:
            return 0.0
        return (int(cells[11]) + int(cells[12])) / os.sysconf("SC_CLK_TCK")


@dataclass
class Phase:
    """What was measured under one name, once per round."""

    rates: list[float] = field(default_factory=list)
    cpu_us: list[float] = field(default_factory=list)
    hits: list[float] = field(default_factory=list)

    def summary(self, echo: "Phase") -> dict[str, float]:
        rate, base = statistics.median(self.rates), statistics.median(echo.rates)
        return {
            "steps_per_s": round(rate),
            "over_echo": round(rate / base, 2),
            "server_cpu_us_per_step": round(statistics.median(self.cpu_us)),
            "cache_hits": round(statistics.median(self.hits), 3),
        }


async def play(server: Server, starts: Sequence[str], walks: Sequence[Any], phase: Phase) -> None:
    """Play as many chains at once as there are walks."""
    hits: list[bool] = []
    async with grpc.aio.insecure_channel(server.address) as channel:
        stub = rpc.WorldModelServiceStub(channel)

        async def chain(state: str, walk: Sequence[Any]) -> None:
            for action in walk:
                request = pb.StepRequest(state_id=state, action=action, purpose=pb.PURPOSE_COMMIT)
                answer = await stub.Step(request, timeout=60)
                state = answer.state.state_id
                hits.append(answer.provenance.cache_hit)

        await channel.channel_ready()
        used, begin = server.cpu_s(), time.perf_counter()
        await asyncio.gather(*map(chain, starts, walks))
        phase.rates.append(len(hits) / (time.perf_counter() - begin))
        phase.cpu_us.append((server.cpu_s() - used) / len(hits) * 1e6)
        phase.hits.append(sum(hits) / len(hits))


@asynccontextmanager
async def process(*words: str, **environment: str) -> AsyncIterator[Server]:
    """A process that says on stderr where it serves."""
    child = await asyncio.create_subprocess_exec(
        *words, env=os.environ | environment, stderr=asyncio.subprocess.PIPE
    )
    assert child.stderr is not None
    try:
        async for line in child.stderr:
            if b'"serving"' in line:
                yield Server(json.loads(line)["address"], child.pid)
                break
        else:
            raise RuntimeError(f"{' '.join(words)} ended with {await child.wait()}")
    finally:
        if child.returncode is None:
            child.terminate()
            await child.wait()


@asynccontextmanager
async def redis(folder: Path) -> AsyncIterator[str]:
    binary = shutil.which("redis-server")
    if binary is None:
        raise SystemExit("redis-server is not installed")
    child = await asyncio.create_subprocess_exec(
        binary, "--port", "0", "--unixsocket", str(folder / "redis.sock"), "--save", "",
        stdout=asyncio.subprocess.PIPE,
    )  # fmt: skip
    assert child.stdout is not None
    async for line in child.stdout:
        if b"ready to accept" in line.lower():
            break
    try:
        yield f"unix://{folder}/redis.sock"
    finally:
        child.terminate()
        await child.wait()


async def measure(steps: int, concurrency: int, seed: int, rounds: int) -> dict[str, Any]:
    phases = {name: Phase() for name in ("echo", "uncached", "cached", "from_redis")}
    words = (sys.executable, "-m", "services.worldmodel")
    async with AsyncExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory()))
        url = await stack.enter_async_context(redis(folder))
        bare = await stack.enter_async_context(process(sys.executable, __file__, "--echo"))
        service = {"WMR1_REDIS_URL": url, "WMR1_BLOBS": str(folder / "blobs"), "WMR1_PORT": "0"}
        for turn in range(rounds):
            actions = [convert.action_to_pb(a) for a in random_actions(steps, seed + turn)]
            chains = [actions[i::concurrency] for i in range(concurrency)]
            async with process(*words, **service) as server:
                starts = await create(server, concurrency, seed + turn)
                for name, at in (("uncached", server), ("echo", bare), ("cached", server)):
                    await play(at, starts, chains, phases[name])
            async with process(*words, **service) as server:
                await play(server, starts, chains, phases["from_redis"])
    return {name: phase.summary(phases["echo"]) for name, phase in phases.items()}


async def create(server: Server, count: int, seed: int) -> list[str]:
    """Start states of different tasks."""
    async with grpc.aio.insecure_channel(server.address) as channel:
        stub = rpc.WorldModelServiceStub(channel)
        starts = []
        for i in range(count):
            task = pb.TaskRef(template=TEMPLATE, seed=seed * count + i)
            made = await stub.CreateState(pb.CreateStateRequest(task=task))
            starts.append(made.state.state_id)
        return starts


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--steps", type=int, default=3000)
    parser.add_argument("--concurrency", type=int, default=32)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--echo", action="store_true", help=argparse.SUPPRESS)
    chosen = parser.parse_args()
    if chosen.echo:
        asyncio.run(echo())
        return
    bare = asyncio.run(in_process(random_actions(chosen.steps, chosen.seed)))
    figures = asyncio.run(measure(chosen.steps, chosen.concurrency, chosen.seed, chosen.rounds))
    about = {
        "steps": chosen.steps,
        "concurrency": chosen.concurrency,
        "seed": chosen.seed,
        "python": platform.python_version(),
        "grpc": grpc.__version__,
        "cpus": os.cpu_count(),
        "machine": platform.machine(),
        "rounds": chosen.rounds,
    }
    print(json.dumps({**about, "in_process_steps_per_s": round(bare), **figures}, indent=2))


if __name__ == "__main__":
    main()
