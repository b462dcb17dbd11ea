"""What a world model has to offer to stand behind the service.

A backend knows its own kind of state, the *value*, and how to predict the next one. It does
no I/O of its own beyond asking its model, keeps nothing between calls, and knows neither
names of states nor caches nor pictures.
"""

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import Generic, Protocol, TypeVar

from wmkit.domain.actions import Action
from wmkit.domain.screen import Screen
from wmkit.domain.tasks import Judgement, Task, TaskRef, TaskTemplate
from wmkit.domain.transition import Element, FailureReason

V = TypeVar("V")


@dataclass(frozen=True, slots=True)
class Prediction(Generic[V]):
    """The next value, or the reason why there is none. `tokens` were spent by a model.

    `warnings` say what is odd about a model's answer although it could be used.
    """

    value: V | None
    reason: FailureReason | None = None
    tokens: int = 0
    finish_reason: str = ""
    warnings: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Scene:
    """What a model that looks at the screen is given besides the state's value.

    `picture` = the current screen, encoded, at the full size of the device. `goal` is empty
    where the caller named none or the backend does not read it.
    """

    picture: bytes
    goal: str = ""


class WorldBackend(Protocol[V]):
    """All methods but `predict` are pure functions of their arguments.

    `kind` names the sort of payload, `revision` everything that decides about transitions
    and looks: equal revisions answer equally. `deterministic` backends ignore the seed.
    """

    @property
    def name(self) -> str: ...

    @property
    def revision(self) -> str: ...

    @property
    def kind(self) -> str: ...

    @property
    def deterministic(self) -> bool: ...

    @property
    def screen(self) -> Screen: ...

    def start(self, ref: TaskRef) -> tuple[Task, V]:
        """A task and the value it starts from. Raises UnknownTask."""
        ...

    def snap(self, action: Action) -> Action:
        """The action on this backend's grid; `predict` sees no other, and caches key by it."""
        ...

    async def predict(self, value: V, action: Action, seed: int) -> Prediction[V]:
        """The next value. Raises Unavailable when a model behind it is down."""
        ...

    def digest(self, value: V) -> str:
        """Hex digest of the whole hidden state; equal exactly for equal values."""
        ...

    def screen_digest(self, value: V) -> str:
        """Hex digest of what is visible; equal digests have equal `html`."""
        ...

    def dumps(self, value: V) -> bytes:
        """Canonical bytes from which `loads` makes an equal value."""
        ...

    def loads(self, data: bytes) -> V:
        """Raises ValueError for bytes that are no state of this backend."""
        ...

    def html(self, value: V) -> str:
        """The screen as a document of the HTML contract."""
        ...

    def elements(self, value: V) -> tuple[Element, ...]:
        """What is drawn, from back to front, in CSS pixels; empty where it is not known."""
        ...

    def judge(
        self, ref: TaskRef, value: V, answer: str | None, finish_status: str | None
    ) -> Judgement:
        """Did an episode that ended in `value` reach its goal? Raises UnknownTask."""
        ...

    def templates(self) -> tuple[TaskTemplate, ...]: ...


class Seeing(ABC, Generic[V]):
    """A backend whose model looks at the screen: `predict_seen` is asked, never `predict`.

    Where `reads_goal`, the goal is part of the transition's name. A class and no Protocol:
    every step asks whether its backend is one.
    """

    reads_goal: bool

    @abstractmethod
    async def predict_seen(
        self, value: V, action: Action, seed: int, scene: Scene
    ) -> Prediction[V]:
        """The next value. Raises EngineDown, Overloaded, InvalidAction."""

    @abstractmethod
    async def close(self) -> None:
        """Let go of what is held open towards the model."""
