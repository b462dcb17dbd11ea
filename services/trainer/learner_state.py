"""A learner on disk, exactly: weights, optimizer, step, and the states of all its generators.

Every process writes its own slices (`torch.distributed.checkpoint`, safetensors files), and any
number of processes can read them again. The rest is JSON; nothing is ever unpickled. The model
for people and other programs is `Learner.save`; this is for going on.
"""

import base64
import json
import logging
import os
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import safetensors
import torch
from torch.distributed.checkpoint.api import CheckpointException
from torch.distributed.checkpoint.hf_storage import (
    HuggingFaceStorageReader,
    HuggingFaceStorageWriter,
)
from torch.distributed.checkpoint.state_dict_loader import load
from torch.distributed.checkpoint.state_dict_saver import save

from services.trainer.learner import Learner
from wmkit.domain.errors import BadCheckpoint
from wmkit.modeling.weights import own_tensors

REST = "learner.json"
logging.getLogger("c10d-NullHandler-dcp_logger").setLevel(logging.WARNING)

MOMENTS = ("exp_avg", "exp_avg_sq")


def save_learner(learner: Learner, folder: Path) -> None:
    """Write the learner's state into `folder`, and onto the disk."""
    with _quiet():
        save(
            _tensors(learner),
            storage_writer=HuggingFaceStorageWriter(str(folder), save_distributed=True),
            no_dist=learner.world.size == 1,
        )
    learner.world.wait()
    if not learner.world.leads:
        return
    rest: dict[str, Any] = {
        "steps": learner.steps,
        "random": learner.random.getstate(),
        "torch": _encode(torch.get_rng_state()),
    }
    if torch.device(learner.device).type == "cuda":
        rest["cuda"] = _encode(torch.cuda.get_rng_state(learner.device))
    (folder / REST).write_text(json.dumps(rest), "utf-8")
    for path in (folder / REST, *folder.glob("*.safetensors")):
        with path.open("rb") as file:
            os.fsync(file.fileno())


def load_learner(learner: Learner, folder: Path) -> None:
    """Put a state that `save_learner` wrote into a learner of the same recipe, on any number
    of processes.

    Raises BadCheckpoint when it is damaged or belongs to another model; the learner is then
    not to be used.
    """
    try:
        rest = json.loads((folder / REST).read_text("utf-8"))
        version, internal, gauss = rest["random"]
        learner.random.setstate((version, tuple(internal), gauss))
        learner.steps = int(rest["steps"])
        if learner.steps:
            _begin(learner)
        _read(learner, folder)
        torch.set_rng_state(_decode(rest["torch"]))
        if "cuda" in rest and torch.device(learner.device).type == "cuda":
            torch.cuda.set_rng_state(_decode(rest["cuda"]), learner.device)
    except (
        OSError, ValueError, KeyError, RuntimeError, AssertionError, CheckpointException,
        safetensors.SafetensorError,
    ) as error:  # fmt: skip
        reason = str(error).strip().splitlines()[-1:]
        raise BadCheckpoint(
            f"the saved state in {folder} cannot be loaded: {''.join(reason)}"
        ) from error


def _read(learner: Learner, folder: Path) -> None:
    reader = HuggingFaceStorageReader(str(folder))
    tensors = _tensors(learner)
    saved = reader.read_metadata().state_dict_metadata
    if set(saved) != set(tensors):
        raise ValueError("it holds another model")
    for name, value in tensors.items():
        found: Any = saved[name]
        if found.size != value.shape or found.properties.dtype != value.dtype:
            raise ValueError(f"{name} has another shape or type")
    with torch.no_grad(), _quiet():
        load(tensors, storage_reader=reader, no_dist=learner.world.size == 1)


def _tensors(learner: Learner) -> dict[str, torch.Tensor]:
    """The learner's own tensors by name: weights, and after the first step their moments."""
    out = {f"model.{name}": tensor.detach() for name, tensor in own_tensors(learner.model).items()}
    for name, parameter in learner.model.named_parameters():
        for moment, value in learner.optimizer.state.get(parameter, {}).items():
            if moment in MOMENTS:
                out[f"optimizer.{name}.{moment}"] = value
    return out


def _begin(learner: Learner) -> None:
    """Moments to be overwritten. Every parameter has taken every step."""
    for group in learner.optimizer.param_groups:
        for parameter in group["params"]:
            learner.optimizer.state[parameter] = {
                # As AdamW makes it: a number beside each parameter, in the parameter's place.
                "step": torch.tensor(float(learner.steps), device=learner.device),
                **{moment: torch.zeros_like(parameter) for moment in MOMENTS},
            }


@contextmanager
def _quiet() -> Iterator[None]:
    """Without the remark that one process is one process."""
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", message="torch.distributed is disabled")
        yield


def _encode(state: torch.Tensor) -> str:
    return base64.b64encode(state.numpy().tobytes()).decode()


def _decode(text: str) -> torch.Tensor:
    return torch.frombuffer(bytearray(base64.b64decode(text)), dtype=torch.uint8)
