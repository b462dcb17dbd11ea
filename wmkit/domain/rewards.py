"""The reward of each member of a group: success, trajectory length, world-model use.

    R = alpha * s + beta * R_L + gamma * R_WM        (WM-R1)

A group = the rollouts of one task from one start state. Members that were lost to
infrastructure are left out *before* they come here. Rewards are relative to the group, so
they are computed by the trainer and never stored in a trajectory.
"""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Literal

Shaping = Literal["paper", "gated"]
"""`paper` shapes every member; `gated` shapes successes only, a failure gets exactly 0."""
WmTerm = Literal["none", "paper", "useful"]
"""The world-model term under `gated`: none, the paper's formula, or calls that changed a
decision. `paper` shaping always has the paper's; gamma = 0 takes it away."""

ENOUGH_USEFUL_CALLS = 3


@dataclass(frozen=True, slots=True)
class Member:
    """One rollout. `length` = L and `calls` = n as `Trajectory` counts them.

    `useful_calls` = u, answered calls in steps that committed to another action than the one
    imagined first. `name` appears in error messages.
    """

    success: bool
    length: int
    calls: int = 0
    useful_calls: int = 0
    name: str = ""


@dataclass(frozen=True, slots=True)
class Reward:
    """`total` and its parts, each already multiplied by its coefficient."""

    total: float
    success: float
    length: float
    wm: float


def group_rewards(
    members: Sequence[Member],
    step_limit: int,
    n_max: int,
    *,
    shaping: Shaping = "gated",
    wm_term: WmTerm = "none",
    alpha: float = 1.0,
    beta: float = 0.5,
    gamma: float = 0.1,
) -> list[Reward]:
    """The rewards of one group, in the order of `members`.

    `step_limit` = L_max of the task, `n_max` = world-model calls that an episode may make.
    Raises ValueError for counts that are negative or not finite (naming the member), for
    unusable coefficients, and for `paper` shaping with the `useful` term.
    """
    _check(members, step_limit, n_max, (alpha, beta, gamma))
    if shaping not in ("paper", "gated") or wm_term not in ("none", "paper", "useful"):
        raise ValueError(f"unknown shaping {shaping!r} or wm_term {wm_term!r}")
    if shaping == "paper" and wm_term == "useful":
        raise ValueError('shaping "paper" has the paper\'s world-model term, not "useful"')
    length_budget = _budget(members, lambda member: member.length, step_limit)
    call_budget = _budget(members, lambda member: member.calls, n_max)
    term = "paper" if shaping == "paper" else wm_term
    rewards = []
    for i, member in enumerate(members):
        success = alpha if member.success else 0.0
        length = wm = 0.0
        if member.success or shaping == "paper":
            length = beta * shaped(member.success, member.length, length_budget)
            if term == "paper":
                wm = gamma * shaped(member.success, member.calls, call_budget)
            elif term == "useful":
                wm = gamma * min(member.useful_calls, ENOUGH_USEFUL_CALLS) / ENOUGH_USEFUL_CALLS
        total = success + length + wm
        if not math.isfinite(total):
            raise ValueError(f"{_label(i, member)}: the reward is {total}")
        rewards.append(Reward(total, success, length, wm))
    return rewards


def shaped(success: bool, used: float, budget: float) -> float:
    """R_L or R_WM: for x = (used - budget) / budget,
    max(0.5 - 0.5 x, 0.1) after a success and min(0.9 x - 0.1, -0.1) after a failure.
    """
    excess = (used - budget) / budget
    return max(0.5 - 0.5 * excess, 0.1) if success else min(0.9 * excess - 0.1, -0.1)


def _budget(members: Sequence[Member], count: Callable[[Member], int], limit: int) -> float:
    """B = p * (mean over the successes) + (1 - p) * limit; a zero budget counts as 1."""
    wins = [count(member) for member in members if member.success]
    if not wins:
        return float(limit) or 1.0
    p = len(wins) / len(members)
    return p * (math.fsum(wins) / len(wins)) + (1 - p) * limit or 1.0


def _check(
    members: Sequence[Member], step_limit: int, n_max: int, weights: Sequence[float]
) -> None:
    for name, limit in (("step_limit", step_limit), ("n_max", n_max)):
        if not math.isfinite(limit) or limit < 0:
            raise ValueError(f"{name} must not be negative, is {limit}")
    if not all(math.isfinite(weight) for weight in weights):
        raise ValueError(f"alpha, beta and gamma must be finite, are {tuple(weights)}")
    for i, member in enumerate(members):
        if not isinstance(member.success, bool):
            raise ValueError(f"{_label(i, member)}: success is {member.success!r}, not a bool")
        for name in ("length", "calls", "useful_calls"):
            value = getattr(member, name)
            if not math.isfinite(value) or value < 0:
                raise ValueError(f"{_label(i, member)}: {name} is {value}")


def _label(i: int, member: Member) -> str:
    return f"member {i}" + (f" ({member.name})" if member.name else "")
