"""CPU time of a rollout worker per step, when policy and world model answer at once.

    python benchmarks/rollout.py [--episodes 300] [--steps 5] [--calls 1]

Everything around the players is real: the worker, a redis-server of its own, a blob folder.
What is measured is this process's CPU time, so the redis-server and waiting do not count;
the same episodes on the in-memory queue and blobs, and `play` alone, stand beside it.
Prints JSON. A step here is one committed action with `--calls` imagined screens before it.
"""

import argparse
import asyncio
import json
import os
import platform
import shutil
import subprocess
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from services.rollout.episode import play
from services.rollout.worker import Limits, Worker
from wmkit.blobs import MemoryBlobs, digest, open_blobs
from wmkit.domain.episode import EpisodeSpec, Job, Trajectory
from wmkit.domain.generation import EncodedImage, FinishReason, Generation, Picture, Sampling, Turn
from wmkit.domain.screen import Screen
from wmkit.domain.tasks import Judgement, Task, TaskRef, Verdict
from wmkit.domain.transcript import CALL_END
from wmkit.domain.transition import Image, Outcome, Provenance, State, Transition
from wmkit.ports import BlobStore, Created, JobQueue
from wmkit.queue.memory import MemoryJobQueue
from wmkit.queue.redis import RedisJobQueue

TAP = "tap(start_box='<|box_start|>(16,48)<|box_end|>')"
REF = TaskRef(template="bench", seed=0)
TASK = Task(
    ref=REF,
    goal="Turn on Wi-Fi",
    complexity=3,
    step_limit=20,
    apps=("Settings",),
    main_app="Settings",
    kind="toggle",
)


class World:
    """Answers every step with the next of a few ready-made screens."""

    def __init__(self) -> None:
        names = [digest(str(i).encode()) for i in range(64)]
        self._states = [State(n, n, "bench", "1", Screen(), n) for n in names]
        self._images = [Image(n, 270, 600) for n in names]
        self._next = 0

    async def create_state(self, *_: Any, **__: Any) -> Created:
        return Created(self._states[0], TASK, self._images[0])

    async def step(self, *_: Any, **__: Any) -> Transition:
        self._next = (self._next + 1) % len(self._states)
        state, image = self._states[self._next], self._images[self._next]
        return Transition(Outcome.CHANGED, Provenance("bench", "1"), state, image=image)

    async def judge(self, *_: Any, **__: Any) -> Judgement:
        return Judgement(verdict=Verdict.SUCCESS, reason="reached", judge="bench")


class Agent:
    """Plays one episode: `calls` looks and a tap for `steps` steps, then finishes.

    Prompts have 120 tokens, answers 22, an imagined turn adds 50: the tiny policy's sizes.
    """

    def __init__(self, steps: int, calls: int) -> None:
        look = f"<call_wm>{TAP}</call_wm>"
        step = ["<think>" + look, *[look] * (calls - 1)] if calls else []
        step.append(("" if calls else "<think>") + f"</think>\nAction: {TAP}")
        self._texts = iter([*step * steps, "<think>Done.</think>\nAction: finished()"])
        self._ids: tuple[int, ...] = ()

    async def generate(self, turns: Sequence[Turn], sampling: Sampling, **_: Any) -> Generation:
        text = next(self._texts)
        prompt = self._ids + tuple(range(50)) if len(turns) > 1 else tuple(range(120))
        token_ids = tuple(range(22))
        self._ids = prompt + token_ids
        reason = FinishReason.STOP if text.endswith(CALL_END) else FinishReason.END
        images = tuple(
            EncodedImage(part.digest, 128, 320, (1, 20, 8))
            for turn in turns
            for part in turn.parts
            if isinstance(part, Picture)
        )
        return Generation(
            prompt, token_ids, (-0.123456,) * 22, text, reason, "bench", 0, images, "bench"
        )


def jobs(count: int, calls: int) -> list[Job]:
    spec = EpisodeSpec(prompt="compact", history=1, max_calls=1000, max_calls_per_thought=calls)
    named = {"run_id": "bench", "phase": "bench", "task": REF, "seed": 0, "spec": spec}
    return [
        Job.model_validate({"job_id": f"j{n}", "group": 0, "member": n, **named})
        for n in range(count)
    ]


async def alone(episodes: Sequence[Job], steps: int, calls: int) -> float:
    """CPU milliseconds per step of `play` by itself."""
    world: Any = World()
    begin = time.process_time()
    for job in episodes:
        agent: Any = Agent(steps, calls)
        await play(job, world=world, policy=agent)
    return (time.process_time() - begin) * 1000 / (len(episodes) * steps)


async def worked(
    queue: JobQueue, blobs: BlobStore, episodes: Sequence[Job], steps: int, calls: int
) -> float:
    """CPU milliseconds per step of a whole worker."""
    world: Any = World()

    async def played(job: Job) -> Trajectory:
        agent: Any = Agent(steps, calls)
        return await play(job, world=world, policy=agent)

    await queue.submit(episodes)
    worker = Worker("bench", queue, blobs, played, Limits())
    begin = time.process_time()
    running = asyncio.create_task(worker.run())
    while (await queue.ledger("bench")).ended < len(episodes):
        await asyncio.sleep(0.05)
    spent = time.process_time() - begin
    worker.stop()
    await running
    return spent * 1000 / (len(episodes) * steps)


async def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--episodes", type=int, default=300)
    parser.add_argument("--steps", type=int, default=5)
    parser.add_argument("--calls", type=int, default=1)
    args = parser.parse_args()
    episodes = jobs(args.episodes, args.calls)
    binary = shutil.which("redis-server")
    if binary is None:
        raise SystemExit("benchmarks/rollout.py needs redis-server; see wmr1 doctor")
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "redis.sock")
        server = subprocess.Popen(
            [binary, "--port", "0", "--unixsocket", str(path), "--save", "", "--dir", folder],
            stdout=subprocess.PIPE,
        )
        assert server.stdout is not None
        next(line for line in server.stdout if b"eady to accept connections" in line)
        try:
            async with RedisJobQueue(f"unix://{path}") as queue:
                args_of = (episodes, args.steps, args.calls)
                blobs = open_blobs(str(Path(folder, "blobs")))
                found = {
                    "play": await alone(*args_of),
                    "worker_in_memory": await worked(MemoryJobQueue(), MemoryBlobs(), *args_of),
                    "worker": await worked(queue, blobs, *args_of),
                }
        finally:
            server.kill()
            server.wait()
    report = {
        "benchmark": "rollout",
        "machine": platform.machine(),
        "cores": os.cpu_count(),
        "python": platform.python_version(),
        **vars(args),
        "cpu_ms_per_step": {name: round(ms, 3) for name, ms in found.items()},
    }
    print(json.dumps(report, indent=2))


if __name__ == "__main__":
    asyncio.run(main())
