"""From trajectories to what the loss eats: samples, and micro-batches of them.

A sample is one segment (a committed step) exactly as it was sampled; nothing here knows a
tokenizer, so no text can be encoded again.
"""

from collections.abc import Sequence
from dataclasses import dataclass

from wmkit.domain.episode import ImageRef, Trajectory


@dataclass(frozen=True, slots=True)
class Sample:
    """`mask[i]` is 1 where the policy sampled `token_ids[i]`, with `logprobs[i]` then."""

    name: str
    """Names the trajectory and its step in messages: "<job id> step <index>"."""
    episode: str
    token_ids: tuple[int, ...]
    mask: tuple[int, ...]
    logprobs: tuple[float, ...]
    images: tuple[ImageRef, ...]
    processor: str
    advantage: float
    off_policy: bool = False
    """Sampled by an earlier version than the one that is trained."""

    @property
    def sampled(self) -> int:
        """How many tokens the policy sampled."""
        return sum(self.mask)


def samples_of(
    trajectory: Trajectory, advantage: float | Sequence[float], *, off_policy: bool = False
) -> list[Sample]:
    """The samples of a trajectory, one per step. One advantage goes to every one of them;
    several are those of the steps, and must be as many."""
    job = trajectory.job.job_id
    steps = trajectory.steps
    values = [advantage] * len(steps) if isinstance(advantage, float) else advantage
    return [
        Sample(
            name=f"{job} step {step.index}",
            episode=job,
            token_ids=step.segment.token_ids,
            mask=step.segment.mask,
            logprobs=step.segment.logprobs,
            images=step.segment.images,
            processor=step.segment.processor,
            advantage=value,
            off_policy=off_policy,
        )
        for step, value in zip(steps, values, strict=True)
    ]


def micro_batches(lengths: Sequence[int], budget: int) -> list[list[int]]:
    """Indices of samples, packed by length so that little is padding.

    A batch holds at most `budget` tokens, padding included (its longest sample times its
    size); a sample that is longer than the budget gets a batch of its own rather than
    being cut or dropped. The longest come first, so that running out of memory shows at
    once.
    """
    batches: list[list[int]] = []
    longest = 0
    for index in sorted(range(len(lengths)), key=lambda i: (-lengths[i], i)):
        if batches and longest * (len(batches[-1]) + 1) <= budget:
            batches[-1].append(index)
        else:
            batches.append([index])
            longest = lengths[index]
    return batches


def rounds(lengths: Sequence[int], budget: int, ranks: int) -> list[list[list[int]]]:
    """Micro-batches dealt to `ranks` processes: in every round one for each, empty for those
    that have nothing to do in the last one.

    The budget is halved until there is work for all of them, where there are samples enough.
    """
    batches = micro_batches(lengths, budget)
    while len(batches) < min(ranks, len(lengths)) and budget > 1:
        budget = min(budget, sum(lengths)) // 2
        batches = micro_batches(lengths, budget)
    batches += [[] for _ in range(-len(batches) % ranks)]
    return [batches[i : i + ranks] for i in range(0, len(batches), ranks)]
