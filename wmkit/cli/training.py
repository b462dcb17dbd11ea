"""`wmr1 train`, `sft`, `resume`, `eval`, `runs watch` and `runs cancel`."""

import asyncio
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from wmkit.cli import places, recipes
from wmkit.cli.console import out
from wmkit.cli.running import conclude, run_at, run_here, watch
from wmkit.cli.runs import local_run
from wmkit.cli.tasks import check_templates
from wmkit.domain.errors import InvalidRequest, RunNotFound
from wmkit.domain.runs import RunStatus


def train(recipe: str, changes: Mapping[str, Any], trainer: str, *, dry_run: bool) -> None:
    """Raises WMError when the recipe or the run fails."""
    chosen = recipes.changed(recipes.read(recipe), changes)
    if dry_run:
        from services.trainer.recipe_toml import dumps

        if not chosen.episode.backend:  # other backends have tasks of their own
            check_templates(chosen.tasks.templates)
        print(dumps(chosen), end="")
    elif trainer:
        # A trainer elsewhere looks for the checkpoint on its own disk, so the path stays.
        try:
            run = asyncio.run(run_at(chosen, trainer))
        except KeyboardInterrupt:
            out.print(f"the run goes on; wmr1 runs list --trainer {trainer}")
            raise
        conclude(run)
    else:
        run_here(chosen, "train")


def resume(run_id: str, trainer: str) -> None:
    """Go on with a run that ended early. Raises RunNotFound, and WMError when the run fails."""
    if trainer:
        from wmkit.clients.trainer import TrainerClient

        async def ask() -> None:
            async with TrainerClient(trainer) as client:
                await client.resume_run(run_id)

        asyncio.run(ask())
        watch_run(run_id, trainer)
        return
    folder = Path(os.environ.get("WMR1_RUNS", places.root() / "runs")) / run_id
    run = local_run(folder)
    if run is None:
        raise RunNotFound(f"there is no run {run_id!r} in {places.shown(folder.parent)}", run_id)
    if run.status is RunStatus.SUCCEEDED:
        raise InvalidRequest(f"{run_id} has succeeded: there is nothing to resume", "run_id")
    run_here(recipes.read(str(folder / "config.toml")), "resume", run_id)


def evaluate(checkpoint: str, recipe: str, n: int | None, *, tool: bool) -> None:
    """Play held-out tasks greedily with a checkpoint. Raises WMError.

    Without `tool` the agent may not ask the world model, and its prompt says so.
    """
    changes: dict[str, Any] = {
        "name": "eval",
        "checkpoint": recipes.checkpoint(checkpoint),
        "control": "none",
        "schedule.iterations": 0,
        "tasks.eval_n": n,
    }
    if not tool:
        changes |= {"name": "eval-no-tool", "episode.max_calls": 0}
    run_here(recipes.changed(recipes.read(recipe), changes), "eval")


def watch_run(run_id: str, trainer: str) -> None:
    """Raises RunNotFound, and WMError when the run fails."""
    conclude(asyncio.run(watch(run_id, trainer)))


def cancel_run(run_id: str, trainer: str) -> None:
    """Raises RunNotFound."""
    from wmkit.clients.trainer import TrainerClient

    async def cancel() -> str:
        async with TrainerClient(trainer) as client:
            return (await client.cancel_run(run_id)).status

    out.print(f"{run_id} {asyncio.run(cancel())}")


def sft(recipe: str) -> None:
    """Train on stored trajectories, in this process. Raises WMError."""
    from services.trainer.supervised import run

    folder = run(
        str(places.find(recipe, "recipe")),
        os.environ.get("WMR1_RUNS", str(places.root() / "runs")),
        os.environ.get("WMR1_BLOBS", str(places.root() / "var" / "blobs")),
        os.environ.get("WMR1_DEVICE", "cpu"),
    )
    if folder is not None:
        out.print(f"the checkpoint is in {places.shown(folder.checkpoint)}")
