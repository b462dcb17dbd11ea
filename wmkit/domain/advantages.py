"""From the rewards of one group to the advantages of its members.

Plain functions on sequences of floats, same order out as in. Groups without spread give
zeros; the trainer drops them (`has_spread`) and counts them.
"""

import math
from collections.abc import Callable, Sequence

EPSILON = 1e-6
"""Added to the standard deviation, as in the published GRPO code."""
SAME = 1e-8
"""Rewards closer than this are the same: what is left is rounding."""


def grpo(rewards: Sequence[float]) -> list[float]:
    """(r - mean) / (std + 1e-6), std with n - 1. Raises ValueError, see `mean`."""
    centre = mean(rewards)
    variance = math.fsum((r - centre) ** 2 for r in rewards) / (len(rewards) - 1)
    scale = math.sqrt(variance) + EPSILON
    return [(r - centre) / scale for r in rewards]


def dr_grpo(rewards: Sequence[float]) -> list[float]:
    """r - mean: no division by the spread (Dr. GRPO). Raises ValueError, see `mean`."""
    centre = mean(rewards)
    return [r - centre for r in rewards]


def rloo(rewards: Sequence[float]) -> list[float]:
    """r - mean of the *other* members (leave one out). Raises ValueError, see `mean`."""
    centre, n = mean(rewards), len(rewards)
    return [(r - centre) * n / (n - 1) for r in rewards]


ADVANTAGES: dict[str, Callable[[Sequence[float]], list[float]]] = {
    "grpo": grpo,
    "dr_grpo": dr_grpo,
    "rloo": rloo,
}
"""By the name that a recipe uses."""


def spread(rewards: Sequence[float]) -> float:
    """max - min. Raises ValueError, see `mean`."""
    mean(rewards)
    return max(rewards) - min(rewards)


def has_spread(rewards: Sequence[float]) -> bool:
    """Whether the group carries a gradient at all. Raises ValueError, see `mean`."""
    return spread(rewards) > SAME


def mean(rewards: Sequence[float]) -> float:
    """The group's mean.

    Raises ValueError for fewer than two members (nothing to compare with) and for a reward
    that is not finite, naming its place.
    """
    if len(rewards) < 2:
        raise ValueError(f"a group needs at least two members, has {len(rewards)}")
    for i, reward in enumerate(rewards):
        if not math.isfinite(reward):
            raise ValueError(f"the reward of member {i} is {reward}")
    return math.fsum(rewards) / len(rewards)
