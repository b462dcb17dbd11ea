"""A trainer service for tests: real gRPC, with a bandit for world, policy and worker."""

import asyncio
from collections.abc import AsyncIterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

from wmr1.trainer.v1 import trainer_pb2_grpc as rpc

from services.trainer.app import SERVICE
from services.trainer.run import Ports
from services.trainer.runs import Runs
from services.trainer.servicer import TrainerServicer
from services.trainer.settings import TrainerSettings
from tests.trainer_cases import Bandit
from wmkit.clients.trainer import TrainerClient
from wmkit.domain.runs import RunEvent
from wmkit.rpc.server import running

RECIPE = """
name = "bandit"
seed = {seed}
checkpoint = "{checkpoint}"
[tasks]
templates = ["settings_turn_on"]
train_seeds = [0, 1000]
eval_seeds = [1000, 2000]
eval_n = {eval_n}
[schedule]
iterations = {iterations}
groups = 4
group_size = 8
stall_s = 20
[reward]
beta = 0.0
[optimizer]
lr = {lr}
weight_decay = 0.0
warmup = 1
"""


@dataclass
class Setting:
    """A trainer service with its client, a bandit, the folder of runs and the torch thread."""

    client: TrainerClient
    runs: Runs
    bandit: Bandit
    folder: Path
    thread: ThreadPoolExecutor

    def recipe(
        self, *, iterations: int = 2, lr: float = 2e-3, eval_n: int = 12, seed: int = 1
    ) -> str:
        return RECIPE.format(
            checkpoint=self.bandit.folder,
            iterations=iterations,
            lr=lr,
            eval_n=eval_n,
            seed=seed,
        )

    async def train(self, recipe: str) -> tuple[Path, list[RunEvent]]:
        run = await self.client.create_run(recipe)
        events = [event async for event in self.client.watch_run(run.run_id)]
        return self.folder / run.run_id, events


@asynccontextmanager
async def service(bandit: Bandit, folder: Path) -> AsyncIterator[Setting]:
    ports = Ports(bandit.queue, bandit.blobs, bandit, bandit.world)

    def register(server: object) -> list[str]:
        rpc.add_TrainerServiceServicer_to_server(TrainerServicer(runs), server)
        return [SERVICE]

    settings = TrainerSettings(port=0, drain_pause_s=0, drain_grace_s=0)
    with ThreadPoolExecutor(1) as thread:
        runs = Runs(folder, ports, thread=thread)
        runs.restore()
        worker = asyncio.create_task(runs.work())
        async with (
            running(settings, "trainer", register) as server,
            TrainerClient(server.address) as client,
            bandit.working(),
        ):
            yield Setting(client, runs, bandit, folder, thread)
            worker.cancel()
            with suppress(asyncio.CancelledError):
                await worker
            await runs.close()
