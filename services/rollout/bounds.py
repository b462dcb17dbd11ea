"""At most so many calls to one service at a time, however many episodes are in flight.

An episode that waits for its turn does so within its own deadline. No queue of its own and
no order but that of arrival; what the service itself refuses is `failures.patiently`'s affair.
"""

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any, TypeVar, cast

from services.rollout import metrics

P = TypeVar("P")


def bounded(port: P, limit: int, service: str) -> P:
    """The same port, every method of which is a coroutine function, with `limit` calls at once."""
    return cast(P, _Bounded(port, limit, service))


class _Bounded:
    def __init__(self, port: Any, limit: int, service: str) -> None:
        self._port = port
        self._turn = asyncio.Semaphore(limit)
        self._out = metrics.CALLS_OUT.labels(service)

    def __getattr__(self, name: str) -> Callable[..., Awaitable[Any]]:
        method = getattr(self._port, name)

        async def call(*args: Any, **kwargs: Any) -> Any:
            async with self._turn:
                with self._out.track_inprogress():
                    return await method(*args, **kwargs)

        setattr(self, name, call)
        return call
