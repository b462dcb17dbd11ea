"""Builds the unit of training from what the policy said it saw and sampled.

Token ids only: no tokenizer, no text. The stretches of one step share a growing prompt, so
the last one's prompt plus its own tokens is the whole step; every stretch marks its tokens
in it. Whatever does not fit together raises, because it could not be trained on.
"""

import math
from collections.abc import Sequence

from wmkit.domain.episode import ImageRef, Segment
from wmkit.domain.generation import Generation


class BrokenSegment(ValueError):
    """Stretches of one step that do not form one token sequence, or lack log-probabilities."""


class SegmentBuilder:
    """Collects the stretches of one step, in order: all with log-probabilities, or none.

    `pictures` (digests) are those that the prompt of the newest stretch was given.
    """

    def __init__(self) -> None:
        self._stretches: list[Generation] = []

    def add(self, stretch: Generation, pictures: Sequence[str]) -> None:
        """Raises BrokenSegment when the stretch does not continue the ones before it."""
        n = len(self._stretches) + 1
        unscored = not stretch.logprobs and not any(s.logprobs for s in self._stretches)
        if not unscored and len(stretch.logprobs) != len(stretch.token_ids):
            raise BrokenSegment(
                f"stretch {n} has {len(stretch.token_ids)} tokens "
                f"but {len(stretch.logprobs)} log-probabilities"
            )
        if not all(map(math.isfinite, stretch.logprobs)):
            raise BrokenSegment(f"stretch {n} has a log-probability that is not finite")
        if [image.digest for image in stretch.images] != list(pictures):
            raise BrokenSegment(f"the pictures of stretch {n} are not those that were sent")
        if self._stretches:
            _check_continues(self._stretches[-1], stretch, n)
        self._stretches.append(stretch)

    def build(self) -> Segment:
        """The segment of all stretches; there must be one.

        Tokens that came without log-probabilities are not marked as sampled.
        """
        last = self._stretches[-1]
        token_ids = last.prompt_token_ids + last.token_ids
        mask = [0] * len(token_ids)
        logprobs = [0.0] * len(token_ids)
        versions = [-1] * len(token_ids)
        for stretch in self._stretches:
            count = len(stretch.token_ids)
            if not stretch.logprobs:
                continue  # a model that gives none is evaluated, never trained on
            span = slice(start := len(stretch.prompt_token_ids), start + count)
            assert token_ids[span] == stretch.token_ids
            mask[span] = [1] * count
            logprobs[span] = stretch.logprobs
            versions[span] = [stretch.version] * count
        return Segment(
            token_ids=token_ids,
            mask=tuple(mask),
            logprobs=tuple(logprobs),
            versions=tuple(versions),
            images=tuple(ImageRef(digest=i.digest, grid_thw=i.grid_thw) for i in last.images),
            processor=last.processor,
        )


def _check_continues(before: Generation, after: Generation, n: int) -> None:
    start = len(before.prompt_token_ids)
    end = start + len(before.token_ids)
    prompt = after.prompt_token_ids
    if prompt[:start] != before.prompt_token_ids or prompt[start:end] != before.token_ids:
        raise BrokenSegment(
            f"the prompt of stretch {n} does not start with the tokens of stretch {n - 1}"
        )
    if after.images[: len(before.images)] != before.images:
        raise BrokenSegment(f"the pictures of stretch {n - 1} were encoded anew in stretch {n}")
    if after.processor != before.processor:
        raise BrokenSegment(f"stretch {n} was encoded by another processor")
