"""One phone as a `gymnasium.Env`."""

from collections.abc import Mapping, Sequence
from typing import Any

import gymnasium
import numpy as np
from gymnasium.error import ResetNeeded

from wmkit.clients.sync import World, connect
from wmkit.clients.worldmodel import StepCall
from wmkit.domain.actions import TERMINAL, Action
from wmkit.domain.errors import InvalidAction
from wmkit.domain.tasks import TaskRef
from wmkit.domain.transition import Purpose, Transition
from wmkit.gym.episode import Chance, Episode, Pixels, Player
from wmkit.gym.spaces import action_from_space, action_space, observation_space

Observation = dict[str, Any]
PhoneAction = Mapping[str, Any] | Action


class PhoneEnv(gymnasium.Env[Observation, PhoneAction]):
    """A phone inside the world model, with a task drawn at every reset.

    `tasks` are the templates to draw from (all that the server offers when None),
    `task_seeds` the seeds (any when None), `size` the width and height of the observed
    screen in pixels. Actions are points of `action_space` or actions of
    `wmkit.domain.actions`. Reward is 1 when the episode ends in success, else 0; `finish`
    and `answer` terminate, the task's step limit truncates. `info["masked"]` marks ends that
    say nothing about the agent: the judge is unsure, or the simulated world failed.

    `reset(options={"task": "settings_turn_on", "task_seed": 7})` names the task. Calls raise
    the errors of `wmkit.domain.errors` and leave the episode as it was. Nothing is connected
    before the first reset, so environments can be made before a fork.
    """

    metadata = {"render_modes": ["rgb_array"], "render_fps": 2}  # noqa: RUF012

    def __init__(
        self,
        worldmodel: str = "localhost:50051",
        *,
        tasks: Sequence[str] | None = None,
        task_seeds: Sequence[int] | None = None,
        backend: str = "",
        size: tuple[int, int] = (324, 720),
        transition_seed: int = 0,
        timeout_s: float = 60.0,
        token: str | None = None,
        render_mode: str | None = None,
    ) -> None:
        if render_mode not in (None, "rgb_array"):
            raise ValueError(f"render_mode is None or 'rgb_array', not {render_mode!r}")
        width_px, height_px = size
        self.observation_space = observation_space(width_px, height_px)
        self.action_space = action_space()
        self.render_mode = render_mode
        self._address, self._timeout_s, self._token = worldmodel, timeout_s, token
        self._chance = Chance(tuple(tasks or ()), tuple(task_seeds or ()))
        self._size = (int(width_px), int(height_px))
        self._backend, self._transition_seed = backend, transition_seed
        self._world: World | None = None
        self._known: tuple[str, ...] = ()
        self._episode: Episode | None = None

    def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[Observation, dict[str, Any]]:
        """Begin an episode; equal seeds begin equal ones. Raises UnknownTask, Unavailable."""
        super().reset(seed=seed)
        world, player = self._connected()
        if not self._known and not self._chance.templates:
            self._known = tuple(template.name for template in world.tasks())
        ref = chosen(options) or self._chance.draw(self.np_random, self._known)
        self._episode, moment = world.wait(player.begin(ref))
        return moment.observation, moment.info

    def step(self, action: PhoneAction) -> tuple[Observation, float, bool, bool, dict[str, Any]]:
        """Raises ResetNeeded outside an episode, InvalidAction, Unavailable."""
        episode, done = self._running(), canonical(action)
        world, player = self._connected()

        async def play() -> Any:
            call = player.call(episode, done)
            found = None if call is None else await _ask(player, call)
            return await player.after(episode, done, found)

        self._episode, moment = world.wait(play())
        return moment.observation, moment.reward, moment.terminated, moment.truncated, moment.info

    def imagine(self, action: PhoneAction) -> tuple[Observation, dict[str, Any]]:
        """What the phone would show after an action; the episode stays where it is."""
        episode, done = self._running(), canonical(action)
        if isinstance(done, TERMINAL):
            raise InvalidAction(f"{done.name} ends an episode; there is nothing to imagine")
        world, player = self._connected()
        call = player.call(episode, done, purpose=Purpose.IMAGINE)
        assert call is not None
        moment = player.imagined(episode, done, world.wait(_ask(player, call)))
        return moment.observation, moment.info

    def render(self) -> Pixels | None:
        """The screen that was last observed, with `render_mode="rgb_array"`."""
        if self.render_mode is None or self._episode is None:
            return None
        return np.array(self._episode.screen)

    def close(self) -> None:
        if self._world is not None:
            self._world.close()
            self._world = None
        self._episode = None

    def _connected(self) -> tuple[World, Player]:
        if self._world is None:
            self._world = connect(self._address, timeout_s=self._timeout_s, token=self._token)
        world = self._world
        return world, Player(world.client, self._size, self._backend, self._transition_seed)

    def _running(self) -> Episode:
        if self._episode is None or self._episode.over:
            raise ResetNeeded("the episode has ended or never began; call reset first")
        return self._episode


async def _ask(player: Player, call: StepCall) -> Transition:
    """One step as a call of its own."""
    return await player.client.step(
        call.state_id,
        call.action,
        purpose=call.purpose,
        seed=call.seed,
        image=call.image,
        goal=call.goal,
    )


def canonical(action: PhoneAction) -> Action:
    return action_from_space(action) if isinstance(action, Mapping) else action


def chosen(options: Mapping[str, Any] | None) -> TaskRef | None:
    """The task that reset's options name, if they do."""
    if not options or "task" not in options:
        return None
    return TaskRef(template=str(options["task"]), seed=int(options.get("task_seed", 0)))
