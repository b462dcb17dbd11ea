"""Successes of earlier iterations, to show a group that has none of its own. Off by default.

Where every member of a group fails, nothing is learned from its task. With `[replay]` a success
of the same task (template and seed, hence the same start state) from an earlier policy version
joins such a group. It is off-policy: its samples are marked, its ratio is to the version that
sampled it, and it is too old after `max_age` versions. Nothing here trains or plays.
"""

from collections.abc import Iterable, Mapping
from typing import Any

from services.trainer.gather import PATIENCE_S, Episode, patiently
from services.trainer.groups import is_on_policy, succeeded
from services.trainer.recipe import Replay
from wmkit.domain.episode import Trajectory
from wmkit.domain.tasks import TaskRef
from wmkit.ports import BlobStore


async def read(digest: str, blobs: BlobStore) -> bytes:
    """A blob, waiting for a store that is away for a while."""
    return await patiently(lambda: blobs.get(digest), PATIENCE_S)


class SuccessReplay:
    """Digests of stored successes by task: the newest `per_task` of each."""

    def __init__(self, recipe: Replay) -> None:
        self._recipe = recipe
        self._kept: dict[str, list[tuple[str, int]]] = {}

    def add(self, episodes: Iterable[Episode], version: int) -> None:
        """Remember the successes among episodes that were played by this version."""
        for episode in episodes:
            played = episode.trajectory
            if not self._recipe.per_task or played is None or not episode.valid:
                continue
            if succeeded(played) and is_on_policy(played, version):
                kept = self._kept.setdefault(str(episode.job.task), [])
                kept.append((episode.result.trajectory, version))
                del kept[: -self._recipe.per_task]

    def offer(self, task: TaskRef, version: int) -> str:
        """The newest success of the task that is older than `version` and not too old, or ""."""
        for digest, played in reversed(self._kept.get(str(task), [])):
            if 0 < version - played <= self._recipe.max_age:
                return digest
        return ""

    async def fetch(
        self, tasks: Iterable[TaskRef], version: int, blobs: BlobStore
    ) -> dict[TaskRef, Trajectory]:
        """What is offered for these tasks, read. Raises what the blob store raises."""
        offers = {task: digest for task in tasks if (digest := self.offer(task, version))}
        return {
            task: Trajectory.model_validate_json(await read(digest, blobs))
            for task, digest in offers.items()
        }

    def state(self) -> dict[str, Any]:
        """Everything, for JSON."""
        return {task: [list(entry) for entry in kept] for task, kept in self._kept.items()}

    def restore(self, state: Mapping[str, Any]) -> None:
        self._kept = {
            task: [(str(digest), int(version)) for digest, version in kept]
            for task, kept in state.items()
        }
