"""Rewards: the worked values of the formula, both variants, and what cannot happen."""

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from wmkit.domain.rewards import Member, Reward, group_rewards, shaped


def failed(length: int, calls: int = 0) -> Member:
    return Member(success=False, length=length, calls=calls)


def won(length: int, calls: int = 0, useful: int = 0) -> Member:
    return Member(success=True, length=length, calls=calls, useful_calls=useful)


def totals(rewards: list[Reward]) -> list[float]:
    return [reward.total for reward in rewards]


def test_in_an_all_failed_group_the_paper_pays_for_stalling() -> None:
    rewards = group_rewards([failed(1), failed(20)], 20, 5, shaping="paper", gamma=0)
    assert totals(rewards) == pytest.approx([-0.4775, -0.05])


def test_in_an_all_succeeded_group_short_ones_earn_more() -> None:
    assert totals(group_rewards([won(5), won(5)], 20, 5, gamma=0)) == pytest.approx([1.25, 1.25])
    # p = 1 and L_ref = 5 with one member of 20: lengths 0, 0, 0, 20 have the mean 5.
    rewards = group_rewards([won(0), won(0), won(0), won(20)], 20, 5, gamma=0)
    assert rewards[3].total == pytest.approx(1.05)


def test_the_world_model_term_of_the_paper() -> None:
    # p = 0.5, n_ref = 2, n_max = 5: budget 3.5.
    assert [shaped(True, n, 3.5) for n in (0, 1, 2)] == pytest.approx([1.0, 0.857, 0.714], abs=5e-4)
    group = [won(4, calls=1), won(4, calls=3), failed(9), failed(9)]
    rewards = group_rewards(group, 20, 5, shaping="paper", alpha=0, beta=0, gamma=1)
    assert [r.wm for r in rewards[:2]] == pytest.approx(
        [0.5 + 0.5 * 2.5 / 3.5, 0.5 + 0.5 * 0.5 / 3.5]
    )
    # a failure without calls: min(0.9 * (0 - 3.5) / 3.5 - 0.1, -0.1) = -1
    assert rewards[2].wm == pytest.approx(-1.0)


def test_a_mixed_group_by_hand() -> None:
    # p = 0.5, L_ref = 4, L_max = 20: B = 0.5 * 4 + 0.5 * 20 = 12.
    rewards = group_rewards([won(4), failed(20)], 20, 5, shaping="paper", gamma=0)
    # success: lambda = -2/3, R_L = 0.5 + 1/3; failure: lambda = 2/3, min(0.6 - 0.1, -0.1).
    assert totals(rewards) == pytest.approx([1 + 0.5 * (0.5 + 1 / 3), -0.05])


def test_gated_gives_failures_exactly_nothing() -> None:
    rewards = group_rewards([failed(1), failed(20, calls=5)], 20, 5)
    assert rewards == [Reward(0.0, 0.0, 0.0, 0.0)] * 2
    mixed = group_rewards([won(4), failed(1), failed(20)], 20, 5, wm_term="useful")
    assert totals(mixed)[1:] == [0.0, 0.0]
    assert mixed[0].total > 1


def test_gated_shapes_successes_as_the_paper_does() -> None:
    group = [won(4, calls=2), won(6), failed(20)]
    paper = group_rewards(group, 20, 5, shaping="paper")
    gated = group_rewards(group, 20, 5, shaping="gated", wm_term="paper")
    assert gated[:2] == paper[:2]


def test_useful_calls_are_worth_something_up_to_three() -> None:
    group = [won(4, 5, useful) for useful in (0, 1, 3, 5)]
    rewards = group_rewards(group, 20, 5, wm_term="useful", gamma=0.3)
    assert [r.wm for r in rewards] == pytest.approx([0.0, 0.1, 0.3, 0.3])


def test_without_a_world_model_term_calls_cost_nothing() -> None:
    rewards = group_rewards([won(4, calls=0), won(4, calls=5)], 20, 5)
    assert rewards[0] == rewards[1]


def test_a_zero_budget_counts_as_one() -> None:
    # Nothing to do and nothing done, no calls allowed and none made: lambda = mu = -1.
    rewards = group_rewards([won(0), won(0)], 20, 0, shaping="paper", alpha=1, beta=0.5, gamma=0.1)
    assert totals(rewards) == pytest.approx([1.6, 1.6])
    lost = group_rewards([failed(3), failed(3)], 20, 0, shaping="paper", alpha=0, beta=0, gamma=1)
    assert totals(lost) == pytest.approx([-1.0, -1.0])


@pytest.mark.parametrize(
    ("member", "complaint"),
    [
        (Member(True, -1, name="job-7"), r"member 1 \(job-7\): length is -1"),
        (Member(True, 3, calls=math.nan), "member 1: calls is nan"),  # type: ignore[arg-type]
        (Member("false", 3), "member 1: success is 'false', not a bool"),  # type: ignore[arg-type]
    ],
)
def test_an_impossible_member_is_named(member: Member, complaint: str) -> None:
    with pytest.raises(ValueError, match=complaint):
        group_rewards([won(3), member], 20, 5)


def test_impossible_settings_are_refused() -> None:
    with pytest.raises(ValueError, match="step_limit"):
        group_rewards([won(3), won(3)], -1, 5)
    with pytest.raises(ValueError, match="finite"):
        group_rewards([won(3), won(3)], 20, 5, gamma=math.inf)
    with pytest.raises(ValueError, match="paper"):
        group_rewards([won(3), won(3)], 20, 5, shaping="paper", wm_term="useful")


members = st.builds(
    Member,
    success=st.booleans(),
    length=st.integers(0, 60),
    calls=st.integers(0, 30),
    useful_calls=st.integers(0, 30),
)


@given(st.lists(members, min_size=1, max_size=8), st.integers(0, 60), st.integers(0, 10))
def test_rewards_are_finite_and_every_success_beats_every_failure(
    group: list[Member], step_limit: int, n_max: int
) -> None:
    for shaping in ("paper", "gated"):
        rewards = group_rewards(group, step_limit, n_max, shaping=shaping)
        assert all(math.isfinite(reward.total) for reward in rewards)
        wins = [r.total for r, m in zip(rewards, group, strict=True) if m.success]
        losses = [r.total for r, m in zip(rewards, group, strict=True) if not m.success]
        assert min(wins, default=math.inf) > max(losses, default=-math.inf)
