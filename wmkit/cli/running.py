"""A recipe run to its end: on a private stack or by a trainer that is there already."""

import asyncio
import time
from typing import TYPE_CHECKING

from wmkit.cli.console import out
from wmkit.cli.places import shown
from wmkit.cli.private import private_stack
from wmkit.cli.recipes import local
from wmkit.cli.results import print_results
from wmkit.cli.watching import Watcher
from wmkit.domain.errors import WMError
from wmkit.domain.runs import Run, RunStatus

if TYPE_CHECKING:
    from services.trainer.recipe import Recipe


def run_here(recipe: "Recipe", name: str, resume: str = "") -> Run:
    """Train on a stack of its own, called `name`; prints the results. Raises WMError.

    `resume` is the id of a run of that recipe that goes on instead of a new one.
    """
    recipe = local(recipe)
    began = time.monotonic()
    with private_stack(name, settings={"WMR1_CHECKPOINT": recipe.checkpoint}) as stack:
        count = len(stack.children)
        logs = shown(stack.layout.logs)
        out.print(f"{count} processes serve after {time.monotonic() - began:.0f} s, logs in {logs}")
        run = asyncio.run(run_at(recipe, stack.address("trainer"), resume))
    conclude(run, f" (logs: {logs})")
    return run


async def run_at(recipe: "Recipe", trainer: str, resume: str = "") -> Run:
    """Train at the trainer of this address and watch until the end. Raises WMError."""
    from services.trainer.recipe_toml import dumps
    from wmkit.clients.trainer import TrainerClient

    async with TrainerClient(trainer) as client:
        run = await (client.resume_run(resume) if resume else client.create_run(dumps(recipe)))
        schedule = recipe.schedule
        return await watch(
            run.run_id, trainer, schedule.max_train_s, trains=schedule.iterations > 0
        )


async def watch(run_id: str, trainer: str, max_train_s: float = 0.0, *, trains: bool = True) -> Run:
    """Show a run's events until it has ended. Raises RunNotFound."""
    from wmkit.clients.trainer import TrainerClient

    async with TrainerClient(trainer) as client:
        out.print(f"run {run_id}")
        with Watcher(out, max_train_s=max_train_s, trains=trains) as watcher:
            await watcher.follow(client.watch_run(run_id))
        return await client.get_run(run_id)


def conclude(run: Run, where: str = "") -> None:
    """Print how a run ended. Raises WMError, which ends in `where`, unless it succeeded."""
    print_results(out, run)
    if run.status is not RunStatus.SUCCEEDED:
        reason = run.error or "no reason given"
        raise WMError(f"the run {run.run_id} {run.status.value}: {reason}{where}")
