"""Which episodes are asked for: balanced, reproducible, never held out in training."""

import json
from collections import Counter

from services.trainer.jobs import Sender, TaskSampler, eval_jobs, held_out, stable_seed, train_jobs
from services.trainer.recipe import Recipe
from wmkit.domain.tasks import TaskRef


def recipe(seed: int = 0, **tasks: object) -> Recipe:
    values = {"templates": ["a", "b", "c"], "train_seeds": [0, 5], "eval_seeds": [5, 9]}
    return Recipe.model_validate(
        {
            "checkpoint": "x",
            "seed": seed,
            "tasks": values | {"eval_n": 7} | tasks,
            "schedule": {"groups": 2, "group_size": 3},
        }
    )


def test_seeds_do_not_depend_on_the_process() -> None:
    # blake2b over repr, worked out apart from this code
    import hashlib

    digest = hashlib.blake2b(b"(1, 'train-1', 0, 2)", digest_size=8).digest()
    assert stable_seed(1, "train-1", 0, 2) == int.from_bytes(digest, "big") % 2**31


def test_templates_come_in_rounds_and_seeds_are_not_repeated_before_all_are_used() -> None:
    sampler = TaskSampler(recipe().tasks, 3)
    drawn = sampler.draw(15)
    assert len(set(drawn)) == 15
    assert Counter(task.template for task in drawn) == {"a": 5, "b": 5, "c": 5}
    for start in range(0, 15, 3):
        assert {task.template for task in drawn[start : start + 3]} == {"a", "b", "c"}
    assert all(0 <= task.seed < 5 for task in drawn + sampler.draw(30))


def test_the_sampler_follows_its_seed() -> None:
    one, same, other = (TaskSampler(recipe().tasks, seed).draw(12) for seed in (1, 1, 2))
    assert one == same != other


def test_a_task_that_is_put_back_comes_first() -> None:
    sampler = TaskSampler(recipe().tasks, 0)
    lost = TaskRef(template="b", seed=4)
    sampler.put_back([lost])
    assert sampler.draw(2)[0] == lost
    assert sampler.draw(1)[0] != lost


def test_held_out_instances_are_spread_over_templates_and_outside_the_training_seeds() -> None:
    tasks = held_out(recipe().tasks)
    assert [str(task) for task in tasks] == ["a:5", "b:5", "c:5", "a:6", "b:6", "c:6", "a:7"]


def test_a_groups_members_share_task_and_world_and_differ_in_their_sampling() -> None:
    tasks = [TaskRef(template="a", seed=0), TaskRef(template="b", seed=1)]
    jobs = train_jobs(recipe(), Sender("run", "run", 9), 4, tasks)
    assert [(j.group, j.member, str(j.task)) for j in jobs] == [
        (0, 0, "a:0"), (0, 1, "a:0"), (0, 2, "a:0"), (1, 0, "b:1"), (1, 1, "b:1"), (1, 2, "b:1")
    ]  # fmt: skip
    assert len({j.transition_seed for j in jobs[:3]}) == 1
    assert len({j.seed for j in jobs}) == 6
    assert len({j.job_id for j in jobs}) == 6
    assert {(j.phase, j.policy_id, j.min_version, j.run_id) for j in jobs} == {
        ("train-4", "run", 9, "run")
    }


def test_both_evaluations_ask_for_the_same_episodes_at_every_run_seed() -> None:
    before = eval_jobs(recipe(0), Sender("run", "run", 0), "evaluate-before")
    after = eval_jobs(recipe(1), Sender("run", "run", 12), "evaluate-after")
    assert not {j.job_id for j in before} & {j.job_id for j in after}
    for b, a in zip(before, after, strict=True):
        assert (b.task, b.seed, b.transition_seed, b.spec) == (
            a.task, a.seed, a.transition_seed, a.spec,
        )  # fmt: skip
        assert b.spec.temperature == 0
    assert {j.min_version for j in after} == {12}


def test_a_sampler_goes_on_where_its_state_stood() -> None:
    sampler = TaskSampler(recipe().tasks, 3)
    sampler.draw(4)
    sampler.put_back([TaskRef(template="b", seed=2)])
    state = json.loads(json.dumps(sampler.state()))
    later = TaskSampler(recipe().tasks, 99)
    later.restore(state)
    assert later.draw(20) == sampler.draw(20)


def test_an_attempt_that_was_ended_does_not_share_its_job_ids() -> None:
    tasks = [TaskRef(template="a", seed=1)]
    first = train_jobs(recipe(), Sender("run", "run", 1), 2, tasks)
    again = train_jobs(recipe(), Sender("run", "run~1", 1, attempt=1), 2, tasks)
    assert not {job.job_id for job in first} & {job.job_id for job in again}
    assert [job.seed for job in first] == [job.seed for job in again]
    assert {job.policy_id for job in again} == {"run~1"}
    refill = train_jobs(recipe(), Sender("run", "run", 1), 2, tasks, first_group=2)
    assert {job.group for job in refill} == {2}
