"""Supervised training on stored trajectories: a cold start before reinforcement learning.

    python -m services.trainer.supervised RECIPE        (or under torchrun; `wmr1 sft` calls it)

The same engine, samples and masks as GRPO, with the loss -log p of the tokens that were sampled
in episodes that succeeded. It plays nothing and needs no service but the blob store. Text is not
encoded again: demonstrations come from a policy with the same tokenizer and image processor,
a larger one or an earlier run.
"""

import asyncio
import json
import os
import random
import sys
from collections.abc import Iterator, Sequence
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from pydantic import Field

from services.trainer.batches import Sample, samples_of
from services.trainer.gather import PATIENCE_S
from services.trainer.groups import succeeded
from services.trainer.pictures import fetch_pictures
from services.trainer.recipe import Lora, Loss, Optimizer, Recipe, Schedule, Section, Tasks
from services.trainer.recipe_toml import dumps, parse_as
from services.trainer.rundir import RunDir
from services.trainer.team import Team, dismiss, follow
from services.trainer.world import World, joined, local_device
from wmkit.blobs import open_blobs
from wmkit.domain.episode import Trajectory
from wmkit.domain.errors import InvalidRequest, NotFound, WMError


class SftRecipe(Section):
    """One supervised run. Unknown keys are refused."""

    name: str = "sft"
    """Begins the name of the output folder."""
    seed: int = Field(0, ge=0)
    """Decides the order of samples."""
    checkpoint: str
    """Folder of the starting weights (safetensors, tokenizer, image processor)."""
    data: tuple[str, ...] = Field(min_length=1)
    """Run folders whose trajectories are learned from, such as `runs/demo-20260101-120000-abcd`,
    or `runs/imported` after `wmr1 trajectories import`."""
    only_successes: bool = True
    """Leave out episodes that the judge did not call a success."""
    epochs: int = Field(1, ge=1)
    """Passes over all samples."""
    samples: int = Field(64, ge=1)
    """Samples (committed steps) in an optimizer step."""
    optimizer: Optimizer = Optimizer()
    lora: Lora = Lora()

    def as_run(self, steps: int) -> Recipe:
        """The recipe by which the engine takes `steps` optimizer steps."""
        return Recipe(
            name=self.name,
            seed=self.seed,
            checkpoint=self.checkpoint,
            tasks=Tasks(templates=("none",)),
            schedule=Schedule(iterations=steps),
            loss=Loss(objective="likelihood"),
            optimizer=self.optimizer.model_copy(update={"epochs": 1, "minibatches": 1}),
            lora=self.lora,
        )


async def demonstrations(
    recipe: SftRecipe, blobs_url: str
) -> tuple[list[Sample], dict[str, bytes]]:
    """All samples, each with advantage 1, and their pictures.

    Raises NotFound for a run or a trajectory that is not there, InvalidRequest when no episode
    is left.
    """
    blobs = open_blobs(blobs_url)
    out: list[Sample] = []
    for folder in recipe.data:
        path = Path(folder) / "trajectories.jsonl"
        if not path.is_file():
            raise NotFound(f"{folder} is no run folder: it holds no trajectories.jsonl", folder)
        for line in path.read_text("utf-8").splitlines():
            entry = json.loads(line)
            # Those that were imported have no "success" there: the trajectory says it.
            if not entry["trajectory"] or (
                recipe.only_successes and not entry.get("success", True)
            ):
                continue
            try:
                data = await blobs.get(entry["trajectory"])
            except NotFound:
                raise NotFound(
                    f"the trajectory of {entry['job_id']} is not in the blob store {blobs_url}; "
                    "WMR1_BLOBS names it",
                    entry["trajectory"],
                ) from None
            trajectory = Trajectory.model_validate_json(data)
            if recipe.only_successes and not succeeded(trajectory):
                continue
            # Runs may share job names, and names must tell samples apart.
            number = len(out)
            out += [replace(s, name=f"{s.name} ({number})") for s in samples_of(trajectory, 1.0)]
    if not out:
        raise InvalidRequest("the data hold no episode to learn from", field="data")
    return out, await fetch_pictures(blobs, out, PATIENCE_S)


def parts(samples: Sequence[Sample], recipe: SftRecipe) -> Iterator[list[Sample]]:
    """The samples of each optimizer step: shuffled anew in every epoch, all of them once."""
    order, shuffle = list(samples), random.Random(recipe.seed)
    for _ in range(recipe.epochs):
        shuffle.shuffle(order)
        yield from (order[i : i + recipe.samples] for i in range(0, len(order), recipe.samples))


def train(
    recipe: SftRecipe,
    samples: Sequence[Sample],
    images: dict[str, bytes],
    folder: RunDir,
    *,
    device: str = "cpu",
    world: World | None = None,
) -> dict[str, float]:
    """Train, write metrics.jsonl and checkpoint/ into `folder`; the metrics of the last step."""
    steps = list(parts(samples, recipe))
    team = Team(recipe.as_run(len(steps)), device=device, world=world)
    last: dict[str, float] = {}
    for number, part in enumerate(steps, 1):
        last = {"iteration": number, "samples": len(part), **team.update(part, images)}
        folder.append_metrics(last)
    folder.save_checkpoint(team.save)
    return last


def run(path: str, runs: str, blobs: str, device: str) -> RunDir | None:
    """Train by a recipe file; the folder of the run, None in processes that do not lead."""
    device = local_device(device)
    with joined(device) as world:
        if not world.leads:
            follow(world, device)
            return None
        try:
            recipe = parse_as(SftRecipe, Path(path).read_text("utf-8"))
            samples, images = asyncio.run(demonstrations(recipe, blobs))
            folder = RunDir(Path(runs) / f"{recipe.name}-{datetime.now(UTC):%Y%m%d-%H%M%S}")
            folder.create(dumps(recipe))
            train(recipe, samples, images, folder, device=device, world=world)
            return folder
        finally:
            if world.size > 1:
                dismiss(world)


def main(arguments: Sequence[str]) -> int:
    if len(arguments) != 1 or arguments[0] in ("-h", "--help"):
        print(__doc__)
        return 0 if arguments and arguments[0] in ("-h", "--help") else 2
    env: Any = os.environ
    try:
        folder = run(
            arguments[0],
            env.get("WMR1_RUNS", "runs"),
            env.get("WMR1_BLOBS", "var/blobs"),
            env.get("WMR1_DEVICE", "cpu"),
        )
    except (WMError, OSError) as error:
        print(f"sft: {error}", file=sys.stderr)
        return 1
    if folder is not None:
        print(folder.path)
    return 0


if __name__ == "__main__":
    raise SystemExit(main(sys.argv[1:]))
