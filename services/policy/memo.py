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
class _Pending:
    body: str
    answer: "asyncio.Future[bytes]"


@dataclass(slots=True)
class _Kept:
    body: str
    answer: bytes
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
        self._pending: dict[tuple[str, str], _Pending] = {}
        # In the order in which they expire, so that forgetting looks at the front only.
        self._kept: OrderedDict[tuple[str, str], _Kept] = OrderedDict()

    async def once(
        self, key: tuple[str, str], body: str, produce: Callable[[], Awaitable[bytes]]
    ) -> bytes:
        """The answer of the first successful `produce` for `key`.

        `body` is a digest of the request. Raises InvalidRequest for a known key with another
        body, and whatever `produce` raises.
        """
        self._expire()
        while (pending := self._pending.get(key)) is not None:
            _check(key, pending.body, body)
            try:
                return await asyncio.shield(pending.answer)
            except asyncio.CancelledError:
                # Either we were cancelled, or the caller that did the work was: then it is ours.
                if not pending.answer.cancelled():
                    raise
        if (kept := self._kept.get(key)) is not None:
            _check(key, kept.body, body)
            return kept.answer
        return await self._first(key, body, produce)

    async def _first(
        self, key: tuple[str, str], body: str, produce: Callable[[], Awaitable[bytes]]
    ) -> bytes:
        pending = _Pending(body, asyncio.get_running_loop().create_future())
        self._pending[key] = pending
        try:
            answer = await produce()
        except BaseException as error:
            if isinstance(error, Exception):
                pending.answer.set_exception(error)
                pending.answer.exception()  # seen: nobody else may be waiting for it
            else:
                pending.answer.cancel()
            raise
        finally:
            del self._pending[key]
        pending.answer.set_result(answer)
        self._kept[key] = _Kept(body, answer, self._clock() + self._ttl_s)
        self._held += len(answer)
        return answer

    def _expire(self) -> None:
        now = self._clock()
        while self._kept:
            oldest = next(iter(self._kept.values()))
            if oldest.expires > now and self._held <= self._max_bytes:
                return
            self._kept.popitem(last=False)
            self._held -= len(oldest.answer)


def _check(key: tuple[str, str], known: str, body: str) -> None:
    if known != body:
        raise InvalidRequest(f"request id {key[1]!r} was used for another request", "request_id")
