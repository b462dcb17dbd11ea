"""Branch groups: several actions tried from one state of a stored trajectory, and compared.

A branch is a trajectory whose first `root` steps are the stored one's and whose step `root`
is the action that is tried. It is played on for at most H steps. Its return is the reward R
with L and n counted from the root and L_max = H, relative to the other branches of the group
(WM-R1's step-level trajectories). Nothing here plays a branch.
"""

from collections.abc import Sequence

from wmkit.domain import advantages
from wmkit.domain.episode import Trajectory
from wmkit.domain.rewards import Member, Reward, Shaping, WmTerm, group_rewards
from wmkit.domain.tasks import Verdict


def member(trajectory: Trajectory, root: int = 0) -> Member:
    """The trajectory as a member of a group, with L and n counted from step `root` on.

    Raises ValueError when it has no such step.
    """
    if not 0 <= root < max(1, len(trajectory.steps)):
        raise ValueError(
            f"{trajectory.job.job_id} has {len(trajectory.steps)} steps, so none is its root {root}"
        )
    tail = trajectory.model_copy(update={"steps": trajectory.steps[root:]}) if root else trajectory
    return Member(
        success=trajectory.judgement.verdict == Verdict.SUCCESS,
        length=tail.length,
        calls=tail.calls,
        useful_calls=tail.useful_calls,
        name=trajectory.job.job_id,
    )


def branch_returns(
    branches: Sequence[Trajectory],
    root: int,
    horizon: int,
    n_max: int,
    *,
    shaping: Shaping = "gated",
    wm_term: WmTerm = "none",
    alpha: float = 1.0,
    beta: float = 0.5,
    gamma: float = 0.1,
) -> list[Reward]:
    """R of each branch, with L and n from step `root` on and L_max = `horizon`.

    Raises ValueError for branches that do not all stand on the same state at the root, that
    are longer than the horizon, or whose judge was unsure.
    """
    members = [member(branch, root) for branch in branches]
    states = {branch.steps[root].state_id for branch in branches}
    if len(states) > 1:
        raise ValueError(f"branches of one group stand on {len(states)} states at step {root}")
    for one, branch in zip(members, branches, strict=True):
        if branch.judgement.verdict == Verdict.UNSURE:
            raise ValueError(f"branch {one.name} has no verdict")
        if one.length > horizon:
            raise ValueError(f"branch {one.name} has {one.length} steps, the horizon is {horizon}")
    return group_rewards(
        members,
        horizon,
        n_max,
        shaping=shaping,
        wm_term=wm_term,
        alpha=alpha,
        beta=beta,
        gamma=gamma,
    )


def branch_advantages(returns: Sequence[Reward], kind: str = "grpo") -> list[float]:
    """What the root step of each branch is worth against its siblings. Raises ValueError,
    see `advantages.mean`; KeyError for an unknown kind."""
    return advantages.ADVANTAGES[kind]([one.total for one in returns])
