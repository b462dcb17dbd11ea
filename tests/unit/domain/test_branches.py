"""Branch groups on a tree that was worked out by hand."""

import pytest

from tests.trainer_cases import imagined, job, step, trajectory
from wmkit.domain.branches import branch_advantages, branch_returns, member
from wmkit.domain.episode import Step, Trajectory

FINISH = {"action": "finish", "status": "done"}


def branch(
    name: str, actions: int, success: bool | None, calls: int = 0, at: str = "s1"
) -> Trajectory:
    """One step with an imagined call, then, from the root on, `actions` steps and a finish.
    `calls` are made at the root."""
    steps: list[Step] = [step(0, imagined=(imagined(),))]
    for i in range(actions):
        made = tuple(imagined(k + 1) for k in range(calls)) if i == 0 else ()
        state = at if i == 0 else f"{name}{i}"
        steps.append(step(1 + i, state_id=state, imagined=made))
    steps.append(step(1 + actions, state_id=f"{name}-end", action=FINISH, outcome=None))
    return trajectory(job(job_id=name), success=success, steps=steps)


TREE = [
    branch("a", 1, True, calls=1),
    branch("b", 3, True),
    branch("c", 4, False),
    branch("d", 2, False, calls=2),
]
"""Root s1 at step 1, H = 4, n_max = 2. From the root on L = 1, 3, 4, 2 and n = 1, 0, 0, 2.
p = 1/2; L_ref = 2, B_L = 1/2 * 2 + 1/2 * 4 = 3; n_ref = 1/2, B_n = 1/4 + 1 = 5/4."""


def test_counts_begin_at_the_root() -> None:
    whole, tail = member(TREE[3]), member(TREE[3], 1)
    assert (whole.length, whole.calls) == (3, 3)
    assert (tail.length, tail.calls, tail.useful_calls) == (2, 2, 2)
    assert (tail.success, tail.name) == (False, "d")


def test_gated_returns_and_advantages() -> None:
    returns = branch_returns(TREE, 1, 4, 2, gamma=0)
    # a: lambda = -2/3, R_L = 5/6;  b: lambda = 0, R_L = 1/2
    assert [r.total for r in returns] == pytest.approx([1 + 5 / 12, 1.25, 0, 0])
    # the mean is 2/3
    assert branch_advantages(returns, "dr_grpo") == pytest.approx([0.75, 7 / 12, -2 / 3, -2 / 3])
    assert branch_advantages(returns, "rloo") == pytest.approx([1, 7 / 9, -8 / 9, -8 / 9])


def test_paper_returns() -> None:
    returns = branch_returns(TREE, 1, 4, 2, shaping="paper")
    # c: lambda = 1/3, R_L = -0.1;  d: lambda = -1/3, R_L = -0.4
    assert [r.length for r in returns] == pytest.approx([5 / 12, 0.25, -0.05, -0.2])
    # mu = -1/5, -1, -1, 3/5: R_WM = 0.6, 1, -1, -0.1
    assert [r.wm for r in returns] == pytest.approx([0.06, 0.1, -0.1, -0.01])


def test_groups_that_cannot_be_compared_are_refused() -> None:
    stray = branch("x", 2, True, at="s9")
    for branches, words in (
        ([*TREE, stray], "2 states at step 1"),
        ([*TREE, branch("x", 5, True)], "x has 5 steps, the horizon is 4"),
        ([*TREE, branch("x", 2, None)], "x has no verdict"),
    ):
        with pytest.raises(ValueError, match=words):
            branch_returns(branches, 1, 4, 2)
    with pytest.raises(ValueError, match="a has 3 steps"):
        member(TREE[0], 3)
    with pytest.raises(ValueError, match="two members"):
        branch_advantages(branch_returns(TREE[:1], 1, 4, 2))
