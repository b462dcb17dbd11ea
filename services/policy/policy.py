"""The policy as a port: turns to a prompt, through the engine, to a `Generation`.

`wmkit.ports.Policy` without a network in between; the gRPC servicer is a thin layer above it.
"""

import asyncio
from collections.abc import Callable, Mapping, Sequence
from types import MappingProxyType

from services.policy.engine import Answer, Engine, Prompt
from services.policy.updates import Updates
from services.policy.versions import Version
from wmkit.domain.errors import InvalidRequest, NotFound
from wmkit.domain.generation import (
    EncodedImage,
    FinishReason,
    Generation,
    NcclTransfer,
    Picture,
    PolicyInfo,
    Sampling,
    Turn,
)
from wmkit.modeling import EncodedPixels
from wmkit.ports import BlobStore

_NO_IMAGES: Mapping[str, bytes] = MappingProxyType({})


class LocalPolicy:
    """Implements `wmkit.ports.Policy` on an engine in this process."""

    def __init__(self, engine: Engine, blobs: BlobStore, updates: Updates) -> None:
        self._engine = engine
        self._blobs = blobs
        self._updates = updates

    async def generate(
        self,
        turns: Sequence[Turn],
        sampling: Sampling,
        *,
        policy_id: str = "",
        min_version: int = 0,
        request_id: str = "",
        images: Mapping[str, bytes] = _NO_IMAGES,
    ) -> Generation:
        """Continue `turns` with one more assistant turn.

        Pictures that `images` lacks come from the blob store. Raises the errors of
        `Engine.generate`, and InvalidRequest or NotFound for a picture that is none.
        """
        prompt = await self._prompt(turns, sampling, images)
        answer, version = await self._engine.generate(prompt, policy_id, min_version)
        return self._generation(prompt, answer, version)

    async def update_weights(
        self,
        policy_id: str,
        version: int,
        weights_digest: str,
        *,
        probe: Sequence[float] = (),
        abort: bool = False,
    ) -> int:
        new = Version(policy_id, version, weights_digest)
        await self._updates.publish(new, probe=probe, abort=abort)
        return version

    async def receive_weights(
        self,
        policy_id: str,
        version: int,
        transfer: NcclTransfer,
        *,
        probe: Sequence[float] = (),
        abort: bool = False,
    ) -> int:
        await self._updates.receive(policy_id, version, transfer, probe=probe, abort=abort)
        return version

    async def info(self) -> PolicyInfo:
        engine, processor = self._engine, self._engine.processor
        return PolicyInfo(
            policy_id=engine.current.policy_id,
            version=engine.current.version,
            model=f"{processor.config.model_type} {processor.folder.resolve().name}",
            processor=processor.processor_digest,
            device=engine.device,
            parameters=engine.parameters,
            queued=engine.queued,
            engine=engine.name,
        )

    async def _prompt(
        self, turns: Sequence[Turn], sampling: Sampling, images: Mapping[str, bytes]
    ) -> Prompt:
        encoder = self._engine.processor.images
        pictures = [
            (part.digest, f"turns[{i}].parts[{j}].image")
            for i, turn in enumerate(turns)
            for j, part in enumerate(turn.parts)
            if isinstance(part, Picture)
        ]
        known = {digest: encoder.cached(digest) for digest, _ in pictures}
        missing = {
            digest: field
            for digest, field in reversed(pictures)
            if known[digest] is None and digest not in images
        }
        fetched = await asyncio.gather(*(self._fetch(d, field) for d, field in missing.items()))
        data = dict(images) | dict(zip(missing, fetched, strict=True))

        def encode() -> Prompt:
            encoded = [known[d] or _encode(encoder.encode, data[d], field) for d, field in pictures]
            ids = self._engine.processor.chat.encode(turns, [image.tokens for image in encoded])
            return Prompt(ids, encoded, sampling)

        # Decoding pictures and text takes milliseconds, so it stays off the event loop.
        return await asyncio.to_thread(encode)

    async def _fetch(self, digest: str, field: str) -> bytes:
        try:
            return await self._blobs.get(digest)
        except NotFound:
            raise NotFound(f"{field}: there is no picture {digest}", digest) from None

    def _generation(self, prompt: Prompt, answer: Answer, version: Version) -> Generation:
        ended = answer.reason is FinishReason.END
        spoken = answer.token_ids[:-1] if ended else answer.token_ids
        return Generation(
            prompt_token_ids=tuple(prompt.ids),
            token_ids=tuple(answer.token_ids),
            logprobs=tuple(answer.logprobs),
            text=self._engine.processor.chat.decode(spoken),
            finish_reason=answer.reason,
            policy_id=version.policy_id,
            version=version.version,
            images=tuple(
                EncodedImage(i.digest, i.width_px, i.height_px, i.grid_thw) for i in prompt.images
            ),
            processor=self._engine.processor.processor_digest,
            stop=answer.stop,
        )


def _encode(encode: Callable[[bytes], EncodedPixels], data: bytes, field: str) -> EncodedPixels:
    try:
        return encode(data)
    except InvalidRequest as error:
        raise InvalidRequest(f"{field}: {error.message}", field) from error
