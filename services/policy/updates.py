"""Weight updates: from the blob store into the engine, and remembered in Redis.

A restarted service loads the last published version before it serves. The record is kept
per kind of model, so that another checkpoint never meets weights that cannot fit it.
"""

import asyncio
import json
from collections.abc import Awaitable, Callable, Coroutine, Mapping, Sequence
from typing import Any, Protocol, TypeVar

import structlog
from redis.exceptions import RedisError

from services.policy import metrics
from services.policy.engine import Engine, Update
from services.policy.versions import Version, check_update
from wmkit.blobs import digest
from wmkit.domain.errors import BadCheckpoint, CorruptBlob, NotFound, Unavailable, WMError
from wmkit.domain.generation import NcclTransfer
from wmkit.modeling import Processor
from wmkit.ports import BlobStore

log = structlog.get_logger(__name__)

T = TypeVar("T")


BY_NCCL = "nccl"
"""Stands in the place of a digest for weights that no store holds."""


class Records(Protocol):
    """Where the last published version is kept."""

    def get(self, key: str, /) -> Awaitable[Any]: ...

    def set(self, key: str, value: str, /) -> Awaitable[Any]: ...


class Updates:
    """Publishes versions to `engine` and keeps the last one in `records`."""

    def __init__(
        self, engine: Engine, blobs: BlobStore, records: Records, fingerprint: str
    ) -> None:
        self._engine = engine
        self._blobs = blobs
        self._records = records
        self._key = f"wmr1:policy:weights:{fingerprint}"
        self._order = asyncio.Lock()

    async def publish(
        self, new: Version, *, probe: Sequence[float] = (), abort: bool = False
    ) -> float:
        """Load `new` and remember it; returns the seconds that loading took.

        Safe to repeat. Raises NotFound for weights that are not in the blob store,
        CorruptBlob for those that are not what their digest names, the errors of
        `Engine.update`, and Unavailable when the record cannot be kept: the weights are
        loaded then, and repeating the call records them.
        """

        async def fetch() -> Update:
            return Update(new, await self._weights(new), probe=probe, abort=abort)

        return await self._to_its_end(self._publish(new, fetch))

    async def receive(
        self,
        policy_id: str,
        version: int,
        transfer: NcclTransfer,
        *,
        probe: Sequence[float] = (),
        abort: bool = False,
    ) -> float:
        """Load weights that come by broadcast. They are in no store, so a restarted service
        does not have them and starts from the last version that came by file."""
        new = Version(policy_id, version, BY_NCCL)

        async def fetch() -> Update:
            return Update(new, transfer=transfer, probe=probe, abort=abort)

        return await self._to_its_end(self._publish(new, fetch))

    async def _to_its_end(self, work: Coroutine[Any, Any, T]) -> T:
        # Even when the caller leaves: what is loaded must also be recorded.
        return await asyncio.shield(asyncio.create_task(work))

    async def _publish(self, new: Version, fetch: Callable[[], Awaitable[Update]]) -> float:
        async with self._order:
            check_update(self._engine.current, new)
            seconds = 0.0
            if new != self._engine.current:
                try:
                    seconds = await self._engine.update(await fetch())
                except WMError as error:
                    log.warning(
                        "weights refused",
                        policy_id=new.policy_id,
                        version=new.version,
                        reason=error.message,
                    )
                    raise
                metrics.VERSION.set(new.version)
                log.info("weights loaded", policy_id=new.policy_id, version=new.version, s=seconds)
            if new.digest != BY_NCCL:
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
            await self._engine.update(Update(last, await self._weights(last)))
            metrics.VERSION.set(last.version)
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


def fingerprint(processor: Processor) -> str:
    """Names the kind of model: equal for checkpoints that take the same weights and inputs."""
    config = processor.config.to_dict()
    shape = {part: _numbers(config.get(part) or {}) for part in ("text_config", "vision_config")}
    content = json.dumps([processor.processor_digest, config["model_type"], shape], sort_keys=True)
    return digest(content.encode())[:16]


def _numbers(config: Mapping[str, Any]) -> dict[str, int]:
    return {
        key: value
        for key, value in config.items()
        if isinstance(value, int) and not isinstance(value, bool)
    }


async def _redis(call: Awaitable[T]) -> T:
    try:
        return await call
    except (RedisError, OSError) as error:
        raise Unavailable(f"Redis does not answer: {error}") from error
