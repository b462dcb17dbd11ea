"""Intervals against published and hand-computed values."""

import math

import pytest

from services.trainer.statistics import Z95, mcnemar, paired, wilson


def test_z_is_the_quantile_of_the_normal_distribution() -> None:
    assert 0.5 * (1 + math.erf(Z95 / math.sqrt(2))) == pytest.approx(0.975, abs=1e-12)


@pytest.mark.parametrize(
    ("successes", "n", "low", "high"),
    [
        # Newcombe 1998 (Statistics in Medicine 17:857), table I, method 3
        (81, 263, 0.2553, 0.3662),
        (15, 148, 0.0624, 0.1605),
        (0, 20, 0.0, 0.1611),
        (1, 29, 0.0061, 0.1718),
    ],
)
def test_wilson_reproduces_newcombes_table(successes: int, n: int, low: float, high: float) -> None:
    assert wilson(successes, n) == pytest.approx((low, high), abs=5e-5)


def test_wilson_mirrors_and_has_no_rate_of_nothing() -> None:
    low, high = wilson(7, 30)
    assert wilson(23, 30) == pytest.approx((1 - high, 1 - low))
    for bad in ((0, 0), (3, 2), (-1, 5)):
        with pytest.raises(ValueError, match="no proportion"):
            wilson(*bad)


def test_paired_difference_by_hand() -> None:
    # 10 instances: 4 won, 1 lost, 5 alike -> mean 0.3
    # sum (d - 0.3)^2 = 4 * 0.49 + 1 * 1.69 + 5 * 0.09 = 4.1; sd = sqrt(4.1 / 9)
    before = [False] * 4 + [True] + [True] * 3 + [False] * 2
    after = [True] * 4 + [False] + [True] * 3 + [False] * 2
    result = paired(before, after)
    half = 1.959963984540054 * math.sqrt(4.1 / 9) / math.sqrt(10)
    assert result.mean == pytest.approx(0.3)
    assert result.ci95 == pytest.approx((0.3 - half, 0.3 + half))
    assert (result.n, result.wins, result.losses) == (10, 4, 1)
    assert result.p_value == pytest.approx(2 * (5 + 1) / 32)


def test_one_pair_says_nothing_and_no_pair_is_an_error() -> None:
    assert paired([False], [True]).ci95 == (-1.0, 1.0)
    with pytest.raises(ValueError, match="no pairs"):
        paired([], [])
    with pytest.raises(ValueError, match="no pairs"):
        paired([True], [True, False])


def test_mcnemar_is_the_binomial_tail() -> None:
    assert mcnemar(0, 0) == 1.0
    assert mcnemar(5, 0) == pytest.approx(2 / 32)
    assert mcnemar(0, 5) == pytest.approx(2 / 32)
    assert mcnemar(8, 2) == pytest.approx(2 * (45 + 10 + 1) / 1024)
    assert mcnemar(3, 3) == 1.0
