"""Puts the trainer together: ports, the torch thread, the runs, the server."""

import asyncio
import signal
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import AsyncExitStack, suppress
from pathlib import Path
from typing import Any

import torch
from wmr1.trainer.v1 import trainer_pb2 as pb
from wmr1.trainer.v1 import trainer_pb2_grpc as rpc

from services.trainer.run import Ports
from services.trainer.runs import Runs
from services.trainer.servicer import TrainerServicer
from services.trainer.settings import TrainerSettings
from services.trainer.team import dismiss, follow
from services.trainer.world import World, joined, local_device
from wmkit.blobs import open_blobs
from wmkit.clients.policy import PolicyClient
from wmkit.clients.worldmodel import WorldModelClient
from wmkit.domain.errors import InvalidRequest
from wmkit.queue.redis import RedisJobQueue
from wmkit.rpc.server import serve

SERVICE: str = pb.DESCRIPTOR.services_by_name["TrainerService"].full_name


async def serve_trainer(settings: TrainerSettings) -> None:
    """Serve until told to stop; a run that is still going is ended with its summary.

    Under `torchrun` the first process serves, and the others train with it.
    """
    if settings.threads:
        torch.set_num_threads(settings.threads)
    device = local_device(settings.device)
    check_device(device)
    with joined(device) as world:
        if world.leads:
            await _lead(settings, world)
            return
        # The first process ends the others, once its last checkpoint is written.
        for number in (signal.SIGTERM, signal.SIGINT):
            signal.signal(number, signal.SIG_IGN)
        await asyncio.to_thread(follow, world, device)


async def _lead(settings: TrainerSettings, world: World) -> None:
    stack = AsyncExitStack()
    if world.size > 1:
        stack.callback(dismiss, world)

    async def register(server: Any) -> Sequence[str]:
        runs = await open_runs(settings, stack, world)
        worker = asyncio.create_task(runs.work())

        async def stop() -> None:
            worker.cancel()
            with suppress(asyncio.CancelledError):
                await worker
            await runs.close()

        stack.push_async_callback(stop)
        rpc.add_TrainerServiceServicer_to_server(TrainerServicer(runs), server)
        return [SERVICE]

    await serve(settings, "trainer", register, stack.aclose)


async def open_runs(settings: TrainerSettings, stack: AsyncExitStack, world: World) -> Runs:
    """The runs of a folder, connected to the rest of the system; `stack` closes it all.

    Raises InvalidRequest for a folder that cannot be used.
    """
    folder = Path(settings.runs)
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise InvalidRequest(f"WMR1_RUNS={folder}: {error.strerror}", "runs") from None
    thread = ThreadPoolExecutor(max_workers=1, thread_name_prefix="torch")
    stack.callback(thread.shutdown)
    ports = Ports(
        queue=await stack.enter_async_context(RedisJobQueue(settings.redis_url)),
        blobs=open_blobs(settings.blobs),
        policy=await stack.enter_async_context(PolicyClient(settings.policy)),
        world=await stack.enter_async_context(WorldModelClient(settings.worldmodel)),
    )
    runs = Runs(folder, ports, thread=thread, device=local_device(settings.device), world=world)
    runs.restore()
    return runs


def check_device(device: str) -> None:
    """Raises InvalidRequest for a device that cannot be used."""
    try:
        torch.empty(0, device=device)
    except (RuntimeError, AssertionError) as error:
        reason = str(error).splitlines()[0]
        raise InvalidRequest(f"WMR1_DEVICE={device}: {reason}", "device") from None
