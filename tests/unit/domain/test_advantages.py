"""Advantages against worked values and against the standard library's statistics."""

import math
import statistics

import pytest
from hypothesis import given
from hypothesis import strategies as st

from wmkit.domain.advantages import ADVANTAGES, dr_grpo, grpo, has_spread, rloo, spread

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
