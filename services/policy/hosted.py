"""The engine `openai`: a hosted model behind an OpenAI-compatible server, to be evaluated.

Such a server gives text and no token ids, so the ids here are the text's UTF-8 bytes: enough
for a rollout worker to continue a thought, never to train on. Log-probabilities are not
promised and not made up: answers carry none, and `info` says so.
"""

import asyncio
import base64
import io
from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import Any

import httpx
from PIL import Image

from services.policy.gate import Gate
from services.policy.hosted_wire import HostedModel, Reply, Stream
from services.policy.settings import PolicySettings
from services.policy.stops import StopSearch
from services.policy.versions import Version, check_request
from wmkit.domain.errors import InvalidRequest, NotFound
from wmkit.domain.generation import (
    EncodedImage,
    FinishReason,
    Generation,
    NcclTransfer,
    Part,
    Picture,
    PolicyInfo,
    Sampling,
    Text,
    Tokens,
    Turn,
)
from wmkit.ports import BlobStore

START, END, IMAGE = 256, 257, 258
"""Ids beyond the 256 bytes: a turn opens, a turn closes, a picture."""

PROCESSOR = "bytes-1"

_NO_IMAGES: Mapping[str, bytes] = MappingProxyType({})


def hosted_model(settings: PolicySettings) -> HostedModel:
    """Raises InvalidRequest where the settings name no server or model."""
    if not settings.openai_url.startswith(("http://", "https://")) or not settings.openai_model:
        raise InvalidRequest(
            "WMR1_POLICY_ENGINE=openai needs WMR1_OPENAI_URL (https://host/v1) and "
            "WMR1_OPENAI_MODEL",
            field="openai_url",
        )
    return HostedModel(
        url=settings.openai_url,
        model=settings.openai_model,
        key=settings.openai_key,
        timeout_s=settings.openai_timeout_s,
        attempts=settings.openai_attempts,
        in_flight=settings.max_batch,
    )


class HostedPolicy:
    """A `ServedPolicy` without weights of its own. `http` is for tests."""

    def __init__(
        self,
        model: HostedModel,
        blobs: BlobStore,
        *,
        queue: int = 1024,
        http: httpx.AsyncClient | None = None,
    ) -> None:
        self._model = model
        self._blobs = blobs
        self._stream = Stream(model, http)
        self._gate = Gate(model.in_flight, queue)

    async def close(self) -> None:
        await self._stream.close()

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
        check_request(Version(), policy_id, min_version)
        pictures = [p.digest for turn in turns for p in turn.parts if isinstance(p, Picture)]
        data = dict(images)
        missing = list(dict.fromkeys(d for d in pictures if d not in data))
        data |= zip(missing, await asyncio.gather(*map(self._fetch, missing)), strict=True)
        async with self._gate.place():
            reply = await self._ask(turns, sampling, data)
        spoken = reply.text.encode()
        ended = reply.reason is FinishReason.END
        return Generation(
            prompt_token_ids=_frame(turns),
            token_ids=(*spoken, *([END] if ended else [])),
            logprobs=(),
            text=reply.text,
            finish_reason=reply.reason,
            policy_id="",
            version=0,
            images=tuple(_encoded(digest, data[digest]) for digest in pictures),
            processor=PROCESSOR,
            stop=reply.stop,
        )

    async def update_weights(
        self,
        policy_id: str,
        version: int,
        weights_digest: str,
        *,
        probe: Sequence[float] = (),
        abort: bool = False,
    ) -> int:
        raise InvalidRequest(
            f"{self._model.place} is a hosted model: it can be evaluated, but its weights "
            "cannot be replaced",
            field="weights_digest",
        )

    async def receive_weights(
        self,
        policy_id: str,
        version: int,
        transfer: NcclTransfer,
        *,
        probe: Sequence[float] = (),
        abort: bool = False,
    ) -> int:
        return await self.update_weights(policy_id, version, "")

    async def info(self) -> PolicyInfo:
        return PolicyInfo(
            policy_id="",
            version=0,
            model=self._model.model,
            processor=PROCESSOR,
            device=self._model.place,
            parameters=0,
            queued=self._gate.waiting,
            engine="openai",
            logprobs=False,
        )

    async def _ask(
        self, turns: Sequence[Turn], sampling: Sampling, data: Mapping[str, bytes]
    ) -> Reply:
        messages = [{"role": turn.role, "content": _content(turn, data)} for turn in turns]
        # Stop strings are looked for here: a server would cut them off, and not say which.
        return await self._stream.ask(messages, sampling, StopSearch(sampling.stop))

    async def _fetch(self, digest: str) -> bytes:
        try:
            return await self._blobs.get(digest)
        except NotFound:
            raise NotFound(f"there is no picture {digest}", digest) from None


def _content(turn: Turn, data: Mapping[str, bytes]) -> Any:
    if turn.role != "user":
        return "".join(_text(part) for part in turn.parts)
    parts: list[dict[str, Any]] = []
    for part in turn.parts:
        if isinstance(part, Picture):
            picture = data[part.digest]
            encoded = base64.b64encode(picture).decode()
            url = f"data:{_kind(picture)};base64,{encoded}"
            parts.append({"type": "image_url", "image_url": {"url": url}})
        else:
            parts.append({"type": "text", "text": _text(part)})
    return parts


def _text(part: Part) -> str:
    match part:
        case Text(text):
            return text
        case Tokens(ids):
            return bytes(i for i in ids if i < START).decode("utf-8", "replace")
    return ""


def _frame(turns: Sequence[Turn]) -> tuple[int, ...]:
    """The conversation as ids; that of a continued thought starts with the earlier one's."""
    ids: list[int] = []
    for turn in turns:
        ids += [START, *turn.role.encode(), *b"\n"]
        for part in turn.parts:
            match part:
                case Picture():
                    ids.append(IMAGE)
                case Tokens(earlier):
                    ids += earlier
                case Text(text):
                    ids += text.encode()
        ids += [] if ids[-1] == END else [END]
    return (*ids, START, *b"assistant\n")


def _encoded(digest: str, data: bytes) -> EncodedImage:
    """As it was sent: what the server makes of it is not known."""
    width_px, height_px = _size(data)
    return EncodedImage(digest, width_px, height_px, (1, 1, 1))


def _size(data: bytes) -> tuple[int, int]:
    try:
        with Image.open(io.BytesIO(data)) as picture:
            return picture.width, picture.height
    except (OSError, SyntaxError, ValueError, Image.DecompressionBombError) as error:
        raise InvalidRequest("the picture cannot be read; send PNG or JPEG") from error


def _kind(data: bytes) -> str:
    return "image/png" if data[:4] == b"\x89PNG" else "image/jpeg"
