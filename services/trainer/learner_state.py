"""A learner on disk, exactly: weights, optimizer, step, and the states of all its generators.

Tensors as safetensors and the rest as JSON; nothing is ever unpickled. The model for people
and other programs is `Learner.save`; this is for going on.
"""

import json
import os
from pathlib import Path
from typing import Any

import safetensors
import torch
from safetensors.torch import load_file, save

from services.trainer.learner import Learner
from wmkit.domain.errors import BadCheckpoint
from wmkit.modeling.weights import own_tensors

TENSORS = "learner.safetensors"
REST = "learner.json"


def save_learner(learner: Learner, folder: Path) -> None:
    """Write the learner's state into `folder`, and onto the disk."""
    tensors = {f"model.{name}": t for name, t in own_tensors(learner.model).items()}
    # Parameters are numbered as the optimizer numbers them.
    for index, moments in learner.optimizer.state_dict()["state"].items():
        tensors |= {f"optimizer.{index}.{name}": value for name, value in moments.items()}
    tensors["random.torch"] = torch.get_rng_state()
    if torch.device(learner.device).type == "cuda":
        tensors["random.cuda"] = torch.cuda.get_rng_state(learner.device)
    data = save({name: t.detach().cpu().contiguous() for name, t in tensors.items()})
    _write(folder / TENSORS, data)
    rest = {"steps": learner.steps, "random": learner.random.getstate()}
    _write(folder / REST, json.dumps(rest).encode())


def load_learner(learner: Learner, folder: Path) -> None:
    """Put a state that `save_learner` wrote into a learner of the same recipe.

    Raises BadCheckpoint when it is damaged or belongs to another model; the learner is then
    not to be used.
    """
    try:
        tensors = load_file(str(folder / TENSORS))
        rest = json.loads((folder / REST).read_text("utf-8"))
        version, internal, gauss = rest["random"]
        learner.random.setstate((version, tuple(internal), gauss))
        learner.steps = int(rest["steps"])
        torch.set_rng_state(tensors.pop("random.torch"))
        if (cuda := tensors.pop("random.cuda", None)) is not None:
            torch.cuda.set_rng_state(cuda, learner.device)
        _load_model(learner, tensors)
        _load_optimizer(learner, tensors)
    except (OSError, ValueError, KeyError, RuntimeError, safetensors.SafetensorError) as error:
        raise BadCheckpoint(f"the saved state in {folder} cannot be loaded: {error}") from error


def _load_model(learner: Learner, tensors: dict[str, torch.Tensor]) -> None:
    mine = own_tensors(learner.model)
    saved = {name for name in tensors if name.startswith("model.")}
    if saved != {f"model.{name}" for name in mine}:
        raise ValueError("it holds another model")
    with torch.no_grad():
        for name, target in mine.items():
            value = tensors[f"model.{name}"]
            if value.shape != target.shape or value.dtype != target.dtype:
                raise ValueError(f"{name} has another shape or type")
            target.copy_(value)


def _load_optimizer(learner: Learner, tensors: dict[str, torch.Tensor]) -> None:
    moments: dict[int, dict[str, Any]] = {}
    for name, value in tensors.items():
        if name.startswith("optimizer."):
            _, index, key = name.split(".")
            moments.setdefault(int(index), {})[key] = value
    whole = learner.optimizer.state_dict()
    learner.optimizer.load_state_dict({**whole, "state": moments})


def _write(path: Path, data: bytes) -> None:
    with path.open("wb") as file:
        file.write(data)
        file.flush()
        os.fsync(file.fileno())
