"""Weights into a model: adapters against PEFT's own merge, the canary, all or nothing."""

import json
from pathlib import Path
from typing import Any

import pytest
import torch
from safetensors.torch import load as parse
from safetensors.torch import save as serialize

from services.policy.loading import Weights
from tests import tiny_checkpoints
from wmkit.domain.errors import BadCheckpoint
from wmkit.modeling import Loaded, load, probe_distance, probe_logprobs, weights_to_bytes
from wmkit.modeling.adapters import adapter_document
from wmkit.modeling.weights import own_tensors

TOLERANCE = 0.01


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tiny_checkpoints.make(tmp_path_factory.mktemp("tiny"))


@pytest.fixture(scope="module")
def other(tmp_path_factory: pytest.TempPathFactory) -> Loaded:
    return load(tiny_checkpoints.make(tmp_path_factory.mktemp("other"), seed=1))


@pytest.fixture
def loaded(folder: Path) -> Loaded:
    return load(folder)


def adapter(folder: Path, out: Path, targets: str, seed: int, **config: Any) -> tuple[Path, Any]:
    """An adapter with random weights, saved by PEFT, and the model that PEFT merges it into."""
    peft = pytest.importorskip("peft")
    model = load(folder).model
    settings = peft.LoraConfig(r=4, lora_alpha=8, target_modules=targets, **config)
    wrapped = peft.get_peft_model(model, settings)
    generator = torch.Generator().manual_seed(seed)
    with torch.no_grad():
        for name, parameter in wrapped.named_parameters():
            if "lora_" in name:
                parameter.copy_(torch.randn(parameter.shape, generator=generator) * 0.1)
    wrapped.save_pretrained(str(out), safe_serialization=True)
    return out, wrapped.merge_and_unload()


def assert_equal(model: Any, wanted: Any) -> None:
    theirs = own_tensors(wanted)
    for name, tensor in own_tensors(model).items():
        assert torch.allclose(tensor, theirs[name], atol=1e-6), name


@pytest.mark.parametrize("config", [{}, {"use_rslora": True}], ids=["lora", "rslora"])
def test_an_adapter_becomes_what_peft_merges(
    loaded: Loaded, folder: Path, tmp_path: Path, config: dict[str, Any]
) -> None:
    targets = r".*language_model.*\.(q_proj|down_proj)"
    out, merged = adapter(folder, tmp_path / "a", targets, 1, **config)
    before = probe_logprobs(loaded)
    Weights(loaded, TOLERANCE).load(adapter_document(out), ())
    assert_equal(loaded.model, merged)
    assert probe_distance(probe_logprobs(loaded), before) > 0.01


def test_an_adapter_always_counts_from_the_checkpoint(
    loaded: Loaded, folder: Path, other: Loaded, tmp_path: Path
) -> None:
    """Whatever was loaded before: another adapter, or a whole model."""
    first, _ = adapter(folder, tmp_path / "a", r".*language_model.*\.q_proj", 1)
    second, merged = adapter(folder, tmp_path / "b", r".*language_model.*\.v_proj", 2)
    weights = Weights(loaded, TOLERANCE)
    weights.load(adapter_document(first), ())
    weights.load(adapter_document(second), ())
    assert_equal(loaded.model, merged)
    weights.load(weights_to_bytes(other.model), ())
    assert_equal(loaded.model, other.model)
    weights.load(adapter_document(second), ())
    assert_equal(loaded.model, merged)
    weights.load(adapter_document(second), ())
    assert_equal(loaded.model, merged)


def test_adapters_that_do_not_fit_change_nothing(
    loaded: Loaded, folder: Path, tmp_path: Path
) -> None:
    out, _ = adapter(folder, tmp_path / "a", r".*language_model.*\.q_proj", 1)
    good = adapter_document(out)
    tensors = parse(good)
    described = (out / "adapter_config.json").read_text()
    name = next(n for n in tensors if n.endswith("lora_A.weight"))

    def changed(**config: Any) -> dict[str, str]:
        return {"adapter_config": json.dumps(json.loads(described) | config)}

    narrow = tensors | {name: tensors[name][:, :-1].clone()}
    spoiled = tensors | {name: tensors[name] * torch.nan}
    lonely = {n: t for n, t in tensors.items() if n != name.replace("lora_A", "lora_B")}
    strange = tensors | {name.replace("q_proj", "z_proj"): tensors[name].clone()}
    cases = [
        (serialize(tensors), "without its adapter_config.json"),
        (serialize(tensors, {"adapter_config": "{"}), "cannot be read"),
        (serialize(tensors, changed(use_dora=True)), "use_dora"),
        (serialize(narrow, changed()), "the model needs"),
        (serialize(spoiled, changed()), "not finite"),
        (serialize(lonely, changed()), "lacks lora_B"),
        (serialize(strange, changed()), "lacks"),
    ]
    for data, words in cases:
        with pytest.raises(BadCheckpoint, match=words):
            Weights(loaded, TOLERANCE).load(data, ())
    assert_equal(loaded.model, load(folder).model)
    with pytest.raises(BadCheckpoint, match="is no adapter"):
        adapter_document(tmp_path)


def test_the_canary_refuses_what_its_sender_did_not_score(loaded: Loaded, other: Loaded) -> None:
    weights, before = Weights(loaded, TOLERANCE), probe_logprobs(loaded)
    data = weights_to_bytes(other.model)
    for wrong in (before, [0.0], [float("nan")] * len(before)):
        with pytest.raises(BadCheckpoint, match="nats per token away"):
            weights.load(data, wrong)
        assert probe_logprobs(loaded) == before
    weights.load(data, probe_logprobs(other))
    assert probe_logprobs(loaded) == pytest.approx(probe_logprobs(other), abs=1e-6)


def test_the_probe_sees_both_towers_and_scores_as_the_library_does(loaded: Loaded) -> None:
    from tests import modeling_reference
    from wmkit.modeling.probe import probe_prompt

    ids, pictures, scored = probe_prompt(loaded)
    out = loaded.model(**modeling_reference.inputs(loaded, ids, pictures)).logits[0]
    reference = torch.log_softmax(out[-scored - 1 : -1].float(), -1)
    wanted = reference.gather(1, torch.tensor(ids[-scored:])[:, None])[:, 0]
    before = probe_logprobs(loaded)
    assert before == pytest.approx(wanted.tolist(), abs=2e-5)
    assert len(before) > 20
    for part in ("visual.blocks.0.mlp.linear_fc1", "language_model.layers.2.mlp.up_proj"):
        with torch.no_grad():
            loaded.model.model.get_submodule(part).weight.mul_(1.5)
        after = probe_logprobs(loaded)
        assert probe_distance(before, after) > 1e-3
        before = after
