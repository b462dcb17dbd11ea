"""A policy whose answers come from a function. Its tokens are bytes; no model, no weights."""

from collections.abc import Callable, Sequence

from wmkit.domain.errors import StalePolicyVersion
from wmkit.domain.generation import (
    EncodedImage,
    FinishReason,
    Generation,
    Picture,
    PolicyInfo,
    Sampling,
    Text,
    Tokens,
    Turn,
)

START, END, IMAGE = 256, 257, 258
"""Ids beyond the 256 bytes: a turn opens, a turn closes, one patch of a picture."""

_PATCHES = 4

Answer = Callable[[Sequence[Turn], Sampling], str]


class FakePolicy:
    """Implements `wmkit.ports.Policy`. `answer(turns, sampling)` is what the model would write.

    Framing is that of real chat models: each turn on its own, earlier tokens as they are,
    so the prompt of a continued thought starts with the earlier prompt and its tokens. A
    stop string ends the answer after it. Log-probabilities are made up but fixed per token:
    -(id % 8 + 1) / 8. `calls` keeps what was asked.
    """

    def __init__(
        self, answer: Answer, *, policy_id: str = "fake", image_px: tuple[int, int] = (56, 56)
    ) -> None:
        self._answer = answer
        self._image_px = image_px
        self.policy_id = policy_id
        self.version = 0
        self.calls: list[tuple[tuple[Turn, ...], Sampling]] = []

    async def generate(
        self,
        turns: Sequence[Turn],
        sampling: Sampling,
        *,
        policy_id: str = "",
        min_version: int = 0,
        request_id: str = "",
    ) -> Generation:
        if policy_id not in ("", self.policy_id) or min_version > self.version:
            raise StalePolicyVersion(
                f"{policy_id or self.policy_id} version {min_version} was asked for, "
                f"{self.policy_id} version {self.version} is loaded"
            )
        self.calls.append((tuple(turns), sampling))
        text, reason, stop = _cut(self._answer(turns, sampling), sampling)
        ids = [*text.encode(), *([END] if reason is FinishReason.END else [])]
        width_px, height_px = self._image_px
        return Generation(
            prompt_token_ids=_frame(turns),
            token_ids=tuple(ids),
            logprobs=tuple(-(token % 8 + 1) / 8 for token in ids),
            text=text,
            finish_reason=reason,
            policy_id=self.policy_id,
            version=self.version,
            images=tuple(
                EncodedImage(part.digest, width_px, height_px, (1, 2, 2))
                for turn in turns
                for part in turn.parts
                if isinstance(part, Picture)
            ),
            processor="fake",
            stop=stop,
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
        if policy_id == self.policy_id and version <= self.version:
            raise StalePolicyVersion(f"version {self.version} is loaded, {version} is older")
        self.policy_id, self.version = policy_id, version
        return version

    async def info(self) -> PolicyInfo:
        return PolicyInfo(self.policy_id, self.version, "fake", "fake", "none", 0, 0)


def read(turns: Sequence[Turn]) -> str:
    """The conversation as text, one line per turn; pictures as `[picture]`."""
    lines = []
    for turn in turns:
        words = []
        for part in turn.parts:
            match part:
                case Text(text):
                    words.append(text)
                case Tokens(ids):
                    words.append(bytes(i for i in ids if i < 256).decode(errors="replace"))
                case Picture():
                    words.append("[picture]")
        lines.append(f"{turn.role}: {''.join(words)}")
    return "\n".join(lines)


def _frame(turns: Sequence[Turn]) -> tuple[int, ...]:
    ids: list[int] = []
    for turn in turns:
        ids += [START, *turn.role.encode(), *b"\n"]
        for part in turn.parts:
            match part:
                case Text(text):
                    ids += text.encode()
                case Tokens(earlier):
                    ids += earlier
                case Picture():
                    ids += [IMAGE] * _PATCHES
        # An answer that ended its own turn has the token already.
        ids += [*([] if ids[-1] == END else [END]), *b"\n"]
    return (*ids, START, *b"assistant\n")


def _cut(text: str, sampling: Sampling) -> tuple[str, FinishReason, str]:
    """The text as sampling would have ended it, in whole characters."""
    found = [(text.find(stop) + len(stop), stop) for stop in sampling.stop if stop in text]
    end, stop = min(found, default=(len(text), ""))
    text = text[:end]
    if len(text.encode()) > sampling.max_new_tokens:
        short = text.encode()[: sampling.max_new_tokens].decode(errors="ignore")
        return short, FinishReason.LENGTH, ""
    return text, FinishReason.STOP if stop else FinishReason.END, stop
