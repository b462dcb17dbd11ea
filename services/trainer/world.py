"""The processes that train one model together: who they are, and how they agree.

One process is a world of its own and pays for nothing here. `torchrun` starts several: rank 0
talks to the other services and tells the rest what to do (`services.trainer.team`). It neither
shards a model nor knows what is trained.
"""

import os
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import timedelta
from typing import Any, TypeVar

import torch
import torch.distributed as dist

T = TypeVar("T")

COLLECTIVE = timedelta(minutes=30)
"""After this long without one of its peers a process gives up."""
PATIENCE = timedelta(days=30)
"""How long the other ranks wait for rank 0 while episodes are played."""


@dataclass(slots=True)
class World:
    """`rank` of `size` processes; `grouped`: in a process group, so that a model can be sharded."""

    rank: int = 0
    size: int = 1
    grouped: bool = False
    control: Any = None
    """Process group for orders from rank 0."""

    @property
    def leads(self) -> bool:
        """Whether this is the process that talks to the other services."""
        return self.rank == 0

    def order(self, value: T | None) -> T:
        """Rank 0's `value`, at every rank."""
        box: list[Any] = [value]
        if self.size > 1:
            dist.broadcast_object_list(box, src=0, group=self.control)
        ordered: T = box[0]
        return ordered

    def share(self, value: T) -> list[T]:
        """The values of all ranks, in the order of ranks, at every rank."""
        if self.size == 1:
            return [value]
        box: list[Any] = [None] * self.size
        dist.all_gather_object(box, value, group=self.control)
        return box

    def complaint(self, mine: str) -> str:
        """The first rank's complaint that is not empty, so that all of them raise it together
        instead of waiting for each other; "" when there is none."""
        return next(filter(None, self.share(mine)), "") if self.size > 1 else mine

    def total(self, values: Sequence[float]) -> list[float]:
        """Sums over all ranks, in float64."""
        if self.size == 1:
            return list(values)
        sums = torch.tensor(values, dtype=torch.float64)
        dist.all_reduce(sums, group=self.control)
        return [float(value) for value in sums]

    def wait(self) -> None:
        """Until every rank is here."""
        if self.size > 1:
            dist.barrier(group=self.control)

    def leave(self) -> None:
        """Out of all groups.

        A group's threads end with the last reference to it, and drop the tensors that they
        sent last when they come to it. One that does so while the interpreter ends aborts
        the process.
        """
        self.control = None
        if dist.is_initialized():
            dist.destroy_process_group()


def join(device: str, *, alone: bool = True) -> World:
    """The world that `torchrun` describes in the environment; without it, this process.

    `alone` False makes a process group even for one process, which sharding needs (and with
    it computing in another type than that of the weights).
    """
    size = int(os.environ.get("WORLD_SIZE", "1"))
    if size == 1 and alone:
        return World()
    if not dist.is_initialized():
        backend = "cpu:gloo,cuda:nccl" if torch.device(device).type == "cuda" else "gloo"
        if size == 1:
            store = dist.HashStore()  # type: ignore[attr-defined]
            dist.init_process_group(backend, store=store, rank=0, world_size=1, timeout=COLLECTIVE)
        else:
            dist.init_process_group(backend, timeout=COLLECTIVE)
    control = dist.new_group(backend="gloo", timeout=PATIENCE) if size > 1 else None
    return World(dist.get_rank(), dist.get_world_size(), True, control)


@contextmanager
def joined(device: str) -> Iterator[World]:
    """`join` for as long as a process trains, and `World.leave`."""
    world = join(device)
    try:
        yield world
    finally:
        world.leave()


def local_device(device: str) -> str:
    """`device` of this process: "cuda" means the GPU of its local rank."""
    if device == "cuda":
        return f"cuda:{os.environ.get('LOCAL_RANK', '0')}"
    return device
