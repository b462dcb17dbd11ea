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


def gigpo(
    rewards: Sequence[float],
    visited: Sequence[Sequence[str]],
    *,
    weight: float = 1.0,
    discount: float = 1.0,
) -> list[list[float]]:
    """One advantage per step: `grpo` of the episode + weight * `grpo` within a step group
    (GiGPO, Feng et al. 2025).

    `visited[i]` holds, for each step of member i, the id of the state (or screen) that it was
    decided on. All steps of the group on the same id form a step group; the return of a step
    is its episode's reward times discount^(steps still to come). A step group of one step,
    or without spread, adds nothing. Raises ValueError, see `mean`, and for unequal lengths.
    """
    returns: dict[str, list[float]] = {}
    for reward, ids in zip(rewards, visited, strict=True):
        for t, key in enumerate(ids):
            returns.setdefault(key, []).append(reward * discount ** (len(ids) - 1 - t))
    parts = {
        key: iter(_compared(values) if len(values) > 1 else [0.0])
        for key, values in returns.items()
    }
    # The parts of a step group lie in the order in which its steps were met above.
    return [
        [episode + weight * next(parts[key]) for key in ids]
        for episode, ids in zip(_compared(rewards), visited, strict=True)
    ]


def _compared(rewards: Sequence[float]) -> list[float]:
    """`grpo`, and exactly 0 where nothing but rounding tells the members apart."""
    return grpo(rewards) if has_spread(rewards) else [0.0] * len(rewards)


ADVANTAGES: dict[str, Callable[[Sequence[float]], list[float]]] = {
    "grpo": grpo,
    "dr_grpo": dr_grpo,
    "rloo": rloo,
}
"""By the name that a recipe uses; `gigpo` needs the visited states too."""


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
