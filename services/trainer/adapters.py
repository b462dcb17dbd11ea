"""LoRA through `peft`: adapters inside a model, and their weights in the two forms others read.

The model keeps its class and the names of its modules; a wrapped linear layer holds the frozen
weight as `base_layer`. Without dropout, so that sampler and trainer compute the same.
"""

import json
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from safetensors.torch import save_file
from torch import Tensor

from services.trainer.recipe import Lora

NAME = "default"
PROJECTIONS = ("q_proj", "k_proj", "v_proj", "o_proj", "gate_proj", "up_proj", "down_proj")
BASE, DOWN, UP = ".base_layer.", f".lora_A.{NAME}.", f".lora_B.{NAME}."


def config(settings: Lora) -> Any:
    """peft's description of the adapters: every projection of the language model."""
    from peft import LoraConfig  # takes seconds to import, and most runs need none of it

    return LoraConfig(
        r=settings.rank,
        lora_alpha=settings.alpha,
        lora_dropout=0.0,
        bias="none",
        target_modules=rf".*language_model.*\.({'|'.join(PROJECTIONS)})",
    )


def adapt(model: Any, settings: Lora) -> None:
    """Freeze `model` and give it adapters that change nothing yet (B = 0)."""
    from peft import inject_adapter_in_model

    model.requires_grad_(False)
    inject_adapter_in_model(config(settings), model, adapter_name=NAME)


@contextmanager
def without(model: Any) -> Iterator[None]:
    """The frozen model for the length of a `with` block: the reference of the KL term."""
    from peft.tuners.lora import LoraLayer

    layers = [m for m in model.modules() if isinstance(m, LoraLayer)]
    scales = [layer.scaling[NAME] for layer in layers]
    for layer in layers:
        layer.scaling[NAME] = 0.0
    try:
        yield
    finally:
        for layer, scale in zip(layers, scales, strict=True):
            layer.scaling[NAME] = scale


def merged(tensors: Mapping[str, Tensor], settings: Lora) -> dict[str, Tensor]:
    """The tensors of a model with adapters as those of the plain model: W + alpha / r * B A."""
    scale = settings.alpha / settings.rank
    out: dict[str, Tensor] = {}
    for name, tensor in tensors.items():
        if DOWN in name or UP in name:
            continue
        if BASE not in name:
            out[name] = tensor
            continue
        plain = name.replace(BASE, ".")
        if name.endswith(".base_layer.weight"):
            up = tensors[name.replace(BASE, UP)]
            down = tensors[name.replace(BASE, DOWN)]
            tensor = tensor + scale * (up @ down)
        out[plain] = tensor
    return out


def save_adapter(
    tensors: Mapping[str, Tensor], settings: Lora, folder: Path, checkpoint: str
) -> None:
    """Write peft's own format: adapter_config.json and adapter_model.safetensors."""
    folder.mkdir(parents=True, exist_ok=True)
    described = config(settings)
    described.base_model_name_or_path = checkpoint
    described.inference_mode = True
    described.save_pretrained(str(folder))
    own = {
        f"base_model.model.{name.replace(f'.{NAME}.', '.')}": tensor.contiguous()
        for name, tensor in tensors.items()
        if DOWN in name or UP in name
    }
    save_file(own, str(folder / "adapter_model.safetensors"), metadata={"format": "pt"})
    # peft writes sets in an order that changes from process to process.
    path = folder / "adapter_config.json"
    text = json.dumps(json.loads(path.read_text("utf-8")), indent=2, sort_keys=True)
    path.write_text(text + "\n", "utf-8")
