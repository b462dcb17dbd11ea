"""Earlier successes: what is remembered, what is offered, and how a group learns from one."""

import json

import pytest

from services.trainer.gather import Episode
from services.trainer.groups import harvest
from services.trainer.recipe import Recipe, Replay
from services.trainer.replay import SuccessReplay
from tests.trainer_cases import job, segment, step, trajectory
from wmkit.blobs import MemoryBlobs
from wmkit.domain.episode import Result, ResultStatus
from wmkit.domain.tasks import TaskRef

TASK = TaskRef(template="a", seed=1)
RECIPE = Recipe.model_validate(
    {
        "checkpoint": "x",
        "tasks": {"templates": ["a"]},
        "reward": {"beta": 0.0},
        "replay": {"per_task": 2, "max_age": 3},
    }
)


def episode(member: int, success: bool | None, version: int, task: TaskRef = TASK) -> Episode:
    of = job(job_id=f"run/{version}/0/{member}", task=task, member=member)
    result = Result(
        job_id=of.job_id,
        run_id="run",
        phase="x",
        group=0,
        member=member,
        status=ResultStatus.ACCEPTED,
        trajectory=f"blob-{version}-{member}",
    )
    made = trajectory(of, success=success, steps=[step(segment=segment(version=version))])
    return Episode(of, result, made)


def test_the_newest_successes_of_a_task_are_kept_and_age() -> None:
    replay = SuccessReplay(Replay(per_task=2, max_age=3))
    for version in (1, 2, 3):
        replay.add([episode(0, True, version), episode(1, False, version)], version)
    replay.add([episode(0, None, 4), episode(1, True, 3)], 4)  # unsure; of another version
    assert replay.offer(TASK, 3) == "blob-2-0", "not of the version that is trained"
    assert [replay.offer(TASK, version) for version in (4, 6, 7)] == ["blob-3-0", "blob-3-0", ""]
    assert replay.offer(TASK, 2) == "", "the first success made room"
    assert replay.offer(TaskRef(template="a", seed=2), 4) == ""
    other = SuccessReplay(Replay(per_task=2, max_age=3))
    other.restore(json.loads(json.dumps(replay.state())))
    assert other.offer(TASK, 4) == "blob-3-0"
    off = SuccessReplay(Replay())
    off.add([episode(0, True, 1)], 1)
    assert off.offer(TASK, 2) == ""


def test_an_earlier_success_joins_a_group_that_has_none_and_is_marked() -> None:
    failures = [episode(n, False, 4) for n in range(3)]
    earlier = episode(9, True, 2).trajectory
    assert earlier is not None
    assert harvest(failures, RECIPE, 4, seed=0).samples == []
    found = harvest(failures, RECIPE, 4, seed=0, replayed={TASK: earlier})
    # One success in four: 0.75 / 0.5 and -0.25 / 0.5, std with n - 1.
    assert [s.advantage for s in found.samples] == pytest.approx([-0.5] * 3 + [1.5], abs=1e-5)
    assert [s.off_policy for s in found.samples] == [False] * 3 + [True]
    assert found.metrics["groups_replayed"] == 1
    assert (found.metrics["success"], found.metrics["groups_failed"]) == (0.0, 1)
    assert found.metrics["reward"] == 0.0, "what was played now, not what is remembered"


def test_a_group_with_a_success_of_its_own_needs_no_other() -> None:
    mixed = [episode(0, True, 4), episode(1, False, 4)]
    earlier = episode(9, True, 2).trajectory
    assert earlier is not None
    found = harvest(mixed, RECIPE, 4, seed=0, replayed={TASK: earlier})
    assert len(found.samples) == 2 and not any(s.off_policy for s in found.samples)
    assert found.metrics["groups_replayed"] == 0


async def test_what_is_offered_is_read_from_the_blob_store() -> None:
    blobs = MemoryBlobs()
    success = episode(0, True, 1)
    assert success.trajectory is not None
    digest = await blobs.put(success.trajectory.model_dump_json().encode())
    replay = SuccessReplay(Replay(per_task=1))
    kept = success.result.model_copy(update={"trajectory": digest})
    replay.add([Episode(success.job, kept, success.trajectory)], 1)
    other = TaskRef(template="a", seed=2)
    assert await replay.fetch([TASK, other], 2, blobs) == {TASK: success.trajectory}
