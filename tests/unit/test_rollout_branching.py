"""Branches of stored episodes, and episodes that meet a new policy version on their way."""

from typing import Any

import pytest

from services.rollout.episode import play
from services.rollout.failures import EpisodeFailed
from tests.rollout_cases import FINISH, L, R, a_job, a_world, acts, an_agent, call, state
from wmkit.domain.branches import branch_returns
from wmkit.domain.episode import Branch, Ending, Trajectory
from wmkit.domain.generation import Generation
from wmkit.domain.tasks import Verdict
from wmkit.testing import FakePolicy, FakeWorldModel, read

LOOKS_THEN_LEFT = ("<think>" + call(R), "</think>Action: " + L)


async def stored(world: FakeWorldModel) -> tuple[Trajectory, str]:
    """An episode that goes left after a look, waits, goes right and finishes; its blob."""
    agent = an_agent(*LOOKS_THEN_LEFT, acts("wait()"), acts(R), FINISH)
    trajectory = await play(a_job(), world=world, policy=agent)
    return trajectory, await world.blobs.put(trajectory.model_dump_json().encode())


def branched(trajectory: str, root: int, horizon: int = 5, **changes: Any) -> Any:
    branch = Branch(trajectory=trajectory, root=root, horizon=horizon)
    return a_job(job_id="r1/branch/0/1", branch=branch, **changes)


async def test_a_branch_keeps_the_path_to_its_root_and_plays_on_from_there() -> None:
    before, blob = await stored(a_world("startLRR"))
    # Another process: it knows the states of the stored episode from their payloads alone.
    world = a_world("startLRR")
    world.blobs = (old := a_world("startLRR")).blobs
    trajectory, blob = await stored(old)
    agent = an_agent(acts(R), acts(R), FINISH)
    played = await play(branched(blob, 1), world=world, policy=agent, blobs=world.blobs)
    assert played.steps[:1] == trajectory.steps[:1] == before.steps[:1]
    words = ["start", "startL", "startLR", "startLRR"]
    assert [step.state_id for step in played.steps] == [state(word) for word in words]
    assert [step.index for step in played.steps] == [0, 1, 2, 3]
    assert (played.length, played.calls) == (3, 1)
    assert played.judgement.verdict is Verdict.SUCCESS
    assert {state(word) for word in (*words, "startR")} == set(played.payloads)
    assert [word for word, _, _ in world.steps] == ["startL", "startLR"]


async def test_a_branch_is_asked_what_its_trajectory_was_asked_at_that_step() -> None:
    world = a_world()
    first = an_agent(*LOOKS_THEN_LEFT, acts("wait()"), FINISH)
    trajectory = await play(a_job(), world=world, policy=first)
    blob = await world.blobs.put(trajectory.model_dump_json().encode())
    for root, stretch in ((0, 0), (1, 2), (2, 3)):
        again = an_agent(FINISH)
        await play(branched(blob, root), world=world, policy=again, blobs=world.blobs)
        assert read(again.calls[0][0]) == read(first.calls[stretch][0])
        assert again.calls[0][0] == first.calls[stretch][0]


async def test_a_branch_ends_at_its_horizon_and_its_group_is_rewarded_from_the_root() -> None:
    world = a_world("startLR")
    _, blob = await stored(world)
    plays = [(acts(R), FINISH), (acts(L), acts(L)), (acts("wait()"), acts(R))]
    group = [
        await play(
            branched(blob, 1, horizon=2),
            world=world,
            policy=an_agent(*play_),
            blobs=world.blobs,
        )
        for play_ in plays
    ]
    assert [t.ending for t in group] == [Ending.FINISH, Ending.STEP_LIMIT, Ending.STEP_LIMIT]
    rewards = branch_returns(group, 1, 2, n_max=5, beta=0.5)
    # Successes used 1 and 2 of 2 steps: B = 2/3 * 1.5 + 1/3 * 2 = 5/3, and each gets
    # 0.5 * (0.5 - 0.5 * (L - B) / B); the failure gets nothing.
    assert [r.total for r in rewards] == pytest.approx([1 + 0.5 * 0.7, 0.0, 1 + 0.5 * 0.4])


async def test_a_branch_that_no_worker_can_play_is_hopeless() -> None:
    world = a_world()
    trajectory, blob = await stored(world)
    with pytest.raises(EpisodeFailed, match="has 4 steps, so none is a root 4") as outside:
        await play(branched(blob, 4), world=world, policy=an_agent(FINISH), blobs=world.blobs)
    lost = trajectory.model_copy(update={"payloads": {}}).model_dump_json().encode()
    with pytest.raises(EpisodeFailed, match="lacks the payload of state") as lacking:
        job = branched(await world.blobs.put(lost), 1)
        await play(job, world=world, policy=an_agent(FINISH), blobs=world.blobs)
    assert outside.value.hopeless and lacking.value.hopeless
    with pytest.raises(EpisodeFailed, match="there is no blob") as absent:
        job = branched("0" * 64, 1)
        await play(job, world=world, policy=an_agent(FINISH), blobs=world.blobs)
    assert absent.value.retryable and not absent.value.hopeless


class Updated(FakePolicy):
    """A new version arrives before the second answer."""

    async def generate(self, *args: Any, **kwargs: Any) -> Generation:
        self.version = min(len(self.calls), 1)
        return await super().generate(*args, **kwargs)


@pytest.mark.parametrize("stretches", [(acts(R), FINISH), LOOKS_THEN_LEFT])
async def test_a_new_version_on_the_way_is_a_reason_to_play_again(stretches: tuple[str]) -> None:
    agent = an_agent(*stretches)
    with pytest.raises(EpisodeFailed, match="from version 0 to 1") as failure:
        await play(a_job(), world=a_world(), policy=Updated(agent._answer, image_px=(56, 56)))
    assert failure.value.retryable


async def test_an_episode_may_go_on_under_a_new_version_where_the_recipe_says_so() -> None:
    policy = Updated(an_agent(acts(R), FINISH)._answer, image_px=(56, 56))
    trajectory = await play(a_job(mixed_versions=True), world=a_world(), policy=policy)
    sampled = [
        {v for v, m in zip(s.segment.versions, s.segment.mask, strict=True) if m}
        for s in trajectory.steps
    ]
    assert sampled == [{0}, {1}]
