"""A whole training run in one process, for tests that kill it: python resume_process.py FOLDER
CHECKPOINT [JOB | publish-VERSION].

The queue is a file, so it survives as Redis would. The bandit plays a job when its result is
asked for, by weights and seeds alone; with JOB the process dies by SIGKILL instead of playing
that one, with publish-VERSION right after that version was published.
"""

import asyncio
import json
import os
import signal
import sys
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

from services.trainer.run import Ports
from services.trainer.runs import Runs
from tests.trainer_cases import Bandit
from wmkit.blobs import open_blobs
from wmkit.domain.episode import Job, Result, ResultStatus
from wmkit.ports import Delivery, Ledger

RECIPE = """
name = "run"
seed = 5
checkpoint = "{checkpoint}"
[tasks]
templates = ["settings_turn_on"]
train_seeds = [0, 1000]
eval_seeds = [1000, 2000]
eval_n = 4
[schedule]
iterations = 6
groups = 2
group_size = 4
dynamic_sampling = true
max_refills = 1
[reward]
beta = 0.0
[loss]
kl_beta = 0.05
correction = "token_truncate"
[optimizer]
lr = 3e-4
schedule = "cosine"
epochs = 2
minibatches = 2
"""


class FileQueue:
    """`wmkit.ports.JobQueue` for one run, played by `bandit` on demand."""

    def __init__(self, path: Path, bandit: Bandit, die_at: str) -> None:
        self.path = path
        self.bandit = bandit
        self.die_at = die_at
        lines = path.read_text("utf-8").splitlines() if path.exists() else []
        self.ended = [Result.model_validate_json(line) for line in lines]
        self.waiting: dict[str, Job] = {}

    async def submit(self, jobs: Sequence[Job]) -> None:
        known = {result.job_id for result in self.ended}
        self.waiting |= {job.job_id: job for job in jobs if job.job_id not in known}

    async def results(
        self, run_id: str, cursor: str, count: int, block_ms: int
    ) -> tuple[Sequence[Result], str]:
        if len(self.ended) <= int(cursor) and self.waiting:
            await self._play(self.waiting.pop(next(iter(self.waiting))))
        found = self.ended[int(cursor) : int(cursor) + count]
        return found, str(int(cursor) + len(found))

    async def finish(self, delivery: Delivery, result: Result, **told: str) -> bool:
        self._end(result)
        return True

    async def lost(self, run_id: str) -> dict[str, float]:
        return {}

    async def ledger(self, run_id: str, phase: str = "") -> Ledger:
        return Ledger(
            len(self.ended) + len(self.waiting),
            **{s: sum(r.status == s for r in self.ended) for s in ResultStatus},
        )

    async def _play(self, job: Job) -> None:
        if job.job_id.split("/", 1)[1] == self.die_at:
            os.kill(os.getpid(), signal.SIGKILL)
        episode = await self.bandit.play(job)
        blob = await self.bandit.blobs.put(episode.model_dump_json().encode())
        named = job.model_dump(include={"job_id", "run_id", "phase", "group", "member"})
        self._end(Result(**named, status=ResultStatus.ACCEPTED, trajectory=blob))

    def _end(self, result: Result) -> None:
        self.ended.append(result)
        with self.path.open("a", encoding="utf-8") as file:
            file.write(result.model_dump_json() + "\n")


class DyingBandit(Bandit):
    """Its policy outlives the process: version and name stay, as in the policy service."""

    die_at = ""
    memory: Path

    async def update_weights(
        self, policy_id: str, version: int, weights_digest: str, **_: Any
    ) -> int:
        # As the policy service: no policy goes back to an older version.
        assert policy_id != self.policy_id or version >= self.version
        await super().update_weights(policy_id, version, weights_digest)
        self.memory.write_text(json.dumps([policy_id, version]), "utf-8")
        if self.die_at == f"publish-{version}":
            os.kill(os.getpid(), signal.SIGKILL)
        return version


async def main(folder: Path, checkpoint: Path, die_at: str = "") -> None:
    bandit = DyingBandit(checkpoint)
    bandit.die_at = die_at
    bandit.blobs = open_blobs(str(folder / "blobs"))
    bandit.memory = folder / "policy.json"
    if bandit.memory.exists():
        bandit.policy_id, bandit.version = json.loads(bandit.memory.read_text("utf-8"))
    queue = FileQueue(folder / "queue.jsonl", bandit, die_at)
    with ThreadPoolExecutor(1) as thread:
        ports = Ports(queue, bandit.blobs, bandit, bandit.world)
        runs = Runs(folder / "runs", ports, thread=thread)
        runs.restore()
        worker = asyncio.create_task(runs.work())
        if earlier := runs.list():
            record = await runs.resume(earlier[0].run_id)
        else:
            record = await runs.create(RECIPE.format(checkpoint=checkpoint))
        async for event in runs.watch(record.run_id):
            print(event.phase, event.message, flush=True)
        worker.cancel()


if __name__ == "__main__":
    asyncio.run(main(Path(sys.argv[1]), Path(sys.argv[2]), *sys.argv[3:]))
