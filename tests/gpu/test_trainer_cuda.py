"""The trainer on CUDA: sharding, bfloat16, and weights that go to vLLM over NCCL."""

import json
import os
import pickle
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import torch

from services.trainer.learner import Learner
from services.trainer.recipe import Recipe
from services.trainer.team import Team
from services.trainer.world import joined
from tests import tiny_checkpoints
from tests.learner_cases import IMAGES, gradient, make_samples, relative
from wmkit.modeling import checkpoint
from wmkit.modeling.weights import own_tensors

ROOT = Path(__file__).parents[2]

pytestmark = [
    pytest.mark.gpu,
    pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a CUDA device"),
]


def recipe(folder: Path, **sections: Any) -> Recipe:
    values: dict[str, Any] = {"checkpoint": str(folder), "tasks": {"templates": ["a"]}}
    return Recipe.model_validate(values | sections)


def test_the_gradient_on_cuda_is_that_on_the_cpu(tmp_path: Path) -> None:
    folder = tiny_checkpoints.make(tmp_path)
    torch.backends.cuda.matmul.allow_tf32 = False
    here, there = Learner(recipe(folder)), Learner(recipe(folder), device="cuda:0")
    samples = make_samples(here.loaded, drift=0.6)
    expected = gradient(here, samples, 10**9)
    assert relative(gradient(there, samples, 150).cpu(), expected) < 1e-3


def test_bfloat16_trains_on_cuda_and_keeps_float32(tmp_path: Path) -> None:
    folder = tiny_checkpoints.make(tmp_path)
    samples = make_samples(checkpoint.load(folder))
    with joined("cuda:0"):
        team = Team(
            recipe(folder, optimizer={"dtype": "bfloat16", "gradient_checkpointing": True}),
            device="cuda:0",
        )
        metrics = team.update(samples, IMAGES)
        assert 1e-4 < metrics["logprob_gap"] < 0.2
        assert {p.dtype for p in team._mine.model.parameters()} == {torch.float32}


def test_sharding_over_all_devices_changes_no_update(tmp_path: Path) -> None:
    """FSDP2 under torchrun with NCCL, one process for each device."""
    folder = tiny_checkpoints.make(tmp_path / "tiny")
    samples = make_samples(checkpoint.load(folder), drift=0.3)
    (tmp_path / "samples").write_bytes(pickle.dumps((samples, IMAGES)))
    optimizer = {"lr": 1e-5, "warmup": 0, "micro_batch_tokens": 150}
    plan = {
        "recipe": {
            "checkpoint": str(folder),
            "tasks": {"templates": ["a"]},
            "optimizer": optimizer,
        },
        "samples": str(tmp_path / "samples"),
        "do": [["open", {}], ["update", 2], ["export", f"{tmp_path}/out"]],
    }
    (tmp_path / "plan.json").write_text(json.dumps(plan), "utf-8")
    subprocess.run(
        [
            *(sys.executable, "-m", "torch.distributed.run", "--standalone"),
            f"--nproc-per-node={torch.cuda.device_count()}",
            *(str(ROOT / "tests" / "distributed_process.py"), str(tmp_path / "plan.json"), "cuda"),
        ],
        env={**os.environ, "PYTHONPATH": f"{ROOT}:{ROOT / 'gen'}"},
        check=True,
        timeout=600,
    )
    alone = Learner(recipe(folder, optimizer=optimizer))
    for _ in range(2):
        alone.update(samples, IMAGES)
    expected = torch.cat([t.detach().flatten() for t in own_tensors(alone.model).values()])
    trained = checkpoint.load(tmp_path / "out").model
    found = torch.cat([t.detach().flatten() for t in own_tensors(trained).values()])
    assert relative(found, expected) < 1e-5


def test_weights_go_from_rank_to_rank_over_nccl(tmp_path: Path) -> None:
    """What a weight transfer to an engine is made of: every tensor broadcast in its type."""
    if torch.cuda.device_count() < 2:
        pytest.skip("needs two CUDA devices")
    folder = tiny_checkpoints.make(tmp_path / "tiny")
    script = tmp_path / "send.py"
    script.write_text(
        "import os, sys, torch, torch.distributed as dist\n"
        "from wmkit.modeling import checkpoint\n"
        "from wmkit.modeling.weights import own_tensors\n"
        "rank = int(os.environ['RANK']); torch.cuda.set_device(rank)\n"
        "dist.init_process_group('nccl')\n"
        "model = checkpoint.load(sys.argv[1], device=f'cuda:{rank}').model\n"
        "want = {n: t.detach().clone() for n, t in own_tensors(model).items()}\n"
        "for name, tensor in own_tensors(model).items():\n"
        "    box = tensor.detach() if rank == 0 else torch.zeros_like(tensor)\n"
        "    dist.broadcast(box, src=0)\n"
        "    assert torch.equal(box, want[name]), name\n"
        "dist.destroy_process_group()\n",
        "utf-8",
    )
    command = [sys.executable, "-m", "torch.distributed.run", "--standalone", "--nproc-per-node=2"]
    path = f"{ROOT}:{ROOT / 'gen'}"
    env = {**os.environ, "PYTHONPATH": path}
    subprocess.run([*command, str(script), str(folder)], env=env, check=True, timeout=600)
