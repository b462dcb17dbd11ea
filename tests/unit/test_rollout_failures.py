"""What is lost to infrastructure: never a verdict, always a reason."""

import asyncio
from typing import Any

import pytest

from services.rollout.episode import play
from services.rollout.failures import EpisodeFailed
from services.rollout.thinking import stretch_seed
from tests.rollout_cases import FINISH, SCREEN, L, R, a_job, a_world, acts, an_agent, call, letters
from wmkit.domain.errors import (
    BrowserCrashed,
    DeadlineExpired,
    InvalidRequest,
    Overloaded,
    StateNotFound,
    Unavailable,
    WMError,
)
from wmkit.domain.generation import Generation
from wmkit.domain.tasks import Judgement, TaskRef, Verdict
from wmkit.domain.transition import Transition
from wmkit.testing import FakePolicy, FakeWorldModel


class Faults:
    """Raises these errors, one per call, then lets calls through."""

    def __init__(self, *errors: Exception) -> None:
        self.left = list(errors)
        self.calls = 0

    def next(self) -> None:
        self.calls += 1
        if self.left:
            raise self.left.pop(0)


class FaultyWorld(FakeWorldModel):
    def __init__(self, faults: Faults) -> None:
        super().__init__(letters, screen=SCREEN)
        self.faults = faults

    async def step(self, *args: Any, **kwargs: Any) -> Transition:
        self.faults.next()
        return await super().step(*args, **kwargs)


class FaultyPolicy(FakePolicy):
    def __init__(self, faults: Faults, *stretches: str) -> None:
        super().__init__(an_agent(*stretches)._answer, policy_id="r1")
        self.faults = faults
        self.request_ids: list[str] = []

    async def generate(self, *args: Any, **kwargs: Any) -> Generation:
        self.request_ids.append(kwargs["request_id"])
        self.faults.next()
        return await super().generate(*args, **kwargs)


async def lost(*, world: Any = None, policy: Any = None, **job: Any) -> EpisodeFailed:
    with pytest.raises(EpisodeFailed) as failure:
        await play(
            a_job(**job),
            world=world or a_world(),
            policy=policy or an_agent(acts(R), FINISH),
            patience_s=0.0,
        )
    return failure.value


@pytest.mark.parametrize("stretch", [acts(R), "<think>" + call(R)])
@pytest.mark.parametrize(
    "error",
    [
        Unavailable("the world model is away"),
        BrowserCrashed("the browser died"),
        DeadlineExpired("no answer within 60 s"),
        StateNotFound("state aa has expired"),
        WMError("internal error 1234"),
    ],
)
async def test_a_broken_world_model_loses_the_episode_for_now(error: WMError, stretch: str) -> None:
    failure = await lost(world=FaultyWorld(Faults(error)), policy=an_agent(stretch, FINISH))
    assert (failure.retryable, failure.hopeless) == (True, False)
    assert error.message in failure.reason
    assert "step 0" in failure.reason


@pytest.mark.parametrize(
    ("action", "reason", "retryable"),
    [
        ("scroll(direction='up')", "truncated", False),
        (f"long_press{L[3:]}", "render_timeout", True),
    ],
)
async def test_a_committed_step_that_the_world_model_cannot_answer_is_no_verdict(
    action: str, reason: str, retryable: bool
) -> None:
    failure = await lost(policy=an_agent(acts(R), acts(action)))
    assert failure.reason == f"the world model failed at step 1: {reason}"
    assert failure.retryable is retryable


@pytest.mark.parametrize(
    ("job", "complaint"),
    [
        ({"task": TaskRef(template="nonsense", seed=1)}, "no task 'nonsense'"),
        ({"dialect": "klingon"}, "unknown dialect 'klingon'"),
    ],
)
async def test_a_job_that_nobody_can_play_is_hopeless(job: dict[str, Any], complaint: str) -> None:
    failure = await lost(**job)
    assert (failure.retryable, failure.hopeless) == (False, True)
    assert complaint in failure.reason


async def test_a_request_that_the_policy_refuses_is_hopeless() -> None:
    faults = Faults(InvalidRequest("the prompt has 30000 tokens, the model reads 20480"))
    failure = await lost(policy=FaultyPolicy(faults))
    assert failure.hopeless
    assert "20480" in failure.reason


async def test_a_version_that_is_not_loaded_yet_is_tried_again_later() -> None:
    failure = await lost(min_version=1, policy_id="r1")
    assert failure.retryable
    assert "version 1 was asked for" in failure.reason


async def test_an_episode_over_its_time_is_lost_for_now() -> None:
    class Asleep(FaultyWorld):
        async def judge(self, *args: Any, **kwargs: Any) -> Judgement:
            await asyncio.Event().wait()
            raise AssertionError("nobody wakes it")

    failure = await lost(world=Asleep(Faults()), timeout_s=0.05)
    assert failure.retryable
    assert failure.reason == "not finished after 0.05 s"


async def test_a_busy_service_is_waited_for_and_asked_the_same_again() -> None:
    busy = Faults(*[Overloaded("queue full", retry_after_s=0.0)] * 5)
    policy = FaultyPolicy(busy, acts(R), FINISH)
    trajectory = await play(a_job(), world=a_world(), policy=policy, patience_s=0.0)
    assert trajectory.judgement.verdict is Verdict.SUCCESS
    assert len(set(policy.request_ids[:6])) == 1
    assert len(set(policy.request_ids)) == 2


async def test_a_service_that_restarts_is_waited_for_as_long_as_patience_lasts() -> None:
    def away() -> Faults:
        return Faults(*[Unavailable("away", retry_after_s=1e-4)] * 4)

    world = FaultyWorld(away())
    trajectory = await play(a_job(), world=world, policy=an_agent(acts(R), FINISH), patience_s=1.0)
    assert (trajectory.length, world.faults.calls) == (1, 5)
    # Pauses of 0.1, 0.2 and 0.4 ms: the third one would be one too many.
    impatient = FaultyWorld(away())
    with pytest.raises(EpisodeFailed):
        await play(a_job(), world=impatient, policy=an_agent(acts(R)), patience_s=0.0004)
    assert impatient.faults.calls == 3


async def test_a_call_that_crashed_a_browser_is_not_simply_repeated() -> None:
    world = FaultyWorld(Faults(*[BrowserCrashed("died", retry_after_s=0.0)] * 2))
    with pytest.raises(EpisodeFailed):
        await play(a_job(), world=world, policy=an_agent(acts(R)), patience_s=60.0)
    assert world.faults.calls == 1


async def test_two_attempts_at_a_job_are_different_requests_with_the_same_seeds() -> None:
    tries = [FaultyPolicy(Faults(), acts(R), "<think>" + call(L), FINISH) for _ in range(2)]
    for policy in tries:
        await play(a_job(), world=a_world(), policy=policy)
    first, second = ({*policy.request_ids} for policy in tries)
    assert len(first) == 3
    assert not first & second
    seeds = [[sampling.seed for _, sampling in policy.calls] for policy in tries]
    assert seeds[0] == seeds[1]
    assert len(set(seeds[0])) == 3


def test_sampling_seeds_never_change_between_machines_and_differ_everywhere() -> None:
    # blake2b-64 of "7/0/1", halved; from `printf 7/0/1 | b2sum -l 64`.
    assert stretch_seed(7, 0, 1) == 336116171425593442
    many = {stretch_seed(seed, step, n) for seed in range(9) for step in range(9) for n in range(9)}
    assert len(many) == 729
    assert all(0 <= seed < 2**63 for seed in many)
