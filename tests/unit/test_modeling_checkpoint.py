"""Checkpoint folders and weight documents: what is accepted, and what is refused how."""

import json
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest
import torch
from safetensors.torch import load as parse
from safetensors.torch import save as serialize
from torch.nn import functional as F

from tests import tiny_checkpoints
from wmkit.domain.errors import BadCheckpoint
from wmkit.modeling import Loaded, load, load_weights, save, weights_to_bytes

Tensors = dict[str, torch.Tensor]


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tiny_checkpoints.make(tmp_path_factory.mktemp("tiny"), "qwen3")


@pytest.fixture(scope="module")
def loaded(folder: Path) -> Loaded:
    return load(folder)


@pytest.mark.parametrize("family", tiny_checkpoints.FAMILIES)
def test_saving_and_loading_keeps_weights_and_processor(
    family: tiny_checkpoints.Family, tmp_path: Path
) -> None:
    first = load(tiny_checkpoints.make(tmp_path / "a", family))
    save(first, tmp_path / "b")
    second = load(tmp_path / "b")
    assert second.processor_digest == first.processor_digest
    assert weights_to_bytes(second.model) == weights_to_bytes(first.model)


def test_the_processor_digest_follows_what_changes_inputs(folder: Path, tmp_path: Path) -> None:
    copy = tmp_path / "copy"
    shutil.copytree(folder, copy)
    file = copy / "preprocessor_config.json"
    settings = json.loads(file.read_text())
    file.write_text(json.dumps(settings | {"_comment": "of no effect"}))
    assert load(copy).processor_digest == load(folder).processor_digest
    file.write_text(json.dumps(settings | {"image_mean": [0.5, 0.5, 0.4]}))
    assert load(copy).processor_digest != load(folder).processor_digest


def test_the_linear_patch_embedding_is_the_convolution(loaded: Loaded) -> None:
    image = loaded.images.encode(tiny_checkpoints.png())
    embedding = loaded.model.model.visual.patch_embed
    weight, bias = embedding.proj.weight, embedding.proj.bias
    patches = image.pixel_values.view(-1, *weight.shape[1:])
    convolved = F.conv3d(patches, weight, bias, stride=weight.shape[2:]).flatten(1)
    assert torch.allclose(embedding(image.pixel_values), convolved, atol=1e-5)


def _drop(name: str) -> Callable[[Path], None]:
    return lambda folder: (folder / name).unlink()


def _pickled(folder: Path) -> None:
    (folder / "model.safetensors").rename(folder / "pytorch_model.bin")


def _edit(name: str, change: Callable[[str], str]) -> Callable[[Path], None]:
    def edit(folder: Path) -> None:
        (folder / name).write_text(change((folder / name).read_text()))

    return edit


def _damaged(folder: Path) -> None:
    (folder / "model.safetensors").write_bytes(b"junk")


def _smaller_patches(text: str) -> str:
    return text.replace('"patch_size": 16', '"patch_size": 14')


def _without_a_layer(folder: Path) -> None:
    file = folder / "model.safetensors"
    tensors = parse(file.read_bytes())
    del tensors["model.language_model.layers.1.mlp.up_proj.weight"]
    file.write_bytes(serialize(tensors, metadata={"format": "pt"}))


@pytest.mark.parametrize(
    ("spoil", "sentence"),
    [
        (shutil.rmtree, "there is no checkpoint folder"),
        (_drop("config.json"), "holds no config.json"),
        (_edit("config.json", lambda _: "{"), "config.json cannot be read"),
        (_edit("config.json", lambda t: t.replace('"qwen3_vl"', '"gpt2"')), "holds a gpt2 model"),
        (_drop("model.safetensors"), "holds no safetensors weights"),
        (_pickled, "holds pickled weights only"),
        (_damaged, "cannot be loaded"),
        (_without_a_layer, "lack model.language_model.layers.1.mlp.up_proj.weight"),
        (_drop("tokenizer.json"), "holds no tokenizer.json"),
        (_drop("preprocessor_config.json"), "no usable preprocessor_config.json"),
        (_edit("preprocessor_config.json", _smaller_patches), "the patch size is 14"),
    ],
)
def test_a_wrong_folder_is_one_sentence(
    folder: Path, tmp_path: Path, spoil: Callable[[Path], None], sentence: str
) -> None:
    copy = tmp_path / "copy"
    shutil.copytree(folder, copy, copy_function=_copy_text)
    spoil(copy)
    with pytest.raises(BadCheckpoint, match=sentence) as caught:
        load(copy)
    assert "\n" not in caught.value.message


def _copy_text(source: str, target: str) -> str:
    return shutil.copyfile(source, target)


def test_weights_travel_with_tied_tensors_once(loaded: Loaded, tmp_path: Path) -> None:
    data = weights_to_bytes(loaded.model)
    names = parse(data)
    assert "lm_head.weight" not in names
    assert sum(t.numel() for t in names.values()) == loaded.model.num_parameters()
    other = load(tiny_checkpoints.make(tmp_path / "other", "qwen3", seed=1))
    assert weights_to_bytes(other.model) != data
    load_weights(other.model, data)
    assert weights_to_bytes(other.model) == data
    assert other.model.lm_head.weight is other.model.get_input_embeddings().weight


def test_other_float_types_are_converted(loaded: Loaded, tmp_path: Path) -> None:
    tensors = parse(weights_to_bytes(loaded.model))
    other = load(tiny_checkpoints.make(tmp_path / "other", "qwen3", seed=1))
    load_weights(other.model, serialize({k: t.bfloat16() for k, t in tensors.items()}))
    expected = {k: t.bfloat16().float() for k, t in tensors.items()}
    assert weights_to_bytes(other.model) == serialize(expected)


def _first(tensors: Tensors) -> str:
    return "model.language_model.embed_tokens.weight"


def _nan(tensors: Tensors) -> None:
    tensors[_first(tensors)][3, 3] = torch.nan


def _cut(tensors: Tensors) -> None:
    tensors[_first(tensors)] = tensors[_first(tensors)][:-1]


def _integers(tensors: Tensors) -> None:
    tensors[_first(tensors)] = tensors[_first(tensors)].int()


def _renamed(tensors: Tensors) -> None:
    tensors["stranger"] = tensors.pop(_first(tensors))


@pytest.mark.parametrize(
    ("spoil", "sentence"),
    [
        (_nan, "embed_tokens.weight holds values that are not finite"),
        (_cut, r"embed_tokens.weight has shape \[351, 64\], the model needs \[352, 64\]"),
        (_integers, "embed_tokens.weight is torch.int32, the model needs torch.float32"),
        (_renamed, r"they lack \S+embed_tokens.weight and have an unknown stranger"),
    ],
)
def test_bad_weights_leave_the_model_untouched(
    loaded: Loaded, spoil: Callable[[Tensors], None], sentence: str
) -> None:
    before = weights_to_bytes(loaded.model)
    tensors = {name: tensor * 2 for name, tensor in parse(before).items()}
    spoil(tensors)
    with pytest.raises(BadCheckpoint, match=sentence):
        load_weights(loaded.model, serialize(tensors))
    assert weights_to_bytes(loaded.model) == before


@pytest.mark.parametrize("data", [b"", b"junk", b"\x80\x04K\x01."])
def test_only_safetensors_are_read(loaded: Loaded, data: bytes) -> None:
    with pytest.raises(BadCheckpoint, match="not a safetensors file"):
        load_weights(loaded.model, data)
