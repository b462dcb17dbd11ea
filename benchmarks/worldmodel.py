"""Steps per second of the world-model service, against a bare gRPC echo in the same run.

    python benchmarks/worldmodel.py [--steps 3000] [--concurrency 32] [--seed 0] [--rounds 5]

Starts its own redis-server, renderer, service and echo, each a process of its own, and writes
benchmarks/results/worldmodel.json. In turn, round after round:

    echo        a bare `grpc.aio` server that answers with a message of the same size as the
                service does, and does nothing else; same client, same calls in flight
    uncached, cached, from_redis
                steps of the scripted phone without pictures; the last in a fresh process
    renderer    `--pages` screens asked of the renderer in one BatchRender, nothing remembered
    pictured    as many steps in one BatchStep that lead to just these screens, with pictures

`cached_step_vs_echo` and `batch_vs_renderer` are medians over the rounds of a ratio taken inside
one round, so that other work on the machine falls on both sides. Beside steps per second stands
the server's own CPU time per step (Linux only). `scripted_per_s` are transitions with their
state ids in this process, without HTML, on one core. About a minute on two idle cores.
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
from wmkit.clients import StepCall, WorldModelClient
from wmkit.clients.renderer import Page, RendererClient
from wmkit.domain.actions import Action, Back, Home, OpenApp, Recents, Scroll, Tap
from wmkit.domain.screen import Point
from wmkit.domain.tasks import TaskRef
from wmkit.domain.transition import ImageRequest, Rendering, Transition

TEMPLATE = "settings_turn_on"
IMAGE = ImageRequest("bytes")
RESULT = Path(__file__).parent / "results" / "worldmodel.json"


class Echo(rpc.WorldModelServiceServicer):  # type: ignore[misc]
    """Answers every step with the same message, one that the service has given."""

    def __init__(self, response: pb.StepResponse) -> None:
        self._response = response

    async def Step(self, request: pb.StepRequest, _: Any) -> pb.StepResponse:
        return self._response


async def echo(response: bytes) -> None:
    server = grpc.aio.server(options=[("grpc.so_reuseport", 0)])
    servicer = Echo(pb.StepResponse.FromString(response))
    rpc.add_WorldModelServiceServicer_to_server(servicer, server)
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


async def measure(
    steps: int, concurrency: int, seed: int, rounds: int, pages: int
) -> dict[str, Any]:
    phases = {name: Phase() for name in ("echo", "uncached", "cached", "from_redis")}
    pictured: dict[str, list[float]] = {"renderer": [], "pictured": []}
    words = (sys.executable, "-m", "services.worldmodel")
    async with AsyncExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory()))
        url = await stack.enter_async_context(redis(folder))
        blobs = {"WMR1_BLOBS": str(folder / "blobs"), "WMR1_PORT": "0"}
        renderer = await stack.enter_async_context(
            process(sys.executable, "-m", "services.renderer", WMR1_PICTURE_CACHE_MB="0", **blobs)
        )
        service = {"WMR1_REDIS_URL": url, "WMR1_RENDERER": renderer.address, **blobs}
        async with process(*words, **service) as server:
            answer = await an_answer(server)
        size = len(answer)
        bare = await stack.enter_async_context(
            process(sys.executable, __file__, "--echo", answer.hex())
        )
        for turn in range(rounds):
            actions = [convert.action_to_pb(a) for a in random_actions(steps, seed + turn)]
            chains = [actions[i::concurrency] for i in range(concurrency)]
            async with process(*words, **service) as server:
                starts = await create(server, concurrency, seed + turn)
                for name, at in (("uncached", server), ("echo", bare), ("cached", server)):
                    await play(at, starts, chains, phases[name])
            async with process(*words, **service) as server:
                await play(server, starts, chains, phases["from_redis"])
                await draw(server, renderer, pages, seed + turn, turn % 2 == 0, pictured)
    ratios = {
        "cached_step_vs_echo": by_round(phases["cached"].rates, phases["echo"].rates),
        "batch_vs_renderer": by_round(pictured["pictured"], pictured["renderer"]),
    }
    return {
        "ratios": ratios,
        "answer_bytes": size,
        **{name: phase.summary(phases["echo"]) for name, phase in phases.items()},
        **{f"{name}_per_s": statistics.median(rates) for name, rates in pictured.items()},
    }


def by_round(ours: Sequence[float], theirs: Sequence[float]) -> float:
    ratios = [mine / other for mine, other in zip(ours, theirs, strict=True)]
    return round(statistics.median(ratios), 3)


async def an_answer(server: Server) -> bytes:
    """A cached step's answer, encoded."""
    (state,) = await create(server, 1, 0)
    async with grpc.aio.insecure_channel(server.address) as channel:
        stub = rpc.WorldModelServiceStub(channel)
        request = pb.StepRequest(
            state_id=state,
            action=convert.action_to_pb(OpenApp("Clock")),
            purpose=pb.PURPOSE_COMMIT,
        )
        await stub.Step(request)
        data: bytes = (await stub.Step(request)).SerializeToString()
        return data


async def draw(
    server: Server,
    renderer: Server,
    count: int,
    seed: int,
    renderer_first: bool,
    rates: dict[str, list[float]],
) -> None:
    """Screens per second: steps that lead to `count` different ones, and these ones bare."""
    chosen, calls = looks(count, seed), []
    async with WorldModelClient(server.address) as world, RendererClient(renderer.address) as bare:
        for key, (ref, action, _) in enumerate(chosen):
            state = (await world.create_state(ref)).state
            calls.append(StepCall(str(key), state.state_id, action, image=IMAGE))

        async def steps() -> int:
            found = [answer async for _, answer in world.batch_step(calls)]
            return sum(isinstance(a, Transition) and a.image is not None for a in found)

        async def renders() -> int:
            asked = [Page(str(k), html, 1080, 2400, IMAGE) for k, (*_, html) in enumerate(chosen)]
            found = [answer async for _, answer in bare.batch_render(asked)]
            return sum(isinstance(a, Rendering) and a.image is not None for a in found)

        both = (("renderer", renders), ("pictured", steps))
        for name, work in both if renderer_first else both[::-1]:
            begin = time.perf_counter()
            drawn = await work()
            rates[name].append(drawn / (time.perf_counter() - begin))
            if drawn != count:
                raise SystemExit(f"{name} drew {drawn} of {count} screens")


def looks(count: int, seed: int) -> list[tuple[TaskRef, Action, str]]:
    """First steps of tasks that lead to screens of which no two look the same."""
    scripted, seen = Scripted(), set()
    out: list[tuple[TaskRef, Action, str]] = []
    for number in range(seed * 100_000, seed * 100_000 + 50 * count):
        ref, action = TaskRef(template=TEMPLATE, seed=number), random_actions(1, number)[0]
        _, start = scripted.start(ref)
        html = scripted.html(phone.step(start, scripted.snap(action)))
        if html not in seen and len(out) < count:
            seen.add(html)
            out.append((ref, action, html))
    assert len(out) == count, "too few different screens"
    return out


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
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--pages", type=int, default=64)
    parser.add_argument("--echo", default="", help=argparse.SUPPRESS)
    chosen = parser.parse_args()
    if chosen.echo:
        asyncio.run(echo(bytes.fromhex(chosen.echo)))
        return
    scripted = asyncio.run(in_process(random_actions(chosen.steps, chosen.seed)))
    figures = asyncio.run(
        measure(chosen.steps, chosen.concurrency, chosen.seed, chosen.rounds, chosen.pages)
    )
    about = {
        "steps": chosen.steps,
        "concurrency": chosen.concurrency,
        "seed": chosen.seed,
        "rounds": chosen.rounds,
        "pages": chosen.pages,
        "python": platform.python_version(),
        "grpc": grpc.__version__,
        "cpus": os.cpu_count(),
        "machine": platform.machine(),
    }
    ratios = figures.pop("ratios")
    text = json.dumps(
        {"ratios": ratios, "scripted_per_s": round(scripted), **about, **figures}, indent=2
    )
    RESULT.parent.mkdir(exist_ok=True)
    RESULT.write_text(text + "\n")
    print(text)


if __name__ == "__main__":
    main()
