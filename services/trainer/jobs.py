"""Which episodes a run asks for: training tasks, held-out instances, and all their seeds.

Everything follows from the recipe's seed, so a run can be asked for again.
"""

import hashlib
import random
from collections import deque
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from services.trainer.recipe import Recipe, Tasks
from wmkit.domain.episode import Job
from wmkit.domain.tasks import TaskRef


def stable_seed(*parts: object) -> int:
    """A seed in [0, 2^31) that depends on its parts alone, not on the process."""
    digest = hashlib.blake2b(repr(parts).encode(), digest_size=8).digest()
    return int.from_bytes(digest, "big") & 0x7FFF_FFFF


def recipe_digest(recipe: Recipe) -> str:
    """Names the resolved recipe in every job."""
    return hashlib.blake2b(recipe.model_dump_json().encode(), digest_size=16).hexdigest()


class TaskSampler:
    """Draws training tasks: templates in shuffled rounds, so that none starves; seeds at
    random, none twice before the range is used up."""

    def __init__(self, tasks: Tasks, seed: int) -> None:
        self._tasks = tasks
        self._random = random.Random(stable_seed(seed, "tasks"))
        self._round: list[str] = []
        self._drawn: dict[str, set[int]] = {name: set() for name in tasks.templates}
        self._again: deque[TaskRef] = deque()

    def draw(self, count: int) -> list[TaskRef]:
        """The next `count` tasks, those that were put back first."""
        return [self._again.popleft() if self._again else self._next() for _ in range(count)]

    def put_back(self, tasks: Iterable[TaskRef]) -> None:
        """Queue again the tasks whose groups were lost to infrastructure."""
        self._again.extend(tasks)

    def state(self) -> dict[str, Any]:
        """Everything that decides the next draws, for JSON."""
        return {
            "random": self._random.getstate(),
            "round": self._round,
            "drawn": {name: sorted(seeds) for name, seeds in self._drawn.items()},
            "again": [task.model_dump() for task in self._again],
        }

    def restore(self, state: Mapping[str, Any]) -> None:
        """Go on where the sampler of `state` stood."""
        version, internal, gauss = state["random"]
        self._random.setstate((version, tuple(internal), gauss))
        self._round = list(state["round"])
        self._drawn = {name: set(seeds) for name, seeds in state["drawn"].items()}
        self._again = deque(TaskRef.model_validate(task) for task in state["again"])

    def _next(self) -> TaskRef:
        if not self._round:
            self._round = list(self._tasks.templates)
            self._random.shuffle(self._round)
        template = self._round.pop()
        start, stop = self._tasks.train_seeds
        drawn = self._drawn[template]
        if len(drawn) == stop - start:
            drawn.clear()
        seed = self._random.randrange(start, stop)
        while seed in drawn:
            seed = seed + 1 if seed + 1 < stop else start
        drawn.add(seed)
        return TaskRef(template=template, seed=seed)


def held_out(tasks: Tasks) -> list[TaskRef]:
    """The `eval_n` instances of an evaluation; the same for every run seed."""
    return _spread(tasks.templates, tasks.eval_seeds[0], tasks.eval_n)


def validation(tasks: Tasks) -> list[TaskRef]:
    """The `validation_n` instances of a validation; the same for every run seed."""
    return _spread(tasks.templates, tasks.validation_seeds[0], tasks.validation_n)


def _spread(templates: Sequence[str], start: int, count: int) -> list[TaskRef]:
    return [
        TaskRef(template=templates[i % len(templates)], seed=start + i // len(templates))
        for i in range(count)
    ]


@dataclass(frozen=True, slots=True)
class Sender:
    """Whose jobs they are. `attempt` counts how often the run was ended and resumed: the jobs
    of an attempt that was ended are over, so the next one asks under other names."""

    run_id: str
    policy_id: str
    version: int
    attempt: int = 0

    def job_id(self, phase: str, group: int, member: int) -> str:
        again = f"/again-{self.attempt}" if self.attempt else ""
        return f"{self.run_id}/{phase}/{group}/{member}{again}"


def train_jobs(
    recipe: Recipe,
    sender: Sender,
    iteration: int,
    tasks: Sequence[TaskRef],
    first_group: int = 0,
) -> list[Job]:
    """`group_size` episodes of every task; group `first_group` + i plays `tasks[i]`."""
    phase = f"train-{iteration}"
    digest = recipe_digest(recipe)
    return [
        Job(
            job_id=sender.job_id(phase, group, member),
            run_id=sender.run_id,
            phase=phase,
            task=task,
            group=group,
            member=member,
            seed=stable_seed(recipe.seed, phase, group, member),
            transition_seed=stable_seed(recipe.seed, phase, group),
            policy_id=sender.policy_id,
            min_version=sender.version,
            spec=recipe.train_episode,
            priority=recipe.schedule.priority,
            recipe=digest,
        )
        for group, task in enumerate(tasks, first_group)
        for member in range(recipe.schedule.group_size)
    ]


def eval_jobs(
    recipe: Recipe, sender: Sender, phase: str, tasks: Sequence[TaskRef] | None = None
) -> list[Job]:
    """One greedy episode of every held-out instance (or of `tasks`); transition seeds do not
    depend on the phase, so before and after meet the same world."""
    digest = recipe_digest(recipe)
    return [
        Job(
            job_id=sender.job_id(phase, index, 0),
            run_id=sender.run_id,
            phase=phase,
            task=task,
            group=index,
            member=0,
            seed=stable_seed("evaluate", index),
            transition_seed=stable_seed("evaluate", index),
            policy_id=sender.policy_id,
            min_version=sender.version,
            spec=recipe.eval_episode,
            priority=recipe.schedule.priority,
            recipe=digest,
        )
        for index, task in enumerate(held_out(recipe.tasks) if tasks is None else tasks)
    ]
