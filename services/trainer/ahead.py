"""The episodes of coming iterations, played while this one trains, as far as staleness allows.

One iteration's episodes are played at a time, in order: the next begins when the one before has
ended. What is still out when a run is saved is asked for again, by the same names, when it goes
on; so each iteration remembers where it began, and which tasks were drawn for it.
"""

import asyncio
from collections import defaultdict, deque
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Generic, TypeVar

from services.trainer.jobs import TaskSampler
from services.trainer.summary import Transitions
from wmkit.domain.tasks import TaskRef

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Mark:
    """Where queue and logs stood when an iteration's episodes began."""

    cursor: str
    """Place in the queue's results."""
    trajectories_bytes: int
    """Size of trajectories.jsonl."""
    transitions: Transitions


@dataclass(slots=True)
class Draws:
    """The tasks drawn for iterations that have not been trained on yet."""

    sampler: TaskSampler
    known: dict[int, list[TaskRef]] = field(default_factory=lambda: defaultdict(list))
    recalled: dict[int, deque[TaskRef]] = field(default_factory=dict)
    """Drawn by an earlier process: to be taken before the sampler is asked."""

    def take(self, iteration: int, count: int) -> list[TaskRef]:
        earlier = self.recalled.get(iteration, deque())
        tasks = [earlier.popleft() for _ in range(min(count, len(earlier)))]
        tasks += self.sampler.draw(count - len(tasks))
        self.known[iteration] += tasks
        return tasks

    def recall(self, drawn: Mapping[int, Sequence[TaskRef]]) -> None:
        self.recalled = {iteration: deque(tasks) for iteration, tasks in drawn.items()}

    def after(self, iteration: int) -> dict[int, list[TaskRef]]:
        """Forget what was drawn up to `iteration`; the rest is out, or was recalled."""
        self.known = defaultdict(list, {i: t for i, t in self.known.items() if i > iteration})
        left = {i: list(t) for i, t in self.recalled.items() if i > iteration}
        return {i: [*self.known[i], *left.get(i, [])] for i in sorted({*self.known, *left})}


class Ahead(Generic[T]):
    """Plays iterations by `play`, which is called for one at a time; `mark` says where it begins.

    Iterations after `last` are never begun.
    """

    def __init__(
        self, play: Callable[[int], Awaitable[T]], mark: Callable[[], Mark], depth: int, last: int
    ) -> None:
        self._play = play
        self._mark = mark
        self._depth = depth
        self._last = last
        self._tasks: dict[int, asyncio.Task[T]] = {}
        self._marks: dict[int, Mark] = {}

    async def get(self, iteration: int) -> T:
        """The episodes of `iteration`; those of the next ones begin as it trains."""
        found = await self._begin(iteration)
        del self._tasks[iteration]
        self._marks.pop(iteration)
        for later in range(iteration + 1, min(iteration + self._depth, self._last) + 1):
            self._begin(later)
        return found

    def begun(self, iteration: int) -> Mark | None:
        """Where `iteration` began, if it has."""
        return self._marks.get(iteration)

    async def settle(self) -> None:
        """Wait until nothing is being played; failures come out of `get`."""
        if self._tasks:
            await asyncio.wait(self._tasks.values())

    async def stop(self) -> None:
        """Play nothing more; jobs that are out stay out."""
        tasks = list(self._tasks.values())
        self._tasks.clear()
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    def _begin(self, iteration: int) -> "asyncio.Task[T]":
        if iteration not in self._tasks:
            before = self._tasks.get(iteration - 1)
            self._tasks[iteration] = asyncio.create_task(self._after(before, iteration))
        return self._tasks[iteration]

    async def _after(self, before: "asyncio.Task[T] | None", iteration: int) -> T:
        if before is not None:
            await asyncio.wait([before])
            before.result()
        self._marks[iteration] = self._mark()
        return await self._play(iteration)
