"""LoRA, bfloat16, gradient checkpointing: ways to train that must not change what is trained."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import torch
from peft import PeftModel
from safetensors.torch import load as parse

from services.trainer.batches import Sample
from services.trainer.learner import ADAPTER, Learner
from services.trainer.recipe import Recipe
from services.trainer.team import Team
from services.trainer.world import joined
from tests import tiny_checkpoints
from tests.learner_cases import IMAGES, gradient, make_samples, relative
from wmkit.modeling import checkpoint
from wmkit.modeling.forward import forward_logprobs


@pytest.fixture(scope="module", params=tiny_checkpoints.FAMILIES)
def folder(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tiny_checkpoints.make(tmp_path_factory.mktemp("tiny"), request.param)


@pytest.fixture
def alone() -> Iterator[None]:
    """Without a process group afterwards."""
    with joined("cpu"):
        yield


def recipe(folder: Path, **sections: Any) -> Recipe:
    values: dict[str, Any] = {"checkpoint": str(folder), "tasks": {"templates": ["a"]}}
    return Recipe.model_validate(values | sections)


def scores(model: Any, learner: Learner, samples: list[Sample]) -> torch.Tensor:
    batch, select = learner.pack(samples, IMAGES)
    with torch.no_grad():
        return forward_logprobs(model, batch, select)


def test_adapters_begin_as_nothing_learn_and_leave_in_both_forms(
    folder: Path, tmp_path: Path
) -> None:
    base = checkpoint.load(folder)
    learner = Learner(
        recipe(
            folder,
            lora={"rank": 4, "alpha": 8},
            loss={"kl_beta": 0.1},
            optimizer={"lr": 1e-2, "warmup": 0},
        )
    )
    samples = make_samples(base)
    before = scores(base.model, learner, samples)
    assert torch.equal(scores(learner.model, learner, samples), before)
    frozen = {
        n: p.detach().clone() for n, p in learner.model.named_parameters() if not p.requires_grad
    }
    assert learner.update(samples, IMAGES)["kl"] == 0
    # The reference of the KL term is the model without its adapters.
    assert learner.update(samples, IMAGES)["kl"] > 0
    after = scores(learner.model, learner, samples)
    assert relative(after, before) > 1e-3
    for name, p in learner.model.named_parameters():
        assert p.requires_grad == ("lora_" in name)
        if not p.requires_grad:
            assert torch.equal(p, frozen[name])

    learner.save(tmp_path / "out")
    merged = checkpoint.load(tmp_path / "out")
    assert relative(scores(merged.model, learner, samples), after) < 1e-5
    published = parse(learner.weights())
    state = merged.model.state_dict()
    assert all(torch.equal(tensor, state[name]) for name, tensor in published.items())
    assert merged.processor_digest == base.processor_digest
    # peft itself reads the adapter and puts it onto the base.
    with_peft = PeftModel.from_pretrained(base.model, str(tmp_path / "out" / ADAPTER))
    assert relative(scores(with_peft.base_model.model, learner, samples), after) < 1e-5


def test_gradient_checkpointing_changes_no_gradient(folder: Path) -> None:
    plain = Learner(recipe(folder))
    saving = Learner(recipe(folder, optimizer={"gradient_checkpointing": True}))
    samples = make_samples(plain.loaded, drift=0.6)
    whole = gradient(plain, samples, 10**9)
    assert relative(gradient(saving, samples, 10**9), whole) < 1e-6


def test_bfloat16_computes_in_it_and_keeps_float32(
    folder: Path, tmp_path: Path, alone: None
) -> None:
    plain = Learner(recipe(folder))
    samples = make_samples(plain.loaded)
    team = Team(recipe(folder, optimizer={"dtype": "bfloat16", "lr": 1e-3}))
    metrics = team.update(samples, IMAGES)
    exact = plain.update(samples, IMAGES)
    # Eight bits of mantissa: visible, but no other model.
    assert 1e-4 < metrics["logprob_gap"] < 0.2
    assert metrics["grad_norm"] == pytest.approx(exact["grad_norm"], rel=0.2)
    assert {p.dtype for p in team._mine.model.parameters()} == {torch.float32}
    assert {t.dtype for t in parse(team.weights()).values()} == {torch.bfloat16}
    team.save_state(tmp_path)
    again = Team(recipe(folder, optimizer={"dtype": "bfloat16", "lr": 1e-3}))
    again.load_state(tmp_path)
    assert again.update(samples, IMAGES)["loss"] == team.update(samples, IMAGES)["loss"]


@pytest.mark.parametrize("count", [0, 1, 5])
def test_any_number_of_pictures_in_a_batch(folder: Path, count: int) -> None:
    """The gradient of a batch is that of its samples, however many pictures they show."""
    learner = Learner(recipe(folder))
    all_of = make_samples(learner.loaded, drift=0.3)
    batch = {0: all_of[:1], 1: all_of[1:2], 5: [*all_of[:3], all_of[4]]}[count]
    assert sum(len(s.images) for s in batch) == count
    whole = gradient(learner, batch, 10**9)
    assert float(whole.norm()) > 1e-3
    assert relative(gradient(learner, batch, 1), whole) < 1e-5
