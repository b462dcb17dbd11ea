"""Intervals of proportions, two-sided at 95 %. Pure."""

import math

Z95 = 1.959963984540054
"""The 97.5 % quantile of the standard normal distribution."""


def wilson(successes: int, n: int) -> tuple[float, float]:
    """Wilson's score interval of a proportion (Wilson 1927, without continuity correction).

    Raises ValueError for n = 0: there is no rate of nothing.
    """
    if not 0 <= successes <= n or n == 0:
        raise ValueError(f"no proportion in {successes} of {n}")
    p, z2 = successes / n, Z95 * Z95
    middle = (p + z2 / (2 * n)) / (1 + z2 / n)
    half = Z95 * math.sqrt(p * (1 - p) / n + z2 / (4 * n * n)) / (1 + z2 / n)
    return max(0.0, middle - half), min(1.0, middle + half)
