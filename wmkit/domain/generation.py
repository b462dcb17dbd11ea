"""What a policy is asked and what it answers: turns in, tokens with log-probabilities out."""

from dataclasses import dataclass
from enum import StrEnum
from typing import Literal

Role = Literal["system", "user", "assistant"]


@dataclass(frozen=True, slots=True)
class Text:
    """Plain text; encoded without special tokens, so it cannot open or close a turn."""

    text: str


@dataclass(frozen=True, slots=True)
class Picture:
    """An image in the blob store, by digest."""

    digest: str


@dataclass(frozen=True, slots=True)
class Tokens:
    """Ids that the policy generated before; used exactly as they are."""

    ids: tuple[int, ...]


Part = Text | Picture | Tokens


@dataclass(frozen=True, slots=True)
class Turn:
    role: Role
    parts: tuple[Part, ...]


@dataclass(frozen=True, slots=True)
class Sampling:
    """`temperature` 0 is greedy. The token that completes a stop string is kept whole."""

    temperature: float = 1.0
    max_new_tokens: int = 256
    stop: tuple[str, ...] = ()
    seed: int = 0


class FinishReason(StrEnum):
    """END: the model ended its turn. STOP: a stop string. LENGTH: the token limit."""

    END = "end"
    STOP = "stop"
    LENGTH = "length"


@dataclass(frozen=True, slots=True)
class EncodedImage:
    """How a picture entered the prompt: size after the model's resize, patches (t, h, w)."""

    digest: str
    width_px: int
    height_px: int
    grid_thw: tuple[int, int, int]


@dataclass(frozen=True, slots=True)
class Generation:
    """One answer. `logprobs[i]` belongs to `token_ids[i]`, under the sampled distribution.

    `logprobs` is empty where the engine gives none: such an answer can be judged, but not
    trained on.
    """

    prompt_token_ids: tuple[int, ...]
    token_ids: tuple[int, ...]
    logprobs: tuple[float, ...]
    text: str
    finish_reason: FinishReason
    policy_id: str
    version: int
    images: tuple[EncodedImage, ...]
    processor: str
    stop: str = ""


@dataclass(frozen=True, slots=True)
class PolicyInfo:
    policy_id: str
    version: int
    model: str
    processor: str
    device: str
    parameters: int
    queued: int
    engine: str = "transformers"
    logprobs: bool = True
    """Answers carry log-probabilities, so that they can be trained on."""


@dataclass(frozen=True, slots=True)
class TensorSpec:
    name: str
    dtype: str
    shape: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class NcclTransfer:
    """A broadcast of weights that its sender, rank 0 at `address`:`port`, is about to make.

    `world_size` counts the sender and the engine's workers; `tensors` come in this order.
    """

    address: str
    port: int
    world_size: int
    tensors: tuple[TensorSpec, ...]
