"""Drawn pictures in memory: the least recently used go first; equal work is done once.

In-process only. What is shared between replicas lies in the blob store.
"""

import asyncio
from collections.abc import Callable, Coroutine
from dataclasses import dataclass
from typing import Any

from wmkit.domain.transition import Rendering
from wmkit.lru import Lru
from wmkit.rpc.context import detached

_OVERHEAD_BYTES = 2_000


@dataclass(slots=True)
class _Work:
    task: asyncio.Task[Rendering]
    waiters: int = 0


class RenderCache:
    """Renderings with a picture or elements, at most `capacity` bytes of them; 0 keeps none."""

    def __init__(self, capacity: int) -> None:
        self._kept: Lru[str, Rendering] = Lru(capacity, _bytes)
        self._open: dict[tuple[str, float], _Work] = {}

    async def get(
        self, key: str, timeout_s: float, make: Callable[[], Coroutine[Any, Any, Rendering]]
    ) -> tuple[Rendering, bool]:
        """The rendering of `key` and whether another call had made or begun it.

        Callers of one key who give it the same time share one `make`, which runs without any
        one caller's deadline and is cancelled when the last of them has gone. Failures are
        handed out but not kept: a render that failed may succeed under less load.
        """
        if (kept := self._kept.get(key)) is not None:
            return kept, True
        work = self._open.get((key, timeout_s))
        shared = work is not None
        if work is None:
            work = _Work(asyncio.create_task(make(), context=detached()))
            self._open[key, timeout_s] = work
            work.task.add_done_callback(lambda task: self._end(key, timeout_s, task))
        work.waiters += 1
        try:
            return await asyncio.shield(work.task), shared
        finally:
            work.waiters -= 1
            if not work.waiters and not work.task.done():
                self._forget(key, timeout_s, work.task)
                work.task.cancel()

    def _end(self, key: str, timeout_s: float, task: asyncio.Task[Rendering]) -> None:
        self._forget(key, timeout_s, task)
        # `exception` marks a failure as seen where the last waiter has left meanwhile.
        if task.cancelled() or task.exception() is not None or task.result().reason is not None:
            return
        self._kept[key] = task.result()

    def _forget(self, key: str, timeout_s: float, task: asyncio.Task[Rendering]) -> None:
        work = self._open.get((key, timeout_s))
        if work is not None and work.task is task:
            del self._open[key, timeout_s]


def _bytes(rendering: Rendering) -> int:
    picture = len(rendering.image.data) if rendering.image else 0
    return picture + 300 * len(rendering.elements) + _OVERHEAD_BYTES
