"""The Gymnasium environments against a real server, by Gymnasium's own checker and by hand."""

import asyncio
import warnings
from collections.abc import Callable
from typing import Any

import gymnasium
import numpy as np
import pytest
from gymnasium.error import ResetNeeded
from gymnasium.utils.env_checker import check_env
from gymnasium.vector import AutoresetMode

import wmkit.gym as phones
from tests.toy_service import ToyServicer, register
from wmkit.domain.actions import Action, Answer, Back, Enter, Finish, Home, Tap
from wmkit.domain.errors import DeadlineExpired, InvalidAction, UnknownTask, WMError
from wmkit.domain.screen import Point, Screen
from wmkit.domain.transition import FailureReason
from wmkit.rpc.server import running
from wmkit.settings import ServiceSettings
from wmkit.testing import FakeWorldModel

SIZE = (27, 60)


def walk(state: str, action: Action) -> str | FailureReason:
    """Tap reaches the goal, home stays, back fails, anything else moves on."""
    match action:
        case Tap():
            return "goal"
        case Home():
            return state
        case Back():
            return FailureReason.TRUNCATED
        case _:
            return state + "."


async def against(
    script: Callable[[str], None], before: Any = None, screen: Screen | None = None
) -> ToyServicer:
    """Run blocking code against a served fake world; its servicer."""
    servicer = ToyServicer(before)
    servicer.world = FakeWorldModel(walk, screen=screen)
    settings = ServiceSettings(drain_pause_s=0.0, drain_grace_s=1.0)
    async with running(settings, "toy", register(servicer)) as server:
        await asyncio.to_thread(script, server.address)
    return servicer


def make(address: str, **more: Any) -> Any:
    return gymnasium.make("wmr1/Phone-v0", worldmodel=address, size=SIZE, **more)


async def test_gymnasium_s_own_checker_has_nothing_to_say() -> None:
    def script(address: str) -> None:
        env = make(address, render_mode="rgb_array")
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            check_env(env.unwrapped)
        env.close()

    await against(script)


async def test_an_episode_ends_by_what_the_agent_declares() -> None:
    def script(address: str) -> None:
        env = make(address)
        observation, info = env.reset(seed=3)
        assert observation["screen"].shape == (60, 27, 3)
        assert observation["goal"] == "reach goal"
        assert (info["outcome"], info["steps"]) == ("", 0)
        tap = phones.action_to_space(Tap(Point(0.5, 0.5)))
        seen, reward, terminated, truncated, info = env.step(tap)
        assert (reward, terminated, truncated) == (0.0, False, False)
        assert (info["outcome"], info["steps"]) == ("changed", 1)
        assert not np.array_equal(seen["screen"], observation["screen"])
        _, reward, terminated, truncated, info = env.step(phones.action_to_space(Finish()))
        assert (reward, terminated, truncated) == (1.0, True, False)
        assert (info["verdict"], info["masked"]) == ("success", False)
        with pytest.raises(ResetNeeded):
            env.unwrapped.step(Home())
        env.reset()
        _, reward, terminated, _, info = env.unwrapped.step(Answer("no"))
        assert (reward, terminated, info["verdict"]) == (0.0, True, "failure")
        env.close()

    await against(script)


async def test_the_step_limit_truncates_and_a_failed_world_is_masked() -> None:
    def script(address: str) -> None:
        env = make(address).unwrapped
        env.reset(seed=1)
        ends = [env.step(Home())[2:4] for _ in range(20)]
        assert ends == [(False, False)] * 19 + [(False, True)]
        env.reset()
        _, reward, terminated, truncated, info = env.step(Back())
        assert (reward, terminated, truncated) == (0.0, False, True)
        assert (info["masked"], info["reason"], info["outcome"]) == (True, "truncated", "failed")
        env.close()

    await against(script)


async def test_imagining_shows_what_stepping_would_and_moves_nothing() -> None:
    def script(address: str) -> None:
        env = make(address).unwrapped
        start, info = env.reset(seed=1)
        dreamt, there = env.imagine(Enter())
        assert (there["outcome"], there["steps"]) == ("changed", 1)
        assert env.imagine(Home())[1]["state_id"] == info["state_id"]
        with pytest.raises(InvalidAction, match="nothing to imagine"):
            env.imagine(Finish())
        seen, *_, after = env.step(Enter())
        assert after["state_id"] == there["state_id"]
        assert np.array_equal(seen["screen"], dreamt["screen"])
        assert not np.array_equal(seen["screen"], start["screen"])
        env.close()

    servicer = await against(script)
    assert [purpose.value for *_, purpose in servicer.world.steps] == [
        "imagine", "imagine", "commit",
    ]  # fmt: skip


async def test_seeds_and_options_choose_the_task() -> None:
    def script(address: str) -> None:
        env = make(address).unwrapped
        by_seed = [env.reset(seed=seed)[1]["task"] for seed in (1, 2, 1)]
        assert by_seed[0] == by_seed[2] != by_seed[1]
        assert env.reset(options={"task": "fake", "task_seed": 9})[1]["task"] == "fake:9"
        with pytest.raises(UnknownTask):
            env.reset(options={"task": "other"})
        env.close()
        few = make(address, task_seeds=[4, 5])
        tasks = {few.reset(seed=seed)[1]["task"] for seed in range(12)}
        assert tasks == {"fake:4", "fake:5"}
        few.close()

    await against(script)


async def test_a_screen_of_another_shape_is_fitted_to_the_space() -> None:
    def script(address: str) -> None:
        env = make(address)
        observation, _ = env.reset(seed=1)
        assert observation["screen"].shape == (60, 27, 3)
        assert env.observation_space.contains(observation)
        env.close()

    await against(script, screen=Screen(300, 200))


async def test_many_phones_do_what_each_would_do_alone() -> None:
    plans: list[list[Action]] = [
        [Enter(), Tap(Point(0.1, 0.1)), Finish(), Home(), Enter()],
        [Home(), Back(), Enter(), Tap(Point(0.9, 0.9)), Finish()],
        [Enter(), Enter(), Enter(), Enter(), Enter()],
    ]

    def alone(address: str, seed: int, plan: list[Action]) -> list[Any]:
        env = make(address).unwrapped
        observation, info = env.reset(seed=seed)
        out, over = [(observation, 0.0, False, False, info)], False
        for action in plan:
            if over:
                observation, info = env.reset()
                out.append((observation, 0.0, False, False, info))
                over = False
            else:
                out.append(env.step(action))
                over = out[-1][2] or out[-1][3]
        env.close()
        return out

    def script(address: str) -> None:
        envs = gymnasium.make_vec(
            "wmr1/Phone-v0", num_envs=3, worldmodel=address, size=SIZE, render_mode="rgb_array"
        )
        assert isinstance(envs, phones.PhoneVectorEnv)
        assert envs.metadata["autoreset_mode"] is AutoresetMode.NEXT_STEP
        observation, infos = envs.reset(seed=7)
        no = np.zeros(3, np.bool_)
        turns: list[Any] = [(observation, np.zeros(3), no, no, infos)]
        turns += [envs.step([plan[turn] for plan in plans]) for turn in range(5)]
        single = [alone(address, 7 + k, plan) for k, plan in enumerate(plans)]
        for turn, (seen, rewards, terminated, truncated, infos) in enumerate(turns):
            assert envs.observation_space.contains(seen)
            for k in range(3):
                lone = single[k][turn]
                assert np.array_equal(seen["screen"][k], lone[0]["screen"])
                assert seen["goal"][k] == lone[0]["goal"]
                assert (rewards[k], terminated[k], truncated[k]) == lone[1:4]
                assert {key: infos[key][k] for key in lone[4]} == lone[4]
        assert [len(pixels.shape) for pixels in envs.render() or ()] == [3, 3, 3]
        sampled = envs.step(envs.action_space.sample())
        assert envs.observation_space.contains(sampled[0])
        envs.close()

    await against(script)


async def test_a_call_that_fails_leaves_every_phone_where_it_was() -> None:
    broken = False

    async def before(method: str) -> None:
        if broken and method == "CreateState":
            raise RuntimeError("bug")

    def script(address: str) -> None:
        nonlocal broken
        envs = phones.PhoneVectorEnv(2, address, size=SIZE)
        _, first = envs.reset(seed=1)
        envs.step([Finish(), Enter()])
        broken = True
        with pytest.raises(WMError, match="internal error"):
            envs.step([Home(), Enter()])
        broken = False
        *_, infos = envs.step([Home(), Enter()])
        assert list(infos["steps"]) == [0, 2]
        other = phones.PhoneVectorEnv(2, address, size=SIZE)
        other.reset(seed=1)
        other.step([Finish(), Enter()])
        *_, same = other.step([Home(), Enter()])
        assert list(infos["task"]) == list(same["task"])
        assert infos["task"][0] != first["task"][0]
        for each in (envs, other):
            each.close()

    await against(script, before)


async def test_a_turn_that_hangs_ends_at_its_deadline_and_can_be_taken_again() -> None:
    let_go = asyncio.Event()

    async def before(method: str) -> None:
        if method == "Step":
            await let_go.wait()

    def script(address: str) -> None:
        envs = phones.PhoneVectorEnv(2, address, size=SIZE)
        envs.reset(seed=1)
        envs._timeout_s = 0.3
        with pytest.raises(DeadlineExpired, match=r"longer than 0.3 s"):
            envs.step([Enter(), Enter()])
        loop.call_soon_threadsafe(let_go.set)
        envs._timeout_s = 30.0
        assert list(envs.step([Enter(), Enter()])[-1]["steps"]) == [1, 1]
        envs.close()

    loop = asyncio.get_running_loop()
    await against(script, before)


async def test_before_a_reset_nothing_is_stepped_and_nothing_connected() -> None:
    envs = phones.PhoneVectorEnv(2, "127.0.0.1:1", size=SIZE)
    with pytest.raises(ResetNeeded):
        envs.step([Home(), Home()])
    envs.close()
    env = make("127.0.0.1:1")
    env.close()
    env.close()
