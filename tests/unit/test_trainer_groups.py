"""Who counts in a group, what is dropped, and the control that shuffles rewards."""

import math
from collections import Counter
from collections.abc import Sequence

import pytest

from services.trainer.gather import Episode
from services.trainer.groups import Harvest, behaviour, harvest
from services.trainer.recipe import Recipe
from tests.trainer_cases import imagined, job, segment, step, trajectory
from wmkit.domain.episode import Ending, Result, ResultStatus
from wmkit.domain.tasks import TaskRef

RECIPE = Recipe.model_validate(
    {"checkpoint": "x", "tasks": {"templates": ["a"]}, "reward": {"beta": 0.0}}
)


def episode(
    group: int,
    member: int,
    success: bool | None = True,
    *,
    status: ResultStatus = ResultStatus.ACCEPTED,
    length: int = 1,
    version: int = 4,
) -> Episode:
    of = job(
        job_id=f"run/train-1/{group}/{member}",
        task=TaskRef(template="a", seed=group),
        group=group,
        member=member,
    )
    result = Result(
        job_id=of.job_id, run_id="run", phase="train-1", group=group, member=member, status=status
    )
    if status != ResultStatus.ACCEPTED:
        return Episode(of, result)
    steps = [step(i, segment=segment(version=version)) for i in range(length)]
    return Episode(of, result, trajectory(of, success=success, steps=steps))


def group(successes: Sequence[bool | None], number: int = 0) -> list[Episode]:
    return [episode(number, member, s) for member, s in enumerate(successes)]


def advantages(found: Harvest) -> list[float]:
    return [sample.advantage for sample in found.samples]


def test_one_success_in_four_gets_the_worked_advantages() -> None:
    found = harvest(group([True, False, False, False]), RECIPE, 4, seed=0)
    assert advantages(found) == pytest.approx([1.5, -0.5, -0.5, -0.5], abs=1e-5)
    plain = RECIPE.model_copy(
        update={"advantage": RECIPE.advantage.model_copy(update={"kind": "dr_grpo"})}
    )
    found = harvest(group([True, False, False, False]), plain, 4, seed=0)
    assert advantages(found) == pytest.approx([0.75, -0.25, -0.25, -0.25])


def test_an_advantage_goes_to_every_segment_of_its_trajectory() -> None:
    episodes = [episode(0, 0, True, length=3), episode(0, 1, False, length=2)]
    found = harvest(episodes, RECIPE, 4, seed=0)
    high, low = 1 / math.sqrt(2), -1 / math.sqrt(2)
    assert advantages(found) == pytest.approx([high] * 3 + [low] * 2, abs=1e-5)


def test_lost_and_unsure_members_are_left_out_before_any_statistic() -> None:
    episodes = [
        episode(0, 0, True),
        episode(0, 1, False),
        episode(0, 2, None),
        episode(0, 3, status=ResultStatus.MASKED),
        episode(0, 4, status=ResultStatus.DEAD),
    ]
    found = harvest(episodes, RECIPE, 4, seed=0)
    assert len(found.samples) == 2
    assert advantages(found) == pytest.approx([1 / math.sqrt(2), -1 / math.sqrt(2)], abs=1e-5)
    assert found.metrics["success"] == 0.5


def test_a_stale_member_is_left_out_and_counted() -> None:
    episodes = [*group([True, False]), episode(0, 2, True, version=3)]
    found = harvest(episodes, RECIPE, 4, seed=0)
    assert {s.name for s in found.samples} == {"run/train-1/0/0 step 0", "run/train-1/0/1 step 0"}
    assert found.metrics["episodes_stale"] == 1


def test_groups_without_spread_or_size_teach_nothing_and_the_small_one_is_asked_again() -> None:
    episodes = [
        *group([True, True], 0),
        *group([False, False], 1),
        episode(2, 0, True),
        episode(2, 1, status=ResultStatus.MASKED),
        *group([True, False], 3),
    ]
    found = harvest(episodes, RECIPE, 4, seed=0)
    assert {s.episode for s in found.samples} == {"run/train-1/3/0", "run/train-1/3/1"}
    assert found.again == [TaskRef(template="a", seed=2)]
    keys = ("groups", "groups_used", "groups_dropped_size", "groups_dropped_spread")
    assert [found.metrics[key] for key in keys] == [4, 1, 1, 2]
    assert (found.metrics["groups_solved"], found.metrics["groups_failed"]) == (2, 1)


def test_gated_length_term_ranks_successes_and_leaves_failures_at_zero() -> None:
    recipe = RECIPE.model_copy(update={"reward": RECIPE.reward.model_copy(update={"beta": 0.5})})
    episodes = [
        episode(0, 0, True, length=2),
        episode(0, 1, True, length=6),
        episode(0, 2, False, length=1),
        episode(0, 3, False, length=20),
    ]
    found = harvest(episodes, recipe, 4, seed=0)
    by_episode = {s.episode[-1]: s.advantage for s in found.samples}
    assert by_episode["0"] > by_episode["1"] > by_episode["2"] == by_episode["3"]
    # p = 1/2, L_ref = 4, L_max = 20 -> B = 12: R_L = 0.5 + 0.5 * 10/12 and 0.5 + 0.5 * 6/12
    total = 2 + 0.5 * (0.5 + 0.5 * 10 / 12 + 0.5 + 0.5 * 6 / 12)
    assert found.metrics["reward"] == pytest.approx(total / 4)


def test_the_control_permutes_rewards_within_their_groups_only() -> None:
    recipe = RECIPE.model_copy(update={"control": "shuffle_rewards"})
    episodes = [*group([True, False, False, False], 0), *group([True, True, True, False], 1)]
    plain = harvest(episodes, RECIPE, 4, seed=0)
    winners: Counter[int] = Counter()
    for seed in range(200):
        found = harvest(episodes, recipe, 4, seed=seed)
        for half in (slice(0, 4), slice(4, 8)):
            assert sorted(advantages(found)[half]) == sorted(advantages(plain)[half])
        winners[advantages(found)[:4].index(max(advantages(found)[:4]))] += 1
        assert found.metrics["success"] == plain.metrics["success"]
    # uniform: 50 of 200 each, standard deviation 6.1
    assert all(30 <= winners[member] <= 70 for member in range(4))


def test_behaviour_by_hand() -> None:
    calls = [
        imagined(1, action={"action": "back"}),
        imagined(2),
        imagined(3, answered=False, outcome=None, state_id="", note="over budget"),
    ]
    first = step(0, imagined=tuple(calls), action={"action": "tap", "point": [0.5, 0.5]})
    second = step(1, segment=segment([1], [2, 3, 4]))
    found = behaviour(
        [
            trajectory(steps=[first, second]),
            trajectory(success=False, steps=[step(0, action=None)], ending=Ending.UNPARSABLE),
        ]
    )
    assert found == pytest.approx(
        {
            "success": 1 / 2,
            "length": 3 / 2,
            "calls": 2 / 2,
            "calls_per_step": 2 / 3,
            "calls_refused": 1 / 3,
            "calls_useful": 1.0,
            "unparsable": 1 / 2,
            "tokens_per_episode": (2 + 3 + 2) / 2,
        }
    )


def test_gigpo_adds_a_part_per_step_by_state_or_by_screen() -> None:
    recipe = Recipe.model_validate({**RECIPE.model_dump(), "advantage": {"kind": "gigpo"}})
    # `step` gives step i the state and the screen "s<i>": both rollouts meet in s0 only.
    episodes = [episode(0, 0, True, length=2), episode(0, 1, False, length=1)]
    half = 1 / math.sqrt(2)
    found = harvest(episodes, recipe, 4, seed=0)
    assert advantages(found) == pytest.approx([2 * half, half, -2 * half], abs=1e-5)
    won = episodes[0].trajectory
    assert won is not None
    steps = (won.steps[0].model_copy(update={"state_id": "other"}), won.steps[1])
    apart = Episode(episodes[0].job, episodes[0].result, won.model_copy(update={"steps": steps}))
    found = harvest([apart, episodes[1]], recipe, 4, seed=0)
    assert advantages(found) == pytest.approx([half, half, -half], abs=1e-5)
    screens = recipe.advantage.model_copy(update={"step_group": "screen"})
    found = harvest(
        [apart, episodes[1]], recipe.model_copy(update={"advantage": screens}), 4, seed=0
    )
    assert advantages(found) == pytest.approx([2 * half, half, -2 * half], abs=1e-5)
