"""Episodes in the terms of Gymnasium: rewards, endings, infos. Shared by both environments.

An episode is an immutable value, as states are: a call that fails leaves it as it was, and
the same step can be taken again. Rewards are those of the task alone: 1 for success, else 0.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from wmkit.clients.pictures import to_pil
from wmkit.clients.worldmodel import StepCall, WorldModelClient
from wmkit.domain.actions import TERMINAL, Action, Answer, Finish
from wmkit.domain.errors import InvalidRequest, Unavailable
from wmkit.domain.screen import Screen
from wmkit.domain.tasks import Judgement, Task, TaskRef, Verdict
from wmkit.domain.transition import (
    Element,
    Image,
    ImageRequest,
    Outcome,
    Purpose,
    State,
    Transition,
)

Pixels = np.ndarray[Any, np.dtype[np.uint8]]


@dataclass(frozen=True, slots=True)
class Episode:
    """Where an episode stands."""

    task: Task
    state: State
    screen: Pixels
    elements: tuple[Element, ...]
    first: State
    actions: tuple[Action, ...] = ()
    over: bool = False

    @property
    def steps(self) -> int:
        return len(self.actions)


@dataclass(frozen=True, slots=True)
class Moment:
    """What an environment answers."""

    observation: dict[str, Any]
    reward: float
    terminated: bool
    truncated: bool
    info: dict[str, Any]


@dataclass(frozen=True, slots=True)
class Chance:
    """Which tasks an environment draws from; empty means all of the server's, and any seed."""

    templates: tuple[str, ...] = ()
    seeds: tuple[int, ...] = ()

    def draw(self, rng: np.random.Generator, known: Sequence[str]) -> TaskRef:
        names = self.templates or tuple(known)
        if not names:
            raise InvalidRequest("the world model offers no tasks", field="tasks")
        name = names[int(rng.integers(len(names)))]
        seed = int(rng.integers(2**31))
        return TaskRef(
            template=name, seed=self.seeds[seed % len(self.seeds)] if self.seeds else seed
        )


@dataclass(frozen=True, slots=True)
class Player:
    """Plays episodes against a world model; pictures are resized to `size` = (width, height)."""

    client: WorldModelClient
    size: tuple[int, int]
    backend: str = ""
    transition_seed: int = 0

    async def begin(self, ref: TaskRef) -> tuple[Episode, Moment]:
        """Raises UnknownTask, UnknownBackend, Unavailable."""
        created = await self.client.create_state(ref, backend=self.backend)
        if created.task is None:
            raise Unavailable(f"task {ref} came without its goal")
        state = created.state
        # The size to ask for follows from the state's own screen.
        shot = await self.client.get_screenshot(state.state_id, self._request(state.screen))
        if shot.image is None:
            raise Unavailable(f"the first screen of {ref} could not be drawn: {shot.reason}")
        episode = Episode(created.task, state, self._pixels(shot.image), shot.elements, state)
        return episode, self._moment(episode)

    def call(
        self, episode: Episode, action: Action, key: str = "", purpose: Purpose = Purpose.COMMIT
    ) -> StepCall | None:
        """The step to ask for; None for an action that ends the episode."""
        if isinstance(action, TERMINAL):
            return None
        request = self._request(episode.state.screen)
        return StepCall(
            key,
            episode.state.state_id,
            action,
            purpose,
            self.transition_seed,
            request,
            goal=episode.task.goal,
        )

    async def after(
        self, episode: Episode, action: Action, found: Transition | None
    ) -> tuple[Episode, Moment]:
        """The episode after an action, whose transition is None where it ends the episode.

        A fault of the simulated world truncates the episode with `info["masked"]`: it says
        nothing about the agent, so nobody should learn from it.
        """
        if found is None:
            episode = replace(episode, over=True)
            judgement = await self._judge(episode, action)
            return episode, self._moment(episode, terminated=True, judgement=judgement)
        if found.outcome is Outcome.FAILED or found.state is None or found.image is None:
            episode = replace(episode, over=True)
            info = {"masked": True, "reason": str(found.reason or "no picture came back")}
            return episode, self._moment(episode, found.outcome, truncated=True, more=info)
        episode = self._moved(episode, action, found.state, found.image, found.elements)
        if episode.steps < episode.task.step_limit:
            return episode, self._moment(episode, found.outcome)
        episode = replace(episode, over=True)
        judgement = await self._judge(episode, None)
        return episode, self._moment(episode, found.outcome, truncated=True, judgement=judgement)

    def imagined(self, episode: Episode, action: Action, found: Transition) -> Moment:
        """What a step would show; the episode stays where it is."""
        if found.state is None or found.image is None:
            info = {"masked": True, "reason": str(found.reason or "no picture came back")}
            return self._moment(episode, found.outcome, more=info)
        there = self._moved(episode, action, found.state, found.image, found.elements)
        return self._moment(there, found.outcome)

    def _moved(
        self,
        episode: Episode,
        action: Action,
        state: State,
        image: Image,
        elements: tuple[Element, ...],
    ) -> Episode:
        return replace(
            episode,
            state=state,
            screen=self._pixels(image),
            elements=elements,
            actions=(*episode.actions, action),
        )

    async def _judge(self, episode: Episode, action: Action | None) -> Judgement:
        return await self.client.judge(
            episode.task.ref,
            episode.state.state_id,
            answer=action.text if isinstance(action, Answer) else None,
            finish_status=action.status if isinstance(action, Finish) else None,
            first_state_id=episode.first.state_id,
            actions=episode.actions,
        )

    def _moment(
        self,
        episode: Episode,
        outcome: Outcome | None = None,
        *,
        terminated: bool = False,
        truncated: bool = False,
        judgement: Judgement | None = None,
        more: dict[str, Any] | None = None,
    ) -> Moment:
        info: dict[str, Any] = {
            "task": str(episode.task.ref),
            "state_id": episode.state.state_id,
            "screen_id": episode.state.screen_id,
            "steps": episode.steps,
            "outcome": outcome.value if outcome else "",
            "elements": episode.elements,
            "verdict": judgement.verdict.value if judgement else "",
            "reason": judgement.reason if judgement else "",
            "masked": judgement is not None and judgement.verdict is Verdict.UNSURE,
        }
        success = judgement is not None and judgement.verdict is Verdict.SUCCESS
        observation = {"screen": episode.screen.copy(), "goal": episode.task.goal}
        return Moment(observation, float(success), terminated, truncated, info | (more or {}))

    def _request(self, screen: Screen) -> ImageRequest:
        scale = min(self.size[0] / screen.width_px, 4.0)
        return ImageRequest("bytes", scale=scale, with_elements=True)

    def _pixels(self, image: Image) -> Pixels:
        picture = to_pil(image).convert("RGB")
        if picture.size != self.size:
            picture = picture.resize(self.size)
        return np.asarray(picture, np.uint8)
