"""One of several processes that train together, started by torchrun:
python distributed_process.py PLAN [DEVICE].

PLAN is a JSON file: `recipe`, `samples` (a pickle of this test run) and `do`, a list of steps:
["open", CHANGES], ["update", N], ["load", FOLDER], ["save", FOLDER], ["export", FOLDER],
["weights", FILE], ["fails", FILE]. Rank 0 leads as in the service; the others follow.
"""

import json
import pickle
import sys
from pathlib import Path
from typing import Any

import torch

from services.trainer.recipe import Recipe
from services.trainer.team import Team, dismiss, follow
from services.trainer.world import World, joined, local_device
from wmkit.domain.errors import WMError

torch.set_num_threads(1)


def run(plan: dict[str, Any], world: World | None, device: str = "cpu") -> None:
    samples, images = pickle.loads(Path(plan["samples"]).read_bytes())
    team: Team | None = None
    for name, value in plan["do"]:
        if name == "open":
            recipe = Recipe.model_validate(plan["recipe"] | value)
            team = Team(recipe, device=device, world=world)
            continue
        assert team is not None
        match name:
            case "update":
                for _ in range(value):
                    metrics = team.update(samples, images)
                print(json.dumps(metrics), flush=True)
            case "save":
                Path(value).mkdir(parents=True, exist_ok=True)
                team.save_state(Path(value))
            case "load":
                team.load_state(Path(value))
            case "export":
                Path(value).mkdir(parents=True, exist_ok=True)
                team.save(Path(value))
            case "weights":
                Path(value).write_bytes(team.weights())
            case "fails":
                # One sample of many is bad, so at most one process meets it.
                bad = [*samples[:-1], samples[-1].__class__(**value_of(samples[-1]))]
                try:
                    team.update(bad, images)
                except WMError as error:
                    Path(value).write_text(error.message, "utf-8")


def value_of(sample: Any) -> dict[str, Any]:
    fields = {name: getattr(sample, name) for name in sample.__slots__}
    return fields | {"processor": "another"}


if __name__ == "__main__":
    device = local_device(sys.argv[2] if len(sys.argv) > 2 else "cpu")
    with joined(device) as world:
        if world.leads:
            run(json.loads(Path(sys.argv[1]).read_text("utf-8")), world, device)
            dismiss(world)
        else:
            follow(world, device)
