"""A learner in every process of a world, led by rank 0.

Rank 0 calls a `Team` as if it were one `Learner`; the others `follow` and do the same at the
same time. What they are sent (samples, pictures) comes from rank 0 alone, so one process talks
to queue, blob store and policy.
"""

import threading
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import structlog

from services.trainer.batches import Sample
from services.trainer.learner import Learner
from services.trainer.learner_state import load_learner, save_learner
from services.trainer.recipe import Recipe
from services.trainer.world import World, join
from wmkit.domain.errors import WMError

log = structlog.get_logger(__name__)

ORDERS: Mapping[str, Callable[..., Any]] = {
    "update": Learner.update,
    "weights": Learner.weights,
    "probe": Learner.probe,
    "save": Learner.save,
    "save_state": save_learner,
    "load_state": load_learner,
}


class Team:
    """The learners of a recipe, seen from rank 0. Raises what the learners raise."""

    def __init__(self, recipe: Recipe, *, device: str = "cpu", world: World | None = None) -> None:
        self.world = world or World()
        self._learner: Learner | None = None
        self._learner = self._together("open", recipe, device)

    @property
    def stop(self) -> threading.Event:
        """Set from another thread to end a running update early."""
        return self._mine.stop

    @property
    def processor(self) -> str:
        return self._mine.processor

    @property
    def _mine(self) -> Learner:
        assert self._learner is not None
        return self._learner

    def update(self, samples: Sequence[Sample], images: Mapping[str, bytes]) -> dict[str, float]:
        metrics: dict[str, float] = self._together("update", samples, images)
        return metrics

    def weights(self) -> bytes:
        data: bytes = self._together("weights")
        return data

    def probe(self) -> list[float]:
        found: list[float] = self._together("probe")
        return found

    def save(self, folder: Path) -> None:
        self._together("save", folder)

    def save_state(self, folder: Path) -> None:
        self._together("save_state", folder)

    def load_state(self, folder: Path) -> None:
        self._together("load_state", folder)

    def _together(self, name: str, *args: Any) -> Any:
        self.world.order((name, args))
        return _obey(self.world, self._learner, name, args)


def follow(world: World, device: str) -> None:
    """The life of a process that does not lead, until `dismiss`."""
    learner: Learner | None = None
    while True:
        order: tuple[str, tuple[Any, ...]] = world.order(None)
        name, args = order
        if name == "dismiss":
            return
        try:
            if name == "open":
                args = (args[0], device)
                learner = None
            done = _obey(world, learner, name, args)
            learner = done if name == "open" else learner
        except WMError as error:
            log.info("an order failed", rank=world.rank, order=name, error=error.message)


def dismiss(world: World) -> None:
    """Rank 0 ends the others. One that has died needs no order any more."""
    try:
        world.order(("dismiss", ()))
    except RuntimeError as error:
        log.error("a training process has died", error=str(error).partition("\n")[0])


def _obey(world: World, learner: Learner | None, name: str, args: tuple[Any, ...]) -> Any:
    """Do it; an error of any process is raised in all of them, once all are through."""
    out: Any = None
    mine: WMError | None = None
    try:
        if name == "open":
            out = _open(world, *args)
        else:
            assert learner is not None
            out = ORDERS[name](learner, *args)
    except WMError as error:
        mine = error
    if world.size > 1:
        complaint = world.complaint(mine.message if mine else "")
        if complaint and mine is None:
            mine = WMError(complaint)
    if mine is not None:
        raise mine
    return out


def _open(world: World, recipe: Recipe, device: str) -> Learner:
    if recipe.optimizer.dtype != "float32" and not world.grouped:
        world = join(device, alone=False)
    return Learner(recipe, device=device, world=world)
