"""Branch groups in training: which states, which jobs, and what the root step is told."""

from typing import Any

import pytest

from services.trainer.batches import Sample
from services.trainer.branching import add_branches, branch_jobs, choose
from services.trainer.gather import Episode
from services.trainer.groups import Harvest
from services.trainer.jobs import Sender
from services.trainer.recipe import Recipe
from tests.trainer_cases import job, segment, step, trajectory
from wmkit.domain.episode import Branch, Result, ResultStatus
from wmkit.domain.tasks import TaskRef

SENDER = Sender("run", "run", 4)


def recipe(**changes: Any) -> Recipe:
    values = {
        "checkpoint": "x",
        "tasks": {"templates": ["a"]},
        "reward": {"beta": 0.0},
        "branching": {"groups": 2, "size": 3, "horizon": 4},
    }
    return Recipe.model_validate(values | changes)


def episode(
    member: int,
    *,
    steps: int = 2,
    success: bool | None = True,
    version: int = 4,
    root: int | None = None,
    earlier: int = 4,
) -> Episode:
    """With `root`, a branch whose steps before the root are of version `earlier`."""
    branch = Branch(trajectory="t", root=root, horizon=4) if root is not None else None
    of = job(
        job_id=f"run/x/0/{member}",
        task=TaskRef(template="a", seed=0),
        member=member,
        branch=branch,
        transition_seed=77,
    )
    made = [
        step(i, segment=segment((1, 2), (10 + i,), version=earlier if i < (root or 0) else version))
        for i in range(steps)
    ]
    result = Result(
        job_id=of.job_id,
        run_id="run",
        phase="x",
        group=0,
        member=member,
        status=ResultStatus.ACCEPTED,
        trajectory=f"blob{member}",
    )
    return Episode(of, result, trajectory(of, success=success, steps=made))


def harvest_branches(
    episodes: list[Episode], of: Recipe, version: int, seed: int
) -> tuple[list[Sample], dict[str, float]]:
    found = Harvest()
    add_branches(found, episodes, of, version, seed)
    return found.samples, found.metrics


def test_states_are_chosen_once_from_episodes_that_may_be_trained_on() -> None:
    # Both members stand on s0 and s1, the second alone on s2; the others do not count.
    episodes = [
        episode(0, steps=2),
        episode(1, steps=3),
        episode(2, steps=5, version=3),
        episode(3, steps=5, success=None),
    ]
    points = choose(episodes, recipe(branching={"groups": 9}), 4, seed=0)
    assert sorted((p.root, p.trajectory) for p in points) == [
        (0, "blob0"),
        (1, "blob0"),
        (2, "blob1"),
    ]
    two = choose(episodes, recipe(), 4, seed=1)
    assert two == choose(episodes, recipe(), 4, seed=1) and len(two) == 2


def test_branches_of_a_state_share_its_world_and_differ_in_their_sampling() -> None:
    jobs = branch_jobs(recipe(), SENDER, 3, [episode(0, steps=2)])
    assert [(j.phase, j.group, j.member) for j in jobs] == [
        ("branch-3", group, member) for group in (0, 1) for member in (0, 1, 2)
    ]
    roots = [made.branch.root for made in jobs if made.branch]
    assert sorted(roots) == [0, 0, 0, 1, 1, 1] and len(set(roots[:3])) == 1
    for made, root in zip(jobs, roots, strict=True):
        assert made.branch == Branch(trajectory="blob0", root=root, horizon=4)
        assert (made.transition_seed, made.min_version, made.policy_id) == (77, 4, "run")
    assert len({j.seed for j in jobs}) == len({j.job_id for j in jobs}) == 6


def test_only_the_root_step_learns_what_its_branch_was_worth() -> None:
    group = [
        episode(0, root=1, steps=3, success=True),
        episode(1, root=1, steps=2, success=False, earlier=0),
        episode(2, root=1, steps=4, success=False),
        episode(3, root=1, steps=2, success=False),
    ]
    samples, metrics = harvest_branches(group, recipe(), 4, seed=0)
    # One success in four, std with n - 1: 0.75 / 0.5, and -0.25 / 0.5 for the others.
    assert [s.advantage for s in samples] == pytest.approx([1.5, -0.5, -0.5, -0.5], abs=1e-5)
    assert {s.token_ids for s in samples} == {(1, 2, 11)}, "step 1, the root, and no other"
    assert metrics == {"branch_groups": 1, "branch_groups_used": 1, "branch_success": 0.25}


def test_branches_that_tell_nothing_or_are_stale_teach_nothing() -> None:
    flat = [episode(n, root=0, success=False) for n in range(3)]
    assert harvest_branches(flat, recipe(), 4, seed=0)[0] == []
    alone = [episode(0, root=0), episode(1, root=0, success=False, version=3)]
    samples, metrics = harvest_branches(alone, recipe(), 4, seed=0)
    assert samples == [] and metrics["branch_groups_used"] == 0


def test_the_weight_scales_and_the_shuffled_control_permutes() -> None:
    group = [episode(n, root=0, success=n == 0) for n in range(4)]
    double = recipe(branching={"groups": 1, "weight": 2.0})
    samples, _ = harvest_branches(group, double, 4, seed=0)
    assert samples[0].advantage == pytest.approx(3.0, abs=1e-5)
    control = recipe(control="shuffle_rewards")
    best = set()
    for seed in range(20):
        shuffled, _ = harvest_branches(group, control, 4, seed)
        best.add(max(range(4), key=lambda n: shuffled[n].advantage))
    assert best == {0, 1, 2, 3}
