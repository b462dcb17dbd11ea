"""One model in several real processes (torchrun, gloo, FSDP2) against one process."""

import json
import os
import pickle
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
import torch
from safetensors import safe_open
from safetensors.torch import load as parse

from services.trainer.batches import Sample
from tests import tiny_checkpoints
from tests.distributed_process import run
from tests.learner_cases import IMAGES, make_samples, relative
from wmkit.modeling import checkpoint

ROOT = Path(__file__).parents[2]

pytestmark = pytest.mark.slow


def processes(count: int, folder: Path, plan: dict[str, Any]) -> None:
    """Do `plan` in that many processes."""
    file = folder / "plan.json"
    file.write_text(json.dumps(plan), "utf-8")
    path = os.pathsep.join([str(ROOT), str(ROOT / "gen")])
    done = subprocess.run(
        [
            *(sys.executable, "-m", "torch.distributed.run", "--standalone"),
            *(f"--nproc-per-node={count}", str(ROOT / "tests" / "distributed_process.py")),
            str(file),
        ],
        env={**os.environ, "PYTHONPATH": path, "OMP_NUM_THREADS": "1"},
        capture_output=True,
        text=True,
        timeout=600,
    )
    assert done.returncode == 0, done.stderr


def tensors(folder: Path) -> dict[str, torch.Tensor]:
    """The tensors of a saved state, put together from the slices by their headers."""
    out: dict[str, torch.Tensor] = {}
    for path in sorted(folder.glob("*.safetensors")):
        with safe_open(path, "pt") as file:
            places = json.loads(file.metadata()["DCP_SHARDING_INFO"])
            slices = {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118
        for name, piece in slices.items():
            start = places[name]["saved_offsets"]
            known = out.setdefault(name, piece.new_zeros(0))
            assert start[1:] == [0] * (piece.dim() - 1)
            assert start[0] == len(known)
            out[name] = torch.cat([known, piece]) if len(known) else piece
    return out


def gradient(folder: Path) -> torch.Tensor:
    """With a first beta of 0 the first moment is the gradient of the last step."""
    found = tensors(folder)
    return torch.cat([found[n].flatten() for n in sorted(found) if n.endswith(".exp_avg")])


def plan_for(tiny: Path, folder: Path, samples: Sequence[Sample], do: list[Any]) -> dict[str, Any]:
    (folder / "samples").write_bytes(pickle.dumps((samples, IMAGES)))
    recipe = {"checkpoint": str(tiny), "tasks": {"templates": ["a"]}}
    return {"recipe": recipe, "samples": str(folder / "samples"), "do": do}


def optimizer(tokens: int, **changes: Any) -> dict[str, Any]:
    values = {"lr": 1e-4, "warmup": 0, "betas": [0.0, 0.999], "grad_clip": 1e9}
    return {"optimizer": values | {"micro_batch_tokens": tokens} | changes}


def weights(folder: Path) -> torch.Tensor:
    found = tensors(folder)
    return torch.cat([found[n].flatten() for n in sorted(found) if n.startswith("model.")])


@pytest.mark.parametrize("family", tiny_checkpoints.FAMILIES)
def test_any_number_of_processes_gives_the_same_gradient(
    family: tiny_checkpoints.Family, tmp_path: Path
) -> None:
    """Five samples of 0 to 2 pictures: with three processes some have nothing to do at times,
    and some see no picture while others do."""
    tiny = tiny_checkpoints.make(tmp_path / "tiny", family)
    samples = make_samples(checkpoint.load(tiny), drift=0.6)

    def steps(place: str, *budgets: int) -> list[Any]:
        do: list[Any] = []
        for tokens in budgets:
            do += [
                ["open", optimizer(tokens)],
                ["update", 1],
                ["save", f"{tmp_path}/{place}-{tokens}"],
            ]
        return do

    run(plan_for(tiny, tmp_path, samples, steps("1", 10**9)), None)
    whole = gradient(tmp_path / "1-1000000000")
    assert float(whole.norm()) > 1e-3
    for count in (2, 3):
        do = [*steps(str(count), 1, 150), ["fails", f"{tmp_path}/{count}"]]
        processes(count, tmp_path, plan_for(tiny, tmp_path, samples, do))
        for tokens in (1, 150):
            assert relative(gradient(tmp_path / f"{count}-{tokens}"), whole) < 1e-5
        # A bad sample in one process ends the update in all of them.
        assert "episode-2 step 1 was sampled with processor" in (tmp_path / f"{count}").read_text()


def test_what_two_processes_saved_one_resumes_and_the_reverse(tmp_path: Path) -> None:
    tiny = tiny_checkpoints.make(tmp_path / "tiny")
    samples = make_samples(checkpoint.load(tiny), drift=0.3)
    changes = {
        "loss": {"kl_beta": 0.1, "correction": "sequence_truncate"},
        **optimizer(150, lr=1e-5, betas=[0.9, 0.999], epochs=2, minibatches=2),
    }

    def steps(place: str, start: str) -> list[Any]:
        """Three updates, saved, three more; then three from another's first three."""
        begin: list[Any] = [["open", changes], ["update", 3], ["save", f"{tmp_path}/{place}-three"]]
        go_on = [["update", 3], ["save", f"{tmp_path}/{place}-six"]]
        other = [["open", changes], ["load", start], ["update", 3]]
        again = [*other, ["save", f"{tmp_path}/{place}-resumed"]] if start else []
        return [*begin, *go_on, *again]

    run(plan_for(tiny, tmp_path, samples, steps("1", "")), None)
    six, three = weights(tmp_path / "1-six"), weights(tmp_path / "1-three")
    assert relative(six, three) > 1e-5
    do = [
        *steps("2", f"{tmp_path}/1-three"),
        ["export", f"{tmp_path}/out"],
        ["weights", f"{tmp_path}/blob"],
    ]
    processes(2, tmp_path, plan_for(tiny, tmp_path, samples, do))
    back: list[Any] = [["open", changes], ["load", f"{tmp_path}/2-three"], ["update", 3]]
    back += [["save", f"{tmp_path}/1-resumed"]]
    run(plan_for(tiny, tmp_path, samples, back), None)
    for place in ("2-six", "2-resumed", "1-resumed"):
        assert relative(weights(tmp_path / place), six) < 1e-6
    # What is exported and published is whole, whoever holds the slices.
    exported = checkpoint.load(tmp_path / "out").model.state_dict()
    published = parse((tmp_path / "blob").read_bytes())
    saved = tensors(tmp_path / "2-resumed")
    assert published
    for name, tensor in published.items():
        assert torch.equal(tensor, saved[f"model.{name}"])
        assert torch.equal(tensor, exported[name])
