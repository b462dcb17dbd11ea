"""What a world model has to offer to stand behind the service.

A backend knows its own kind of state, the *value*, and how to predict the next one. It does
no I/O of its own beyond asking its model, keeps nothing between calls, and knows neither
names of states nor caches nor pictures.
"""

from dataclasses import dataclass
from typing import Generic, Protocol, TypeVar

from wmkit.domain.actions import Action
from wmkit.domain.screen import Screen
from wmkit.domain.tasks import Judgement, Task, TaskRef, TaskTemplate
from wmkit.domain.transition import Element, FailureReason

V = TypeVar("V")


@dataclass(frozen=True, slots=True)
class Prediction(Generic[V]):
    """The next value, or the reason why there is none. `tokens` were spent by a model."""

    value: V | None
    reason: FailureReason | None = None
    tokens: int = 0
    finish_reason: str = ""


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
