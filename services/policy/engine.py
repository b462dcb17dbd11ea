"""What all engines have in common: their interface, requests and answers, the limits.

`services.policy.batching` runs the model in this process with transformers and torch,
`services.policy.vllm_engine` in processes of vLLM. Neither knows gRPC or Redis.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Protocol

from services.policy.versions import Version
from wmkit.domain.errors import InvalidRequest
from wmkit.domain.generation import FinishReason, NcclTransfer, Sampling
from wmkit.modeling import EncodedPixels, Processor


@dataclass(frozen=True, slots=True, eq=False)
class Prompt:
    """A request as the model sees it: ids with expanded placeholders, and their pictures."""

    ids: list[int]
    images: list[EncodedPixels]
    sampling: Sampling

    @property
    def tokens(self) -> int:
        """Room that prompt and answer may take."""
        return len(self.ids) + self.sampling.max_new_tokens


@dataclass(slots=True)
class Answer:
    """`logprobs[i]` belongs to `token_ids[i]`; `stop` is "" unless `reason` is STOP."""

    token_ids: list[int] = field(default_factory=list)
    logprobs: list[float] = field(default_factory=list)
    reason: FinishReason = FinishReason.LENGTH
    stop: str = ""

    @property
    def finite(self) -> bool:
        return all(map(math.isfinite, self.logprobs))


@dataclass(frozen=True, slots=True)
class Update:
    """Weights on their way in: `data` is a safetensors document, or `transfer` says how they come.

    `probe` = the sender's probe log-probabilities (empty: no canary), `abort` ends running
    answers instead of waiting for them.
    """

    version: Version
    data: bytes = b""
    transfer: NcclTransfer | None = None
    probe: Sequence[float] = ()
    abort: bool = False


class Engine(Protocol):
    """One model, one current version. `start` before and `close` after use."""

    name: str

    @property
    def processor(self) -> Processor: ...

    @property
    def current(self) -> Version: ...

    @property
    def queued(self) -> int:
        """Requests that wait for their turn."""
        ...

    @property
    def device(self) -> str: ...

    @property
    def parameters(self) -> int: ...

    async def start(self, adapter: bytes = b"") -> None:
        """Begin to answer, with `adapter` merged into the checkpoint. Raises BadCheckpoint."""
        ...

    async def close(self) -> None: ...

    async def generate(
        self, prompt: Prompt, policy_id: str = "", min_version: int = 0
    ) -> tuple[Answer, Version]:
        """The answer to `prompt`, and the one version that gave all of it.

        Raises StalePolicyVersion when the loaded weights belong to another policy, are older
        than `min_version`, or were replaced with `abort` meanwhile; InvalidRequest when the
        prompt leaves no room for the answer; Overloaded when the queue is full; EngineDown
        when the model fails.
        """
        ...

    async def update(self, update: Update) -> float:
        """Load new weights; returns the seconds that loading took.

        Repeating the loaded version changes nothing. Raises the errors of
        `versions.check_update`, and BadCheckpoint for weights that do not fit, are not finite
        or fail the canary; the loaded weights then stay.
        """
        ...


def check_room(prompt: Prompt, context: int) -> None:
    """Raises InvalidRequest where prompt and answer exceed the model's `context`."""
    if prompt.tokens > context:
        raise InvalidRequest(
            f"a prompt of {len(prompt.ids)} tokens and {prompt.sampling.max_new_tokens} new "
            f"ones exceed the model's context of {context}",
            field="sampling.max_new_tokens",
        )
