"""From a phase of training episodes to samples with advantages, and what they tell.

Who counts: members with a verdict. Groups with fewer than two of them are dropped and
their task is asked for again; groups whose rewards are all equal teach nothing and are
dropped too. Both are counted.
"""

import random
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from statistics import fmean
from types import MappingProxyType

from services.trainer.batches import Sample, samples_of
from services.trainer.gather import Episode
from services.trainer.recipe import Advantage, Recipe
from wmkit.domain import advantages, branches
from wmkit.domain.episode import Ending, Trajectory
from wmkit.domain.rewards import group_rewards
from wmkit.domain.tasks import TaskRef, Verdict

_NONE: Mapping[TaskRef, Trajectory] = MappingProxyType({})


@dataclass(slots=True)
class Harvest:
    """What a phase of training episodes yields."""

    samples: list[Sample] = field(default_factory=list)
    again: list[TaskRef] = field(default_factory=list)
    """Tasks of groups with fewer than two valid members."""
    metrics: dict[str, float] = field(default_factory=dict)


def harvest(
    episodes: Sequence[Episode],
    recipe: Recipe,
    version: int,
    seed: int,
    replayed: Mapping[TaskRef, Trajectory] = _NONE,
) -> Harvest:
    """Group the episodes, reward them within their groups, and keep what teaches.

    `version` is the policy version they must all have been sampled from, or with `max_staleness`
    one of so many before it; an episode with a token of another is stale, counted, and left
    out. `seed` decides the permutation of the shuffled control. `replayed` holds an
    earlier success for some tasks: it joins a group of that task in which everybody failed, and
    its samples are marked as off-policy.
    """
    out = Harvest()
    slack = recipe.schedule.max_staleness
    groups: dict[int, list[Trajectory]] = defaultdict(list)
    stale = 0
    for episode in episodes:
        members = groups[episode.job.group]
        if episode.trajectory is not None and episode.valid:
            if is_on_policy(episode.trajectory, version, slack=slack):
                members.append(episode.trajectory)
            else:
                stale += 1
    tasks = {episode.job.group: episode.job.task for episode in episodes}
    shuffle = random.Random(seed)
    too_small = flat = helped = 0
    rewards = []
    spreads = []
    for group, members in groups.items():
        if len(members) < 2:
            too_small += 1
            out.again.append(tasks[group])
            continue
        compared = list(members)
        if (earlier := replayed.get(tasks[group])) and not any(map(succeeded, members)):
            compared.append(earlier)
            helped += 1
        graded = group_rewards(
            [branches.member(member) for member in compared],
            step_limit=members[0].task.step_limit,
            n_max=recipe.episode.max_calls,
            shaping=recipe.reward.shaping,
            wm_term=recipe.reward.wm_term,
            alpha=recipe.reward.alpha,
            beta=recipe.reward.beta,
            gamma=recipe.reward.gamma,
        )
        rewards += graded[: len(members)]
        totals = [reward.total for reward in graded]
        spreads.append(advantages.spread(totals))
        if recipe.control == "shuffle_rewards":
            shuffle.shuffle(totals)
        steps = step_advantages(totals, compared, recipe.advantage)
        if not any(abs(value) > advantages.SAME for of_one in steps for value in of_one):
            flat += 1
            continue
        for member, values in zip(compared, steps, strict=True):
            out.samples += samples_of(member, values, off_policy=member is earlier)
    valid = [member for members in groups.values() for member in members]
    out.metrics = {
        "groups": len(groups),
        "groups_used": len(groups) - too_small - flat,
        "groups_dropped_size": too_small,
        "groups_dropped_spread": flat,
        "groups_solved": sum(bool(g) and all(map(succeeded, g)) for g in groups.values()),
        "groups_failed": sum(bool(g) and not any(map(succeeded, g)) for g in groups.values()),
        **({"groups_replayed": helped} if recipe.replay.per_task else {}),
        "episodes_stale": stale,
        "reward": _mean([reward.total for reward in rewards]),
        "reward_length": _mean([reward.length for reward in rewards]),
        "reward_wm": _mean([reward.wm for reward in rewards]),
        "reward_spread": _mean(spreads),
        **behaviour(valid),
    }
    return out


def step_advantages(
    rewards: Sequence[float], members: Sequence[Trajectory], how: Advantage
) -> list[list[float]]:
    """The advantage of every step of every member; all zero where nothing tells them apart."""
    if how.kind == "gigpo":
        visited = [
            [s.state_id if how.step_group == "state" else s.screen_id for s in member.steps]
            for member in members
        ]
        return advantages.gigpo(
            rewards, visited, weight=how.step_weight, discount=how.step_discount
        )
    flat = not advantages.has_spread(rewards)
    values = [0.0] * len(rewards) if flat else advantages.ADVANTAGES[how.kind](rewards)
    return [[value] * len(m.steps) for value, m in zip(values, members, strict=True)]


def behaviour(trajectories: Sequence[Trajectory]) -> dict[str, float]:
    """How the policy behaved: success, length, thinking and world-model calls, as means."""
    steps = [step for t in trajectories for step in t.steps]
    asked = [call for step in steps for call in step.imagined]
    answered = sum(call.answered for call in asked)
    return {
        "success": _mean([succeeded(t) for t in trajectories]),
        "length": _mean([t.length for t in trajectories]),
        "calls": _mean([t.calls for t in trajectories]),
        "calls_per_step": answered / len(steps) if steps else 0.0,
        "calls_refused": 1 - answered / len(asked) if asked else 0.0,
        "calls_useful": sum(t.useful_calls for t in trajectories) / answered if answered else 0.0,
        "unparsable": _mean([t.ending == Ending.UNPARSABLE for t in trajectories]),
        "tokens_per_episode": _mean(
            [sum(sum(step.segment.mask) for step in t.steps) for t in trajectories]
        ),
    }


def succeeded(trajectory: Trajectory) -> bool:
    return trajectory.judgement.verdict == Verdict.SUCCESS


def is_on_policy(trajectory: Trajectory, version: int, first: int = 0, slack: int = 0) -> bool:
    """Whether every token sampled from step `first` on comes from exactly this policy version,
    or with `slack` from one of so many before it, or the one that is just being published."""
    newest = version + bool(slack)
    return all(
        version - slack <= token_version <= newest
        for step in trajectory.steps[first:]
        for token_version, sampled in zip(step.segment.versions, step.segment.mask, strict=True)
        if sampled
    )


def staleness(trajectories: Sequence[Trajectory], version: int) -> dict[str, float]:
    """How many updates behind `version` the sampled tokens are: mean and largest."""
    gaps = [
        version - token_version
        for trajectory in trajectories
        for step in trajectory.steps
        for token_version, sampled in zip(step.segment.versions, step.segment.mask, strict=True)
        if sampled
    ]
    return {"staleness": _mean(gaps), "staleness_max": max(gaps, default=0)}


def _mean(values: Sequence[float]) -> float:
    return fmean(values) if values else 0.0
