"""The index in Redis: small records with a lifetime that is renewed by use.

Commands that wait at the same time travel as one pipeline, in the order in which they were
issued. Payloads, pictures and other large bytes are in the blob store, never here.
"""

import asyncio
from collections.abc import Callable
from typing import Any

from redis.asyncio import Redis
from redis.asyncio.client import Pipeline
from redis.exceptions import RedisError

from wmkit.domain.errors import Unavailable

_BATCH = 512
"""Commands per pipeline."""

_Command = Callable[[Pipeline], Any]
_Waiting = tuple[_Command, asyncio.Future[Any]]


class Index:
    """Keys under one prefix. Every method raises Unavailable when Redis does not answer."""

    def __init__(
        self, redis: Redis, *, prefix: str, ttl_s: float, pin_ttl_s: float | None = None
    ) -> None:
        self._redis = redis
        self._prefix = prefix
        self._ttl_ms = max(1, round(ttl_s * 1000))
        self._pin_ms = max(self._ttl_ms, round((pin_ttl_s or 0.0) * 1000))
        self._waiting: list[_Waiting] = []
        self._sender: asyncio.Task[None] | None = None
        self._touched: dict[str, bytes] = {}

    async def get(self, key: str) -> bytes | None:
        reply: bytes | None = await self._issue(lambda p: p.get(self._prefix + key))
        return reply

    async def put(self, key: str, value: bytes, ttl_s: float | None = None) -> None:
        """Store a value, for the usual lifetime unless told otherwise."""
        ttl_ms = self._ttl_ms if ttl_s is None else max(1, round(ttl_s * 1000))
        await self._issue(lambda p: p.set(self._prefix + key, value, px=ttl_ms))

    async def put_first(self, key: str, value: bytes) -> bytes:
        """Store `value` unless the key exists; the value that is there afterwards."""
        older: bytes | None = await self._issue(
            lambda p: p.set(self._prefix + key, value, px=self._ttl_ms, nx=True, get=True)
        )
        return value if older is None else older

    async def pin(self, key: str, value: bytes) -> None:
        """Give a key the lifetime of pinned ones, writing it if Redis has it no more.

        Renewals never shorten a lifetime, so the pin holds; pinning again renews it.
        """
        await asyncio.gather(self._set_missing(key, value), self._extend(key, self._pin_ms))

    async def acquire(self, key: str, owner: str, ttl_s: float) -> bool:
        """Whether nobody held `key`, so that `owner` holds it now."""
        ttl_ms = max(1, round(ttl_s * 1000))
        name = self._prefix + key
        return bool(await self._issue(lambda p: p.set(name, owner, px=ttl_ms, nx=True)))

    async def keep(self, key: str, owner: str, ttl_s: float) -> bool:
        """Hold `key` for longer; False where another holds it or nobody does any more."""
        if await self.get(key) != owner.encode():
            return False
        ttl_ms = max(1, round(ttl_s * 1000))
        return bool(await self._issue(lambda p: p.pexpire(self._prefix + key, ttl_ms)))

    async def release(self, key: str, owner: str) -> None:
        """Let go of `key`, unless another holds it by now."""
        if await self.get(key) == owner.encode():
            await self._issue(lambda p: p.delete(self._prefix + key))

    def touch(self, key: str, value: bytes) -> None:
        """Renew a key at the next `renew`; `value` restores it if Redis has evicted it."""
        self._touched[key] = value

    def touched(self, key: str) -> bool:
        """Whether a key waits for the next `renew`."""
        return key in self._touched

    async def renew(self) -> int:
        """Give every touched key its full lifetime again; how many had to be restored.

        When Redis does not answer, the keys wait for the next `renew`.
        """
        touched, self._touched = self._touched, {}
        keys = list(touched)
        restored = 0
        try:
            for start in range(0, len(keys), _BATCH):
                part = keys[start : start + _BATCH]
                longer = await asyncio.gather(*(self._extend(key, self._ttl_ms) for key in part))
                # Either gone or pinned for longer than this.
                rest = [key for key, done in zip(part, longer, strict=True) if not done]
                made = await asyncio.gather(*(self._set_missing(k, touched[k]) for k in rest))
                restored += sum(bool(new) for new in made)
        except Unavailable:
            self._touched = touched | self._touched
            raise
        return restored

    async def ping(self) -> None:
        await self._issue(lambda p: p.ping())

    async def close(self) -> None:
        """Wait for what is under way and drop the connections."""
        if self._sender is not None:
            await self._sender
        await self._redis.aclose()

    def _extend(self, key: str, ttl_ms: int) -> asyncio.Future[Any]:
        """Whether the key is there and lives longer now."""
        return self._issue(lambda p: p.pexpire(self._prefix + key, ttl_ms, gt=True))

    def _set_missing(self, key: str, value: bytes) -> asyncio.Future[Any]:
        return self._issue(lambda p: p.set(self._prefix + key, value, px=self._ttl_ms, nx=True))

    def _issue(self, command: _Command) -> asyncio.Future[Any]:
        future = asyncio.get_running_loop().create_future()
        self._waiting.append((command, future))
        # One pipeline is under way at a time: whoever comes meanwhile shares the next one,
        # so batches grow with the load and a lone command never waits.
        if self._sender is None or self._sender.done():
            self._sender = asyncio.create_task(self._send())
        return future

    async def _send(self) -> None:
        while self._waiting:
            batch, self._waiting = self._waiting[:_BATCH], self._waiting[_BATCH:]
            pipeline = self._redis.pipeline(transaction=False)
            for command, _ in batch:
                command(pipeline)
            try:
                replies = await pipeline.execute(raise_on_error=False)
            except (RedisError, OSError) as error:
                replies = [error] * len(batch)
            except BaseException:
                for _, future in batch:
                    future.cancel()
                raise
            for (_, future), reply in zip(batch, replies, strict=True):
                if future.done():
                    continue
                if isinstance(reply, Exception):
                    future.set_exception(Unavailable(f"Redis does not answer: {reply}"))
                else:
                    future.set_result(reply)
