"""Step-level groups by branching: which states are branched from, the jobs, what they teach.

WM-R1's step-level trajectories: several continuations from one state of an episode are
rewarded from there on and compared with each other, and the comparison goes to the step at
that state alone. The steps after it were taken in different states, and the path before it
was sampled once only; neither is trained on here. Rewards are `wmkit.domain.branches`.
"""

import random
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from statistics import fmean

from services.trainer.batches import samples_of
from services.trainer.gather import Episode
from services.trainer.groups import Harvest, is_on_policy, succeeded
from services.trainer.jobs import Sender, recipe_digest, stable_seed
from services.trainer.recipe import Recipe
from wmkit.domain import advantages, branches
from wmkit.domain.episode import Branch, Job, Trajectory


@dataclass(frozen=True, slots=True)
class Point:
    """A state to branch from: step `root` of an episode that was played for `job`."""

    job: Job
    trajectory: str
    root: int


def choose(episodes: Sequence[Episode], recipe: Recipe, version: int, seed: int) -> list[Point]:
    """At most `branching.groups` different states that valid on-policy episodes decided in, at
    random."""
    count, slack = recipe.branching.groups, recipe.schedule.max_staleness
    points: dict[tuple[str, str], Point] = {}
    for episode in episodes:
        played = episode.trajectory
        if played is None or not episode.valid or not is_on_policy(played, version, slack=slack):
            continue
        for step in played.steps:
            key = (str(episode.job.task), step.state_id)
            points.setdefault(key, Point(episode.job, episode.result.trajectory, step.index))
    return random.Random(seed).sample(list(points.values()), min(count, len(points)))


def branch_jobs(
    recipe: Recipe, sender: Sender, iteration: int, episodes: Sequence[Episode]
) -> list[Job]:
    """`branching.size` branches from each state that is chosen; the world is that of the
    episode which met it."""
    phase = f"branch-{iteration}"
    points = choose(episodes, recipe, sender.version, stable_seed(recipe.seed, phase))
    digest = recipe_digest(recipe)
    return [
        Job(
            job_id=sender.job_id(phase, group, member),
            run_id=sender.run_id,
            phase=phase,
            task=point.job.task,
            group=group,
            member=member,
            seed=stable_seed(recipe.seed, phase, group, member),
            transition_seed=point.job.transition_seed,
            policy_id=sender.policy_id,
            min_version=sender.version,
            spec=recipe.train_episode,
            branch=Branch(
                trajectory=point.trajectory, root=point.root, horizon=recipe.branching.horizon
            ),
            priority=recipe.schedule.priority,
            recipe=digest,
        )
        for group, point in enumerate(points)
        for member in range(recipe.branching.size)
    ]


def add_branches(
    found: Harvest, episodes: Sequence[Episode], recipe: Recipe, version: int, seed: int
) -> None:
    """Add a sample for the root step of each branch in a group that tells its members apart.

    Groups with fewer than two valid members, or without spread, teach nothing. `seed` decides
    the permutation of the shuffled control.
    """
    groups: dict[int, list[Trajectory]] = defaultdict(list)
    for episode in episodes:
        played, branch = episode.trajectory, episode.job.branch
        assert branch is not None
        if played is None or not episode.valid:
            continue
        if is_on_policy(played, version, branch.root, recipe.schedule.max_staleness):
            groups[episode.job.group].append(played)
    used = 0
    kind = "grpo" if recipe.advantage.kind == "gigpo" else recipe.advantage.kind
    shuffle = random.Random(seed)
    for members in groups.values():
        if len(members) < 2:
            continue
        branch = members[0].job.branch
        assert branch is not None
        returns = branches.branch_returns(
            members,
            branch.root,
            branch.horizon,
            recipe.episode.max_calls,
            shaping=recipe.reward.shaping,
            wm_term=recipe.reward.wm_term,
            alpha=recipe.reward.alpha,
            beta=recipe.reward.beta,
            gamma=recipe.reward.gamma,
        )
        if recipe.control == "shuffle_rewards":
            shuffle.shuffle(returns)
        if not advantages.has_spread([one.total for one in returns]):
            continue
        used += 1
        for member, worth in zip(members, branches.branch_advantages(returns, kind), strict=True):
            found.samples.append(samples_of(member, worth * recipe.branching.weight)[branch.root])
    played_all = [member for members in groups.values() for member in members]
    found.metrics |= {
        "branch_groups": len({episode.job.group for episode in episodes}),
        "branch_groups_used": used,
        "branch_success": fmean(map(succeeded, played_all)) if played_all else 0.0,
    }
