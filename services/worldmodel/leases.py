"""One computation across replicas: whoever holds a lease in Redis works, the others wait.

A lease is a hint, not a lock: a holder that died or stalled loses it after `TTL_S`, another takes
over, and should both end up working, the first stored answer still wins (`index.put_first`).
So nothing here has to be exact about who holds what, only about who may begin.
"""

import asyncio
import random
import secrets
from collections.abc import Awaitable, Callable
from typing import TypeVar

import structlog

from services.worldmodel.index import Index
from wmkit.domain.errors import Unavailable
from wmkit.rpc.context import detached

log = structlog.get_logger(__name__)

V = TypeVar("V")

TTL_S = 5.0
"""How long a holder that says nothing keeps the others waiting; it renews at every third."""
FIRST_LOOK_S = 0.02
LAST_LOOK_S = 0.25
"""Pauses between two looks for the answer grow from one to the other."""


class Leases:
    """Leases under the keys of an index. In front of it, `flight` joins callers in process."""

    def __init__(self, index: Index, ttl_s: float = TTL_S) -> None:
        self._index = index
        self._ttl_s = ttl_s
        self._releasing: set[asyncio.Task[None]] = set()

    async def once(
        self,
        key: str,
        look: Callable[[], Awaitable[V | None]],
        work: Callable[[], Awaitable[V]],
    ) -> tuple[V, bool]:
        """What `look` finds, else the result of `work`, and whether it was worked for here.

        `look` says whether the answer is stored, `work` computes and stores it; neither is
        called again once there is an answer. When the holder fails, one of those who wait works
        in its place. Raises what `look` and `work` raise, Unavailable when Redis is away.
        """
        name, owner = f"lease:{key}", secrets.token_hex(8)
        pause_s = FIRST_LOOK_S
        while True:
            found = await look()
            if found is not None:
                return found, False
            if await self._index.acquire(name, owner, self._ttl_s):
                break
            await asyncio.sleep(pause_s * random.uniform(0.5, 1.0))
            pause_s = min(2 * pause_s, LAST_LOOK_S)
        keeping = asyncio.create_task(self._keep(name, owner))
        try:
            # The holder before us may have stored its answer after we looked.
            found = await look()
            if found is not None:
                return found, False
            return await work(), True
        finally:
            keeping.cancel()
            # In a task of its own: a caller that is cancelled must let go as well.
            releasing = asyncio.create_task(self._release(name, owner), context=detached())
            self._releasing.add(releasing)
            releasing.add_done_callback(self._releasing.discard)

    async def _keep(self, name: str, owner: str) -> None:
        while True:
            await asyncio.sleep(self._ttl_s / 3)
            try:
                if not await self._index.keep(name, owner, self._ttl_s):
                    return
            except Unavailable as error:
                log.warning("a lease could not be renewed", error=error.message)

    async def _release(self, name: str, owner: str) -> None:
        try:
            await self._index.release(name, owner)
        except Unavailable as error:
            log.warning("a lease is left to expire", error=error.message)
