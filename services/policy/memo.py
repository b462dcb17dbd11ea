"""Answers to recent requests by request id, so that a repeated call is not sampled again.

In this process only, successes only, bounded in time and size.
"""

import asyncio
import time
from collections import OrderedDict
from collections.abc import Awaitable, Callable
from dataclasses import dataclass

from wmkit.domain.errors import InvalidRequest


@dataclass(slots=True)
class _Entry:
    body: str
    answer: "asyncio.Future[bytes]"
    expires: float


class Memo:
    """Joins and replays calls of equal (`caller`, `request_id`); answers are kept as bytes."""

    def __init__(
        self,
        ttl_s: float = 600.0,
        max_bytes: int = 64 << 20,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._ttl_s = ttl_s
        self._max_bytes = max_bytes
        self._clock = clock
        self._held = 0
        self._entries: OrderedDict[tuple[str, str], _Entry] = OrderedDict()

    async def once(
        self, key: tuple[str, str], body: str, produce: Callable[[], Awaitable[bytes]]
    ) -> bytes:
        """The answer of the first successful `produce` for `key`.

        `body` is a digest of the request. Raises InvalidRequest for a known key with another
        body, and whatever `produce` raises.
        """
        self._expire()
        while (entry := self._entries.get(key)) is not None:
            if entry.body != body:
                raise InvalidRequest(
                    f"request id {key[1]!r} was used for another request", "request_id"
                )
            try:
                return await asyncio.shield(entry.answer)
            except asyncio.CancelledError:
                # Either we were cancelled, or the caller that did the work was: then it is ours.
                if not entry.answer.cancelled():
                    raise
        return await self._first(key, body, produce)

    async def _first(
        self, key: tuple[str, str], body: str, produce: Callable[[], Awaitable[bytes]]
    ) -> bytes:
        entry = _Entry(body, asyncio.get_running_loop().create_future(), float("inf"))
        self._entries[key] = entry
        try:
            answer = await produce()
        except BaseException as error:
            del self._entries[key]
            if isinstance(error, Exception):
                entry.answer.set_exception(error)
                entry.answer.exception()  # seen: nobody else may be waiting for it
            else:
                entry.answer.cancel()
            raise
        entry.answer.set_result(answer)
        entry.expires = self._clock() + self._ttl_s
        self._entries.move_to_end(key)
        self._held += len(answer)
        return answer

    def _expire(self) -> None:
        now = self._clock()
        for key, entry in list(self._entries.items()):
            if not entry.answer.done():
                continue
            if entry.expires > now and self._held <= self._max_bytes:
                break
            self._held -= len(entry.answer.result())
            del self._entries[key]
