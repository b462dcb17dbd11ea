"""LoRA adapters in PEFT's format, merged into a model's weights: W + scale * B A.

The adapter is a safetensors document with the names that PEFT writes
(`base_model.model.<module>.lora_A.weight`). Its `adapter_config.json` lies beside it, or, where
only one document travels, under "adapter_config" in the document's metadata. Training adapters
is the trainer's work, with PEFT itself.
"""

import json
import math
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from torch import Tensor

from wmkit.domain.errors import BadCheckpoint
from wmkit.modeling.weights import parse, tensors_to_bytes

PREFIX = "base_model.model."
DOWN, UP = ".lora_A.weight", ".lora_B.weight"
CONFIG = "adapter_config"

_PLAIN = {"use_dora": False, "bias": "none", "fan_in_fan_out": False, "modules_to_save": None}
"""What the formula above assumes; an adapter made otherwise is refused."""


def is_adapter(tensors: Mapping[str, Tensor]) -> bool:
    return any(name.endswith((DOWN, UP)) for name in tensors)


def adapter_document(folder: str | Path) -> bytes:
    """An adapter folder as the one document that travels to a policy service.

    Raises BadCheckpoint for a folder without adapter_config.json and
    adapter_model.safetensors.
    """
    path = Path(folder)
    try:
        described = (path / "adapter_config.json").read_text("utf-8")
        data = (path / "adapter_model.safetensors").read_bytes()
    except OSError as error:
        raise BadCheckpoint(
            f"{path} is no adapter: it needs adapter_config.json and adapter_model.safetensors"
        ) from error
    return tensors_to_bytes(parse(data)[0], {CONFIG: described})


def merge(
    base: Mapping[str, Tensor], adapter: Mapping[str, Tensor], metadata: Mapping[str, str]
) -> dict[str, Tensor]:
    """The weights of `base` that `adapter` changes, by the names of `base`.

    Computed in float32 and given in the type of the base weight. scale = alpha / rank, or
    alpha / sqrt(rank) where the adapter says `use_rslora`. Raises BadCheckpoint for a kind of
    adapter that is not plain LoRA, or that does not fit the model.
    """
    config = _config(metadata)
    out: dict[str, Tensor] = {}
    seen: set[str] = set()
    for name, down in adapter.items():
        if not name.endswith(DOWN):
            continue
        module = name.removeprefix(PREFIX).removesuffix(DOWN)
        up = adapter.get(f"{name.removesuffix(DOWN)}{UP}")
        weight = base.get(f"{module}.weight")
        if up is None or weight is None:
            lacking = "lora_B" if up is None else "a place in this model"
            raise BadCheckpoint(f"the adapter of {module} lacks {lacking}")
        if down.ndim != 2 or up.ndim != 2 or down.shape[0] != up.shape[1]:
            raise BadCheckpoint(f"the adapter of {module} is not of the shapes [r, in], [out, r]")
        if (up.shape[0], down.shape[1]) != tuple(weight.shape):
            raise BadCheckpoint(
                f"the adapter of {module} makes [{up.shape[0]}, {down.shape[1]}], the model "
                f"needs {list(weight.shape)}"
            )
        scale = _scale(config, module, down.shape[0])
        delta = up.to(weight.device).float() @ down.to(weight.device).float()
        out[f"{module}.weight"] = (weight.float() + scale * delta).to(weight.dtype)
        seen |= {name, f"{name.removesuffix(DOWN)}{UP}"}
    strange = sorted(set(adapter) - seen)
    if strange:
        raise BadCheckpoint(f"the adapter holds {strange[0]}, which is no part of plain LoRA")
    return out


def _config(metadata: Mapping[str, str]) -> dict[str, Any]:
    if CONFIG not in metadata:
        raise BadCheckpoint(
            f'the adapter comes without its adapter_config.json (metadata "{CONFIG}")'
        )
    try:
        config = json.loads(metadata[CONFIG])
        float(config["lora_alpha"])
    except (ValueError, TypeError, KeyError) as error:
        raise BadCheckpoint("adapter_config.json cannot be read") from error
    for key, plain in _PLAIN.items():
        if config.get(key, plain) not in (plain, None, []):
            raise BadCheckpoint(f"adapters with {key} = {config[key]!r} are not supported")
    return dict(config)


def _scale(config: Mapping[str, Any], module: str, rank: int) -> float:
    alpha = config["lora_alpha"]
    for pattern, other in (config.get("alpha_pattern") or {}).items():
        if module == pattern or module.endswith(f".{pattern}"):
            alpha = other
    return float(alpha) / (math.sqrt(rank) if config.get("use_rslora") else rank)
