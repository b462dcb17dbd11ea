"""Weight updates: from the blob store into the engine, and remembered in Redis.

A restarted service loads the last published version before it serves. The record is kept
per kind of model, so that another checkpoint never meets weights that cannot fit it.
"""

import asyncio
import json
from collections.abc import Awaitable
from typing import Any, Protocol, TypeVar

import structlog
from redis.exceptions import RedisError

from services.policy.engine import Engine, Version
from wmkit.blobs import digest
from wmkit.domain.errors import BadCheckpoint, CorruptBlob, NotFound, Unavailable
from wmkit.modeling import Loaded
from wmkit.modeling.weights import own_tensors
from wmkit.ports import BlobStore

log = structlog.get_logger(__name__)

T = TypeVar("T")


class Records(Protocol):
    """Where the last published version is kept."""

    def get(self, key: str, /) -> Awaitable[Any]: ...

    def set(self, key: str, value: str, /) -> Awaitable[Any]: ...


class Updates:
    """Publishes versions to `engine` and keeps the last one in `records`."""

    def __init__(self, engine: Engine, blobs: BlobStore, records: Records) -> None:
        self._engine = engine
        self._blobs = blobs
        self._records = records
        self._key = f"wmr1:policy:weights:{_fingerprint(engine.loaded)}"
        self._order = asyncio.Lock()

    async def publish(self, new: Version) -> float:
        """Load `new` and remember it; returns the seconds that loading took.

        Safe to repeat. Raises NotFound for weights that are not in the blob store, the
        errors of `Engine.update`, and Unavailable when the record cannot be kept: the
        weights are loaded then, and repeating the call records them.
        """
        # To its end even when the caller leaves: what is loaded must also be recorded.
        return await asyncio.shield(asyncio.create_task(self._publish(new)))

    async def _publish(self, new: Version) -> float:
        async with self._order:
            self._engine.check_update(new)
            seconds = 0.0
            if new != self._engine.current:
                seconds = await self._engine.update(new, await self._weights(new))
            record = {"policy_id": new.policy_id, "version": new.version, "digest": new.digest}
            await _redis(self._records.set(self._key, json.dumps(record)))
            return seconds

    async def restore(self) -> None:
        """Load the last published version, if there is one.

        Weights that are lost or damaged are reported in the log and left out: the version
        then tells callers that theirs is not loaded. Raises Unavailable without Redis.
        """
        stored = await _redis(self._records.get(self._key))
        if stored is None:
            return
        record = json.loads(stored)
        last = Version(record["policy_id"], record["version"], record["digest"])
        try:
            await self._engine.update(last, await self._weights(last))
        except (NotFound, CorruptBlob, BadCheckpoint) as error:
            log.warning(
                "the last published weights cannot be loaded; serving the checkpoint's own",
                policy_id=last.policy_id,
                version=last.version,
                reason=error.message,
            )

    async def _weights(self, version: Version) -> bytes:
        try:
            return await self._blobs.get(version.digest)
        except NotFound:
            raise NotFound(f"there are no weights {version.digest}", version.digest) from None


def _fingerprint(loaded: Loaded) -> str:
    shapes = {name: list(tensor.shape) for name, tensor in own_tensors(loaded.model).items()}
    content = json.dumps([loaded.processor_digest, shapes], sort_keys=True)
    return digest(content.encode())[:16]


async def _redis(call: Awaitable[T]) -> T:
    try:
        return await call
    except (RedisError, OSError) as error:
        raise Unavailable(f"Redis does not answer: {error}") from error
