"""Who may be inside an engine that batches by itself: many answers, or one update alone.

Bounded places inside and a bounded queue before them, first come first served. Belongs to one
event loop; it knows nothing of models.
"""

import asyncio
from collections import deque
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress

from services.policy import metrics
from wmkit.domain.errors import Overloaded


class Gate:
    """At most `places` answers inside and `queue` waiting.

    `hold_s` is the estimate of how long one stays, for the time that a refusal names.
    """

    def __init__(self, places: int, queue: int) -> None:
        self._places = places
        self._queue = queue
        self._inside = 0
        self._closed = False
        self._waiting: deque[asyncio.Future[None]] = deque()
        self._empty = asyncio.Event()
        self._empty.set()
        self.hold_s = 0.1

    @property
    def waiting(self) -> int:
        return len(self._waiting)

    @asynccontextmanager
    async def place(self) -> AsyncIterator[None]:
        """Wait for a place and keep it. Raises Overloaded where too many wait already."""
        await self._enter()
        try:
            yield
        finally:
            self._leave()

    @asynccontextmanager
    async def alone(self) -> AsyncIterator[None]:
        """Let nobody in any more, wait until all have left, and keep the gate closed meanwhile."""
        assert not self._closed, "one update at a time"
        self._closed = True
        try:
            await self._empty.wait()
            yield
        finally:
            self._closed = False
            self._admit()

    async def _enter(self) -> None:
        if not self._closed and not self._waiting and self._inside < self._places:
            self._inside += 1
            self._empty.clear()
            return
        if len(self._waiting) >= self._queue:
            rounds = len(self._waiting) / self._places
            raise Overloaded(
                f"{len(self._waiting)} requests are waiting for the policy",
                retry_after_s=max(0.1, rounds * self.hold_s),
            )
        ticket: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._waiting.append(ticket)
        metrics.QUEUED.set(len(self._waiting))
        try:
            await ticket
        except asyncio.CancelledError:
            if ticket.done() and not ticket.cancelled():
                self._leave()  # the place came too late
            else:
                with suppress(ValueError):
                    self._waiting.remove(ticket)
            raise
        finally:
            metrics.QUEUED.set(len(self._waiting))

    def _leave(self) -> None:
        self._inside -= 1
        self._admit()

    def _admit(self) -> None:
        while not self._closed and self._waiting and self._inside < self._places:
            ticket = self._waiting.popleft()
            if not ticket.done():
                self._inside += 1
                ticket.set_result(None)
        if self._inside:
            self._empty.clear()
        else:
            self._empty.set()
