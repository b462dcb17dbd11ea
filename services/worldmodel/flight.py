"""Single flight: equal work asked for at the same time is done once.

In-process only. Nothing is remembered after the work has ended; that is a cache's task.
"""

import asyncio
from collections.abc import Callable, Coroutine
from dataclasses import dataclass
from typing import Any, Generic, TypeVar

from wmkit.rpc.context import detached

K = TypeVar("K")
V = TypeVar("V")


@dataclass(slots=True)
class _Call(Generic[V]):
    task: asyncio.Task[V]
    waiters: int = 0


class Flight(Generic[K, V]):
    """Callers that ask for one key at the same time share one task.

    The work runs in a task of its own and without the deadline of whoever started it, so a
    caller that gives up does not take the others down; when the last one has gone, the work
    is cancelled and its slot is free.
    """

    def __init__(self) -> None:
        self._calls: dict[K, _Call[V]] = {}

    async def run(self, key: K, work: Callable[[], Coroutine[Any, Any, V]]) -> tuple[V, bool]:
        """The result of `work()` and whether another caller had started it.

        Raises whatever the work raises, for every caller.
        """
        call = self._calls.get(key)
        shared = call is not None
        if call is None:
            call = _Call(asyncio.create_task(work(), context=detached()))
            self._calls[key] = call
            call.task.add_done_callback(lambda task: self._end(key, task))
        call.waiters += 1
        try:
            return await asyncio.shield(call.task), shared
        finally:
            call.waiters -= 1
            if not call.waiters and not call.task.done():
                # Nobody may join a call that is on its way out.
                self._forget(key, call.task)
                call.task.cancel()

    def _end(self, key: K, task: asyncio.Task[V]) -> None:
        self._forget(key, task)
        if not task.cancelled():
            task.exception()  # Marks it as seen: the last waiter may have left meanwhile.

    def _forget(self, key: K, task: asyncio.Task[V]) -> None:
        call = self._calls.get(key)
        if call is not None and call.task is task:
            del self._calls[key]
