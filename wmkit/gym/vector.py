"""Many phones as one `gymnasium.vector.VectorEnv`: all steps of a turn travel in one stream.

Autoreset is NEXT_STEP: the step after an episode's end begins the next one, whatever the
action, with reward 0.
"""

import asyncio
from collections.abc import Coroutine, Sequence
from typing import Any, TypeVar

import numpy as np
from gymnasium.error import ResetNeeded
from gymnasium.utils import seeding
from gymnasium.vector import AutoresetMode, VectorEnv
from gymnasium.vector.utils import batch_space, concatenate, create_empty_array, iterate

from wmkit.clients.sync import World, connect
from wmkit.domain.actions import Action
from wmkit.domain.errors import DeadlineExpired, Unavailable, WMError
from wmkit.domain.tasks import TaskRef
from wmkit.domain.transition import Transition
from wmkit.gym.env import canonical, chosen
from wmkit.gym.episode import Chance, Episode, Moment, Player
from wmkit.gym.spaces import action_space, observation_space

Batch = dict[str, Any]
T = TypeVar("T")
Flags = np.ndarray[Any, np.dtype[np.bool_]]


class PhoneVectorEnv(VectorEnv[Batch, Any, Any]):
    """`num_envs` independent phones over one connection; arguments as of `PhoneEnv`.

    `reset(seed=s)` begins phone k as `PhoneEnv.reset(seed=s + k)` does. A call that raises
    leaves every phone where it was.
    """

    metadata = {  # noqa: RUF012
        "render_modes": ["rgb_array"],
        "render_fps": 2,
        "autoreset_mode": AutoresetMode.NEXT_STEP,
    }

    def __init__(
        self,
        num_envs: int = 1,
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
        if num_envs < 1:
            raise ValueError(f"num_envs must be at least 1, is {num_envs}")
        width_px, height_px = size
        self.num_envs = num_envs
        self.render_mode = render_mode
        self.single_observation_space = observation_space(width_px, height_px)
        self.single_action_space = action_space()
        self.observation_space = batch_space(self.single_observation_space, num_envs)
        self.action_space = batch_space(self.single_action_space, num_envs)
        self._address, self._timeout_s, self._token = worldmodel, timeout_s, token
        self._chance = Chance(tuple(tasks or ()), tuple(task_seeds or ()))
        self._size = (int(width_px), int(height_px))
        self._backend, self._transition_seed = backend, transition_seed
        self._world: World | None = None
        self._known: tuple[str, ...] = ()
        self._rngs: list[np.random.Generator] = []
        self._episodes: list[Episode] = []

    def reset(
        self,
        *,
        seed: int | Sequence[int | None] | None = None,
        options: dict[str, Any] | None = None,
    ) -> tuple[Batch, dict[str, Any]]:
        """Begin an episode on every phone. `options` as of `PhoneEnv.reset`, for all."""
        world, player = self._connected()
        if not self._known and not self._chance.templates:
            self._known = tuple(template.name for template in world.tasks())
        self._seed(seed)
        named = chosen(options)
        refs = [named or self._draw(index) for index in range(self.num_envs)]

        async def begin() -> Any:
            return await asyncio.gather(*(player.begin(ref) for ref in refs))

        begun = world.wait(begin())
        self._episodes = [episode for episode, _ in begun]
        batch, _, _, _, infos = self._batch([moment for _, moment in begun])
        return batch, infos

    def step(self, actions: Any) -> tuple[Batch, Any, Flags, Flags, dict[str, Any]]:
        """Act on every phone; those whose episode has ended begin the next one instead.

        `actions` is a point of `action_space`, or a list of actions, one for each phone.
        Raises ResetNeeded before the first reset, InvalidAction, Unavailable.
        """
        if not self._episodes:
            raise ResetNeeded("call reset first")
        each = actions if isinstance(actions, list) else iterate(self.action_space, actions)
        done = [canonical(action) for action in each]
        if len(done) != self.num_envs:
            raise ValueError(f"{self.num_envs} phones need as many actions, not {len(done)}")
        world, player = self._connected()
        # Drawn from copies: a call that fails must not use up a task.
        rngs = {i: self._rngs[i] for i, episode in enumerate(self._episodes) if episode.over}
        states = {i: rng.bit_generator.state for i, rng in rngs.items()}
        fresh = {i: self._draw(i) for i in rngs}
        try:
            played = world.wait(self._in_time(self._play(player, done, fresh)))
        except BaseException:
            for i, state in states.items():
                rngs[i].bit_generator.state = state
            raise
        self._episodes = [episode for episode, _ in played]
        return self._batch([moment for _, moment in played])

    def render(self) -> tuple[Any, ...] | None:
        """The screens that were last observed, with `render_mode="rgb_array"`."""
        if self.render_mode is None:
            return None
        return tuple(np.array(episode.screen) for episode in self._episodes)

    def close_extras(self, **_: Any) -> None:
        if self._world is not None:
            self._world.close()
            self._world = None
        self._episodes = []

    async def _in_time(self, turn: Coroutine[Any, Any, T]) -> T:
        """A stream has no deadline of its own, so the turn gets one."""
        try:
            async with asyncio.timeout(self._timeout_s):
                return await turn
        except TimeoutError:
            raise DeadlineExpired(f"the turn took longer than {self._timeout_s:g} s") from None

    async def _play(
        self, player: Player, actions: list[Action], fresh: dict[int, TaskRef]
    ) -> list[tuple[Episode, Moment]]:
        calls = [
            call
            for i, episode in enumerate(self._episodes)
            if i not in fresh and (call := player.call(episode, actions[i], str(i))) is not None
        ]
        found: dict[str, Transition] = {}
        async for key, answer in player.client.batch_step(calls):
            if isinstance(answer, WMError):
                raise answer
            found[key] = answer
        if len(found) < len(calls):
            raise Unavailable(f"only {len(found)} of {len(calls)} steps were answered")

        async def one(index: int) -> tuple[Episode, Moment]:
            if index in fresh:
                return await player.begin(fresh[index])
            episode, action = self._episodes[index], actions[index]
            return await player.after(episode, action, found.get(str(index)))

        return list(await asyncio.gather(*(one(index) for index in range(self.num_envs))))

    def _batch(self, moments: Sequence[Moment]) -> tuple[Batch, Any, Flags, Flags, dict[str, Any]]:
        empty: Any = create_empty_array(self.single_observation_space, n=self.num_envs)
        screens: Any = concatenate(
            self.single_observation_space, [moment.observation for moment in moments], empty
        )
        infos: dict[str, Any] = {}
        for index, moment in enumerate(moments):
            infos = self._add_info(infos, moment.info, index)
        return (
            screens,
            np.array([moment.reward for moment in moments], np.float64),
            np.array([moment.terminated for moment in moments], np.bool_),
            np.array([moment.truncated for moment in moments], np.bool_),
            infos,
        )

    def _draw(self, index: int) -> TaskRef:
        return self._chance.draw(self._rngs[index], self._known)

    def _seed(self, seed: int | Sequence[int | None] | None) -> None:
        if seed is None and self._rngs:
            return
        if seed is None or isinstance(seed, int):
            seeds: list[int | None] = [
                None if seed is None else seed + index for index in range(self.num_envs)
            ]
        else:
            seeds = list(seed)
        if len(seeds) != self.num_envs:
            raise ValueError(f"{self.num_envs} phones need as many seeds, not {len(seeds)}")
        old = self._rngs or [np.random.default_rng() for _ in seeds]
        self._rngs = [
            rng if one is None else seeding.np_random(one)[0]
            for rng, one in zip(old, seeds, strict=True)
        ]

    def _connected(self) -> tuple[World, Player]:
        if self._world is None:
            self._world = connect(self._address, timeout_s=self._timeout_s, token=self._token)
        world = self._world
        return world, Player(world.client, self._size, self._backend, self._transition_seed)
