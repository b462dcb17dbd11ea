"""What orchestration costs: a rollout worker between fakes, everything around them real.

    python benchmarks/rollout.py [--rounds 6] [--steps 5]

World model and policy are fakes behind the real gRPC servicers in a process of their own; the
workers are processes with the real clients, a redis-server and a blob folder. Measured are

    ideal_fraction   128 episodes in flight, every call takes 200 ms: rate / ideal rate, where
                     the ideal is that an episode takes as long as its calls one after the other
    two_workers      the rate of two workers with 32 in flight each / that of one
    cpu_ms_per_step  CPU of the worker process per committed step, calls answered at once: over
                     gRPC as above (one call to the policy, one to the world model, and a share
                     of what begins and ends an episode), `imagining` with an imagined screen
                     before each action (two calls more), and `direct`, with the fakes inside the
                     process and so without gRPC
    mb_per_episode   growth of the worker's memory per episode in flight, without pictures

Where calls take time, a step is one committed action with one imagined screen before it.
Writes benchmarks/results/rollout.json.
"""

import argparse
import asyncio
import json
import os
import platform
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import AsyncExitStack, ExitStack, contextmanager
from pathlib import Path
from typing import Any

import grpc
from wmr1.policy.v1 import policy_pb2_grpc
from wmr1.worldmodel.v1 import worldmodel_pb2_grpc

from services.policy.memo import Memo
from services.policy.servicer import PolicyServicer
from services.rollout.app import make_worker
from services.rollout.settings import RolloutSettings
from services.worldmodel.servicer import WorldModelServicer
from wmkit import logs
from wmkit.blobs import digest
from wmkit.clients.policy import PolicyClient
from wmkit.clients.worldmodel import WorldModelClient
from wmkit.domain.episode import EpisodeSpec, Job
from wmkit.domain.generation import (
    EncodedImage,
    FinishReason,
    Generation,
    Picture,
    Sampling,
    Tokens,
    Turn,
)
from wmkit.domain.screen import Screen
from wmkit.domain.tasks import Judgement, Task, TaskRef, Verdict
from wmkit.domain.transition import Image, Outcome, Provenance, State, Transition
from wmkit.ports import Created
from wmkit.queue.redis import RedisJobQueue
from wmkit.rpc.server import running
from wmkit.settings import ServiceSettings

LATENCY_S = 0.2
LOOKS = 1
MANY, FEW = 128, 32
TAP = "tap(start_box='<|box_start|>(16,48)<|box_end|>')"
LOOK = f"<call_wm>{TAP}</call_wm>"
REF = TaskRef(template="bench", seed=0)
RESULTS = Path(__file__).parent / "results" / "rollout.json"


class World:
    """Answers every step with the next of a few ready-made screens; `steps` end an episode."""

    def __init__(self, steps: int, latency_s: float) -> None:
        names = [digest(str(i).encode()) for i in range(64)]
        self._states = [State(n, n, "bench", "1", Screen(), n) for n in names]
        self._images = [Image(n, 270, 600) for n in names]
        self._latency_s = latency_s
        self._next = 0
        self._task = Task(
            ref=REF,
            goal="Turn on Wi-Fi",
            complexity=3,
            step_limit=steps,
            apps=("Settings",),
            main_app="Settings",
            kind="toggle",
        )

    async def create_state(self, *_: Any, **__: Any) -> Created:
        await asyncio.sleep(self._latency_s)
        return Created(self._states[0], self._task, self._images[0])

    async def step(self, *_: Any, **__: Any) -> Transition:
        await asyncio.sleep(self._latency_s)
        self._next = (self._next + 1) % len(self._states)
        state, image = self._states[self._next], self._images[self._next]
        return Transition(Outcome.CHANGED, Provenance("bench", "1"), state, image=image)

    async def judge(self, *_: Any, **__: Any) -> Judgement:
        await asyncio.sleep(self._latency_s)
        return Judgement(verdict=Verdict.SUCCESS, reason="reached", judge="bench")


class Agent:
    """Looks `calls` times, then taps. Prompts have 120 tokens, answers 22, an imagined turn
    adds 50: the tiny policy's sizes."""

    def __init__(self, calls: int, latency_s: float) -> None:
        self._calls = calls
        self._latency_s = latency_s

    async def generate(self, turns: Sequence[Turn], sampling: Sampling, **_: Any) -> Generation:
        await asyncio.sleep(self._latency_s)
        prompt, looked = tuple(range(120)), 0
        for turn in turns[1:]:
            tokens = [part.ids for part in turn.parts if isinstance(part, Tokens)]
            prompt += tokens[0] if tokens else tuple(range(50))
            looked += bool(tokens)
        thinking = "" if looked else "<think>"
        last = looked == self._calls
        text = thinking + (f"</think>\nAction: {TAP}" if last else LOOK)
        images = tuple(
            EncodedImage(part.digest, 128, 320, (1, 20, 8))
            for turn in turns
            for part in turn.parts
            if isinstance(part, Picture)
        )
        reason = FinishReason.END if last else FinishReason.STOP
        logprobs = (-0.123456,) * 22
        return Generation(
            prompt, tuple(range(22)), logprobs, text, reason, "bench", 0, images, "bench"
        )


def jobs(count: int, calls: int, run_id: str) -> list[Job]:
    spec = EpisodeSpec(prompt="compact", history=1, max_calls=1000, max_calls_per_thought=calls)
    named = {"run_id": run_id, "phase": "bench", "task": REF, "seed": 0, "spec": spec}
    return [
        Job.model_validate({"job_id": f"{run_id}/{n}", "group": 0, "member": n, **named})
        for n in range(count)
    ]


async def serve(steps: int, calls: int, latency_s: float) -> None:
    """The fakes, until SIGTERM. Prints their address."""

    def register(server: Any) -> list[str]:
        world: Any = World(steps, latency_s)
        policy: Any = Agent(calls, latency_s)
        worldmodel_pb2_grpc.add_WorldModelServiceServicer_to_server(
            WorldModelServicer(world, 8), server
        )
        policy_pb2_grpc.add_PolicyServiceServicer_to_server(PolicyServicer(policy, Memo()), server)
        return []

    async with running(ServiceSettings(drain_pause_s=0, drain_grace_s=0), "fakes", register) as at:
        print(at.address, flush=True)
        await _told_to_stop()


async def work(
    redis_url: str, blobs: str, peers: str, concurrency: int, steps: int, calls: int
) -> None:
    """A worker, until SIGTERM. `peers` "" has the fakes inside."""
    settings = RolloutSettings(
        redis_url=redis_url,
        blobs=blobs,
        concurrency=concurrency,
        policy_calls=1000,
        worldmodel_calls=1000,
    )
    async with AsyncExitStack() as stack:
        queue = await stack.enter_async_context(RedisJobQueue(redis_url))
        world: Any = World(steps, 0.0)
        policy: Any = Agent(calls, 0.0)
        if peers:
            world = await stack.enter_async_context(WorldModelClient(peers))
            policy = await stack.enter_async_context(PolicyClient(peers))
        worker = make_worker(settings, queue, world, policy)
        working = asyncio.create_task(worker.run())
        print("ready", flush=True)
        await _told_to_stop()
        worker.stop()
        await working


async def _told_to_stop() -> None:
    told = asyncio.Event()
    asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, told.set)
    await told.wait()


@contextmanager
def process(*arguments: object) -> Iterator[tuple[subprocess.Popen[str], str]]:
    """This file as another process, and the first line that it prints."""
    argv = [sys.executable, __file__, *map(str, arguments)]
    child = subprocess.Popen(argv, stdout=subprocess.PIPE, text=True)
    assert child.stdout is not None
    try:
        yield child, child.stdout.readline().strip()
    finally:
        child.terminate()
        child.wait()
        child.stdout.close()


def cpu_s(pid: int) -> float:
    """User and system time of a process so far."""
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def memory_mb(pid: int, what: str) -> float:
    """VmRSS (now) or VmHWM (at most) of a process."""
    text = Path(f"/proc/{pid}/status").read_text()
    (line,) = (line for line in text.splitlines() if line.startswith(what))
    return int(line.split()[1]) / 1024


async def measure(
    redis: str,
    blobs: str,
    peers: str,
    args: argparse.Namespace,
    workers: int,
    each: int,
    looks: int = LOOKS,
) -> dict[str, float]:
    """Episodes per second, CPU per step and memory of `workers` with `each` in flight."""
    count = workers * each * args.rounds
    async with RedisJobQueue(redis) as queue:
        with ExitStack() as stack:
            children = [
                stack.enter_context(
                    process("--work", redis, blobs, peers, each, args.steps, looks)
                )[0]
                for _ in range(workers)
            ]
            warm, timed = (f"{time.monotonic_ns()}-{name}" for name in ("warm", "timed"))
            # Connections are made, code is loaded.
            await _played(queue, jobs(each // 4 * workers, looks, warm))
            before = [(cpu_s(c.pid), memory_mb(c.pid, "VmRSS")) for c in children]
            began = time.perf_counter()
            await _played(queue, jobs(count, looks, timed))
            seconds = time.perf_counter() - began
            spent = sum(cpu_s(c.pid) - b[0] for c, b in zip(children, before, strict=True))
            grown = sum(
                memory_mb(c.pid, "VmHWM") - b[1] for c, b in zip(children, before, strict=True)
            )
    return {
        "episodes_per_s": count / seconds,
        "seconds": seconds,
        "cpu_ms_per_step": spent * 1000 / (count * args.steps),
        "mb_per_episode": grown / (workers * each),
    }


async def _played(queue: RedisJobQueue, asked: Sequence[Job]) -> None:
    run_id = asked[0].run_id
    await queue.submit(asked)
    ended, cursor = 0, "0"
    while ended < len(asked):
        found, cursor = await queue.results(run_id, cursor, 1000, 1000)
        assert all(result.trajectory for result in found), found[0].reason
        ended += len(found)


async def bench(args: argparse.Namespace) -> dict[str, Any]:
    per_episode = 2 + 2 * args.steps * (1 + LOOKS)  # calls: create, steps, judge
    ideal = MANY / (per_episode * LATENCY_S)
    with tempfile.TemporaryDirectory() as folder, _redis(folder) as redis:
        blobs = str(Path(folder, "blobs"))
        with process("--serve", args.steps, LOOKS, LATENCY_S) as (_, slow):
            full = await measure(redis, blobs, slow, args, 1, MANY)
            one = await measure(redis, blobs, slow, args, 1, FEW)
            two = await measure(redis, blobs, slow, args, 2, FEW)
        with process("--serve", args.steps, 0, 0.0) as (_, instant):
            plain = await measure(redis, blobs, instant, args, 1, 64, 0)
        with process("--serve", args.steps, LOOKS, 0.0) as (_, instant):
            imagining = await measure(redis, blobs, instant, args, 1, 64)
        direct = await measure(redis, blobs, "", args, 1, 64)
    return {
        "ratios": {
            "ideal_fraction": round(full["episodes_per_s"] / ideal, 3),
            "two_workers": round(two["episodes_per_s"] / one["episodes_per_s"], 3),
        },
        "figures": {
            "cpu_ms_per_step": round(plain["cpu_ms_per_step"], 3),
            "cpu_ms_per_step_imagining": round(imagining["cpu_ms_per_step"], 3),
            "cpu_ms_per_step_direct": round(direct["cpu_ms_per_step"], 3),
            "mb_per_episode": round(full["mb_per_episode"], 3),
        },
        "raw": {
            "full": full,
            "one": one,
            "two": two,
            "plain": plain,
            "imagining": imagining,
            "direct": direct,
        },
    }


@contextmanager
def _redis(folder: str) -> Iterator[str]:
    binary = shutil.which("redis-server")
    if binary is None:
        raise SystemExit("benchmarks/rollout.py needs redis-server; see wmr1 doctor")
    path = Path(folder, "redis.sock")
    server = subprocess.Popen(
        [binary, "--port", "0", "--unixsocket", str(path), "--save", "", "--dir", folder],
        stdout=subprocess.PIPE,
    )
    assert server.stdout is not None
    next(line for line in server.stdout if b"eady to accept connections" in line)
    try:
        yield f"unix://{path}"
    finally:
        server.kill()
        server.wait()


def main() -> None:
    logs.configure("bench", "error")  # to stderr: the first line of stdout is read
    if sys.argv[1:2] == ["--serve"]:
        steps, calls, latency = sys.argv[2:]
        asyncio.run(serve(int(steps), int(calls), float(latency)))
        return
    if sys.argv[1:2] == ["--work"]:
        redis, blobs, peers, each, steps, calls = sys.argv[2:]
        asyncio.run(work(redis, blobs, peers, int(each), int(steps), int(calls)))
        return
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--rounds", type=int, default=6, help="episodes per slot")
    parser.add_argument("--steps", type=int, default=5)
    args = parser.parse_args()
    report = {
        "benchmark": "rollout",
        "machine": platform.machine(),
        "cores": os.cpu_count(),
        "python": platform.python_version(),
        "grpcio": grpc.__version__,
        "seeds": [0],
        **vars(args),
        **asyncio.run(bench(args)),
    }
    RESULTS.parent.mkdir(exist_ok=True)
    RESULTS.write_text(json.dumps(report, indent=2) + "\n")
    print(json.dumps(report, indent=2))


if __name__ == "__main__":
    main()
