"""What the parts of the system ask of each other, as Protocols over domain types.

Real adapters live in `wmkit.clients`, `wmkit.queue` and `wmkit.blobs`, fakes in
`wmkit.testing`. Every method may raise the errors of `wmkit.domain.errors`.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol

from wmkit.domain.actions import Action
from wmkit.domain.episode import Job, Result
from wmkit.domain.generation import Generation, PolicyInfo, Sampling, Turn
from wmkit.domain.sources import StateSource
from wmkit.domain.tasks import Judgement, Task, TaskRef, TaskTemplate
from wmkit.domain.transition import (
    Backend,
    Element,
    Image,
    ImageRequest,
    Purpose,
    Rendering,
    State,
    Transition,
)


class BlobStore(Protocol):
    """Immutable bytes named by the hex BLAKE3 of their content."""

    async def put(self, data: bytes) -> str: ...

    async def get(self, digest: str) -> bytes:
        """Raises NotFound when there is no such blob."""
        ...

    async def has(self, digest: str) -> bool: ...


class Renderer(Protocol):
    async def render(
        self, html: str, width_px: int, height_px: int, image: ImageRequest
    ) -> Rendering: ...


@dataclass(frozen=True, slots=True)
class Created:
    """A fresh state, the task it belongs to, and its picture where one was asked for."""

    state: State
    task: Task | None
    image: Image | None
    elements: tuple[Element, ...] = ()


class WorldModel(Protocol):
    async def create_state(
        self,
        source: StateSource,
        /,
        *,
        backend: str = "",
        image: ImageRequest | None = None,
        pin: bool = False,
    ) -> Created:
        """A state from a task, a screen or the payload of an earlier state.

        `pin` keeps it for the long lifetime of pinned states instead of the usual one.
        """
        ...

    async def step(
        self,
        state_id: str,
        action: Action,
        *,
        purpose: Purpose,
        seed: int = 0,
        image: ImageRequest | None = None,
        pin: bool = False,
        goal: str = "",
    ) -> Transition:
        """`goal` is what the agent wants to reach, for world models that read it."""
        ...

    async def get_state(self, state_id: str) -> State: ...

    async def get_screenshot(self, state_id: str, image: ImageRequest) -> Rendering: ...

    async def judge(
        self,
        task: TaskRef | None,
        final_state_id: str,
        *,
        answer: str | None = None,
        finish_status: str | None = None,
        goal: str = "",
        first_state_id: str = "",
        actions: Sequence[Action] | None = None,
        request_id: str = "",
    ) -> Judgement:
        """Did an episode reach its task's goal, or the `goal` in words where it has no task?

        `first_state_id` and `actions` (None: nobody kept a log) are evidence for a judge that
        looks at screens; a predicate needs neither. Calls of one `request_id` get one verdict.
        """
        ...

    async def list_backends(self) -> Sequence[Backend]: ...

    async def list_tasks(self) -> Sequence[TaskTemplate]: ...


class Policy(Protocol):
    async def generate(
        self,
        turns: Sequence[Turn],
        sampling: Sampling,
        *,
        policy_id: str = "",
        min_version: int = 0,
        request_id: str = "",
    ) -> Generation: ...

    async def update_weights(
        self,
        policy_id: str,
        version: int,
        weights_digest: str,
        *,
        probe: Sequence[float] = (),
        abort: bool = False,
    ) -> int:
        """Load weights from the blob store; returns the version that is loaded now.

        `probe` = the sender's `wmkit.modeling.probe_logprobs`, compared after loading;
        `abort` ends the answers that are being written instead of waiting for them.
        """
        ...

    async def info(self) -> PolicyInfo: ...


@dataclass(frozen=True, slots=True)
class Delivery:
    """A job in a worker's hands. `deliveries` counts how often it was handed out, from 1."""

    entry_id: str
    job: Job
    deliveries: int


@dataclass(frozen=True, slots=True)
class Ledger:
    """Counts of a run (or one of its phases): accepted + masked + dead == requested at the end."""

    requested: int = 0
    accepted: int = 0
    masked: int = 0
    dead: int = 0

    def __add__(self, other: "Ledger") -> "Ledger":
        return Ledger(
            self.requested + other.requested,
            self.accepted + other.accepted,
            self.masked + other.masked,
            self.dead + other.dead,
        )

    @property
    def ended(self) -> int:
        return self.accepted + self.masked + self.dead


class JobQueue(Protocol):
    """At-least-once delivery with exactly-once effect.

    Workers: `take` or `reclaim`, `renew` while playing, then `finish` or `retry`.
    Trainer: `submit`, `results` from a cursor, `ledger`.
    """

    async def submit(self, jobs: Sequence[Job]) -> None:
        """Put jobs on the stream and count them as requested; submitting an id twice is a no-op."""
        ...

    async def take(self, worker: str, count: int, block_ms: int) -> Sequence[Delivery]:
        """Up to `count` new jobs, those of the highest priority first."""
        ...

    async def reclaim(self, worker: str, count: int) -> Sequence[Delivery]:
        """Jobs of workers that stopped renewing their claim."""
        ...

    async def renew(self, worker: str, deliveries: Sequence[Delivery]) -> Sequence[Delivery]:
        """Keep the claims; returns those that are lost: taken over, or of a job that has ended."""
        ...

    async def finish(self, delivery: Delivery, result: Result, *, traceback: str = "") -> bool:
        """Record the end of a job and acknowledge it; False when it had ended already.

        A job that somebody held and that ends without a trajectory leaves a dead letter with
        the reason and `traceback`. A run that ends its own job does not hold it: deliveries 0.
        """
        ...

    async def retry(self, delivery: Delivery, *, failed: bool = True, delay_s: float = 0.0) -> None:
        """Hand the job back, atomic; a no-op when the claim is someone else's by now.

        `failed` counts an attempt; a worker that shuts down hands back with `failed=False`.
        The job is not handed out again for `delay_s`.
        """
        ...

    async def lost(self, run_id: str) -> Mapping[str, float]:
        """Jobs of a run that failed or lost their worker and have not ended: seconds since
        that happened first, by job id."""
        ...

    async def results(
        self, run_id: str, cursor: str, count: int, block_ms: int
    ) -> tuple[Sequence[Result], str]:
        """Results after `cursor` ("0" is the beginning) and the next cursor."""
        ...

    async def ledger(self, run_id: str, phase: str = "") -> Ledger: ...
