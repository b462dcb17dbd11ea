"""Chat turns and generations on the wire."""

import math
from collections.abc import Mapping
from dataclasses import dataclass, field

from wmr1.policy.v1 import policy_pb2 as pb

from wmkit.convert.enums import FINISH, ROLE
from wmkit.domain.errors import InvalidRequest
from wmkit.domain.generation import (
    EncodedImage,
    Generation,
    NcclTransfer,
    Part,
    Picture,
    PolicyInfo,
    Sampling,
    TensorSpec,
    Text,
    Tokens,
    Turn,
)


@dataclass(frozen=True, slots=True)
class GenerateCall:
    """A whole request. `images` holds the pictures that came as bytes, by digest."""

    turns: tuple[Turn, ...]
    sampling: Sampling
    policy_id: str = ""
    min_version: int = 0
    request_id: str = ""
    images: Mapping[str, bytes] = field(default_factory=dict)


def generate_call_to_pb(call: GenerateCall) -> pb.GenerateRequest:
    """A picture whose bytes are in `images` travels as bytes, any other as its digest.

    Raises InvalidRequest for what a message cannot hold.
    """
    sampling = call.sampling
    try:
        return pb.GenerateRequest(
            request_id=call.request_id,
            policy_id=call.policy_id,
            min_version=call.min_version,
            turns=[
                pb.Turn(
                    role=ROLE.to_pb(turn.role),
                    parts=[_part_to_pb(part, call.images) for part in turn.parts],
                )
                for turn in call.turns
            ],
            sampling=pb.Sampling(
                temperature=sampling.temperature,
                max_new_tokens=sampling.max_new_tokens,
                stop=sampling.stop,
                seed=sampling.seed,
            ),
        )
    except ValueError as error:
        raise InvalidRequest(f"the request cannot be sent: {error}", "turns") from None


def generate_call_from_pb(message: pb.GenerateRequest) -> GenerateCall:
    """Raises InvalidRequest for no turns, a part or role that is unset, bad sampling values."""
    if not message.turns:
        raise InvalidRequest("turns is empty; there is nothing to answer", "turns")
    images: dict[str, bytes] = {}
    turns = []
    for i, turn in enumerate(message.turns):
        path = f"turns[{i}]"
        parts = tuple(
            _part_from_pb(part, f"{path}.parts[{k}]", images) for k, part in enumerate(turn.parts)
        )
        turns.append(Turn(ROLE.from_pb(turn.role, f"{path}.role"), parts))
    sampling = message.sampling
    temperature = sampling.temperature
    if not (math.isfinite(temperature) and temperature >= 0):
        raise InvalidRequest(
            f"sampling.temperature must be 0 or more, is {temperature:g}", "sampling.temperature"
        )
    if sampling.max_new_tokens < 1:
        raise InvalidRequest(
            f"sampling.max_new_tokens must be 1 or more, is {sampling.max_new_tokens}",
            "sampling.max_new_tokens",
        )
    if "" in sampling.stop:
        raise InvalidRequest("sampling.stop holds an empty string", "sampling.stop")
    return GenerateCall(
        turns=tuple(turns),
        sampling=Sampling(
            temperature, sampling.max_new_tokens, tuple(sampling.stop), sampling.seed
        ),
        policy_id=message.policy_id,
        min_version=message.min_version,
        request_id=message.request_id,
        images=images,
    )


def _part_to_pb(part: Part, images: Mapping[str, bytes]) -> pb.Part:
    match part:
        case Text(text):
            return pb.Part(text=text)
        case Tokens(ids):
            return pb.Part(tokens=pb.Tokens(ids=ids))
        case Picture(digest):
            if (data := images.get(digest)) is not None:
                return pb.Part(image=pb.ImageRef(data=data))
            return pb.Part(image=pb.ImageRef(digest=digest))


def _part_from_pb(message: pb.Part, path: str, images: dict[str, bytes]) -> Part:
    match message.WhichOneof("kind"):
        case "text":
            return Text(message.text)
        case "tokens":
            return Tokens(tuple(message.tokens.ids))
        case "image":
            match message.image.WhichOneof("source"):
                case "digest":
                    return Picture(message.image.digest)
                case "data":
                    # Only servers hash, so that clients do without blake3.
                    from wmkit.blobs import digest

                    name = digest(message.image.data)
                    images[name] = message.image.data
                    return Picture(name)
            raise InvalidRequest(f"{path}.image is not set; give a digest or data", f"{path}.image")
    raise InvalidRequest(f"{path} is not set; known: text, image, tokens", path)


def generation_to_pb(generation: Generation) -> pb.GenerateResponse:
    return pb.GenerateResponse(
        prompt_token_ids=generation.prompt_token_ids,
        token_ids=generation.token_ids,
        logprobs=generation.logprobs,
        text=generation.text,
        finish_reason=FINISH.to_pb(generation.finish_reason),
        stop=generation.stop,
        policy_id=generation.policy_id,
        version=generation.version,
        images=[
            pb.EncodedImage(
                digest=image.digest,
                width_px=image.width_px,
                height_px=image.height_px,
                grid_thw=image.grid_thw,
            )
            for image in generation.images
        ],
        processor=generation.processor,
    )


def generation_from_pb(message: pb.GenerateResponse) -> Generation:
    """Raises InvalidRequest when tokens and log-probabilities do not pair up."""
    if message.logprobs and len(message.token_ids) != len(message.logprobs):
        raise InvalidRequest(
            f"{len(message.token_ids)} tokens came with {len(message.logprobs)} log-probabilities",
            "logprobs",
        )
    return Generation(
        prompt_token_ids=tuple(message.prompt_token_ids),
        token_ids=tuple(message.token_ids),
        logprobs=tuple(message.logprobs),
        text=message.text,
        finish_reason=FINISH.from_pb(message.finish_reason, "finish_reason"),
        policy_id=message.policy_id,
        version=message.version,
        images=tuple(_encoded_from_pb(image, i) for i, image in enumerate(message.images)),
        processor=message.processor,
        stop=message.stop,
    )


def _encoded_from_pb(message: pb.EncodedImage, i: int) -> EncodedImage:
    if len(message.grid_thw) != 3:
        path = f"images[{i}].grid_thw"
        raise InvalidRequest(f"{path} must have 3 numbers, has {len(message.grid_thw)}", path)
    t, h, w = message.grid_thw
    return EncodedImage(message.digest, message.width_px, message.height_px, (t, h, w))


def info_to_pb(info: PolicyInfo) -> pb.GetInfoResponse:
    return pb.GetInfoResponse(
        policy_id=info.policy_id,
        version=info.version,
        model=info.model,
        processor=info.processor,
        device=info.device,
        parameters=info.parameters,
        queued=info.queued,
        engine=info.engine,
        logprobs=info.logprobs,
    )


def info_from_pb(message: pb.GetInfoResponse) -> PolicyInfo:
    return PolicyInfo(
        policy_id=message.policy_id,
        version=message.version,
        model=message.model,
        processor=message.processor,
        device=message.device,
        parameters=message.parameters,
        queued=message.queued,
        engine=message.engine,
        logprobs=message.logprobs,
    )


def transfer_to_pb(transfer: NcclTransfer) -> pb.NcclTransfer:
    return pb.NcclTransfer(
        address=transfer.address,
        port=transfer.port,
        world_size=transfer.world_size,
        tensors=[
            pb.TensorSpec(name=t.name, dtype=t.dtype, shape=t.shape) for t in transfer.tensors
        ],
    )


def transfer_from_pb(message: pb.NcclTransfer) -> NcclTransfer:
    """Raises InvalidRequest for a broadcast without a sender, receivers or tensors."""
    if not message.address or message.world_size < 2 or not message.tensors:
        raise InvalidRequest(
            "nccl needs an address, a world_size of 2 or more, and the tensors", "nccl"
        )
    return NcclTransfer(
        address=message.address,
        port=message.port,
        world_size=message.world_size,
        tensors=tuple(TensorSpec(t.name, t.dtype, tuple(t.shape)) for t in message.tensors),
    )
