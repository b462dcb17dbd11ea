"""Advantages against worked values and against the standard library's statistics."""

import math
import statistics

import pytest
from hypothesis import given
from hypothesis import strategies as st

from wmkit.domain.advantages import ADVANTAGES, dr_grpo, gigpo, grpo, has_spread, rloo, spread

rewards = st.lists(st.floats(-3, 3), min_size=2, max_size=16)


def test_one_success_among_four() -> None:
    assert grpo([1, 0, 0, 0]) == pytest.approx([1.5, -0.5, -0.5, -0.5], abs=1e-5)
    assert dr_grpo([1, 0, 0, 0]) == pytest.approx([0.75, -0.25, -0.25, -0.25])
    assert rloo([1, 0, 0, 0]) == pytest.approx([1, -1 / 3, -1 / 3, -1 / 3])


def test_grpo_divides_by_the_spread_plus_epsilon() -> None:
    # std of [0, 2] with n - 1 is sqrt(2); with n it would be 1.
    assert grpo([0, 2]) == pytest.approx([-1 / (math.sqrt(2) + 1e-6), 1 / (math.sqrt(2) + 1e-6)])


@given(rewards)
def test_against_the_statistics_module(group: list[float]) -> None:
    centre, deviation = statistics.fmean(group), statistics.stdev(group)
    assert grpo(group) == pytest.approx(
        [(r - centre) / (deviation + 1e-6) for r in group], abs=1e-6
    )
    assert dr_grpo(group) == pytest.approx([r - centre for r in group])
    others = [statistics.fmean(group[:i] + group[i + 1 :]) for i in range(len(group))]
    assert rloo(group) == pytest.approx(
        [r - mean for r, mean in zip(group, others, strict=True)], abs=1e-12
    )


@given(rewards, st.sampled_from(sorted(ADVANTAGES)))
def test_advantages_of_a_group_sum_to_zero(group: list[float], kind: str) -> None:
    assert math.fsum(ADVANTAGES[kind](group)) == pytest.approx(0, abs=1e-6)


def test_a_group_without_spread_has_no_gradient() -> None:
    assert not has_spread([0.0, 0.0])
    assert not has_spread([1.1, 1.1, 1.1 + 1e-12])
    assert has_spread([0.0, 0.0, 0.05])
    assert spread([0.25, 1.0, -0.5]) == 1.5
    assert grpo([0.7, 0.7]) == [0.0, 0.0]


@pytest.mark.parametrize("kind", sorted(ADVANTAGES))
@pytest.mark.parametrize(
    ("group", "complaint"),
    [([], "two members"), ([1.0], "two members"), ([0.0, math.nan], "member 1 is nan")],
)
def test_unusable_groups_are_refused(kind: str, group: list[float], complaint: str) -> None:
    with pytest.raises(ValueError, match=complaint):
        ADVANTAGES[kind](group)


EPISODE = [2 / math.sqrt(3), -1 / math.sqrt(3), -1 / math.sqrt(3)]
"""`grpo` of [1, 0, 0]: the mean is 1/3, the deviation with n - 1 is 1 / sqrt(3)."""
HALF = 1 / math.sqrt(2)
"""`grpo` of [1, 0]."""


def flat(nested: list[list[float]]) -> list[float]:
    return [value for of_one in nested for value in of_one]


def test_gigpo_on_a_tree_by_hand() -> None:
    # Three rollouts leave s0; two of them meet in s1 and part again.
    visited = [["s0", "s1", "s2"], ["s0", "s1", "s3"], ["s0", "s4"]]
    a, b, c = EPISODE
    expected = [2 * a, a + HALF, a, 2 * b, b - HALF, b, 2 * c, c]
    assert flat(gigpo([1, 0, 0], visited)) == pytest.approx(expected, abs=1e-5)
    weighed = [1.5 * a, a + HALF / 2, a, 1.5 * b, b - HALF / 2, b, 1.5 * c, c]
    assert flat(gigpo([1, 0, 0], visited, weight=0.5)) == pytest.approx(weighed, abs=1e-5)
    # By screen, the last step of the first and of the third rollout look the same.
    visited[0][2] = visited[2][1] = "look"
    expected[2], expected[7] = a + HALF, c - HALF
    assert flat(gigpo([1, 0, 0], visited)) == pytest.approx(expected, abs=1e-5)


def test_gigpo_discounts_by_the_steps_still_to_come() -> None:
    # s0 twice in one rollout: returns 1/4 and 1/2, and 0 of the other one; mean and std 1/4.
    found = gigpo([1, 0], [["s0", "s0", "s2"], ["s0"]], discount=0.5)
    expected = [HALF, HALF + 1, HALF, -HALF - 1]
    assert flat(found) == pytest.approx(expected, abs=1e-4)


def test_gigpo_of_a_group_without_spread_is_zero() -> None:
    visited = [["s0", "s1"], ["s0", "s1"], ["s0"]]
    assert flat(gigpo([0.0, 0.0, 0.0], visited)) == [0.0] * 5
    assert flat(gigpo([0.7, 0.7, 0.7 + 1e-12], visited)) == [0.0] * 5
    with pytest.raises(ValueError, match="two members"):
        gigpo([1.0], [["s0"]])
