"""Rates with intervals: the three formulas behind every before/after claim.

All intervals are two-sided at 95 %.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass

from wmkit.domain.intervals import Z95, wilson

__all__ = ["Z95", "Paired", "paired", "wilson"]


@dataclass(frozen=True, slots=True)
class Paired:
    """after - before on the same instances; `wins` turned from failure to success."""

    mean: float
    ci95: tuple[float, float]
    n: int
    wins: int
    losses: int
    p_value: float
    """Exact two-sided McNemar test of wins against losses."""


def paired(before: Sequence[bool], after: Sequence[bool]) -> Paired:
    """The mean difference with its paired normal interval: mean +- z * sd / sqrt(n).

    `sd` (with n - 1) is that of the per-instance differences -1, 0, 1; a single pair has
    no spread and gets the widest interval, [-1, 1]. Raises ValueError for unequal lengths
    or no pair.
    """
    if len(before) != len(after) or not before:
        raise ValueError(f"{len(before)} and {len(after)} instances make no pairs")
    differences = [int(b) - int(a) for a, b in zip(before, after, strict=True)]
    n = len(differences)
    mean = sum(differences) / n
    wins, losses = differences.count(1), differences.count(-1)
    p_value = mcnemar(wins, losses)
    if n == 1:
        return Paired(mean, (-1.0, 1.0), n, wins, losses, p_value)
    sd = math.sqrt(sum((d - mean) ** 2 for d in differences) / (n - 1))
    half = Z95 * sd / math.sqrt(n)
    ci95 = (max(-1.0, mean - half), min(1.0, mean + half))
    return Paired(mean, ci95, n, wins, losses, p_value)


def mcnemar(wins: int, losses: int) -> float:
    """Two-sided exact McNemar p: the binomial tail of the discordant pairs under p = 1/2."""
    n = wins + losses
    tail = sum(math.comb(n, k) for k in range(max(wins, losses), n + 1))
    return min(1.0, float(2 * tail / 2**n))
