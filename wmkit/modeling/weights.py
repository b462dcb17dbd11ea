"""Weights as one safetensors document, out of a model and back in; nothing is ever unpickled."""

import json
from collections.abc import Mapping
from typing import Any

import safetensors
import torch
from safetensors.torch import load as deserialize
from safetensors.torch import save as serialize

from wmkit.domain.errors import BadCheckpoint


def weights_to_bytes(model: Any) -> bytes:
    """The model's parameters and persistent buffers as safetensors, tied weights once."""
    return tensors_to_bytes(own_tensors(model))


def tensors_to_bytes(
    tensors: Mapping[str, torch.Tensor], metadata: dict[str, str] | None = None
) -> bytes:
    """Named tensors as one safetensors document."""
    plain = {name: t.detach().cpu().contiguous() for name, t in tensors.items()}
    data: bytes = serialize(plain, metadata)
    return data


def load_weights(model: Any, data: bytes) -> None:
    """Put the weights in `data` (from `weights_to_bytes`) into `model`, all or nothing.

    Another floating-point type is converted to the model's. Raises BadCheckpoint, with the
    model untouched, when names or shapes differ or a value is not finite.
    """
    mine = own_tensors(model)
    ready = checked(mine, parse(data)[0])
    with torch.no_grad():
        for name, target in mine.items():
            target.copy_(ready[name])


def parse(data: bytes) -> tuple[dict[str, torch.Tensor], dict[str, str]]:
    """Tensors and metadata of a safetensors document. Raises BadCheckpoint."""
    try:
        tensors: dict[str, torch.Tensor] = deserialize(data)
        size = int.from_bytes(data[:8], "little")
        metadata = json.loads(data[8 : 8 + size]).get("__metadata__") or {}
    except (safetensors.SafetensorError, ValueError, KeyError) as error:
        raise BadCheckpoint("the weights are not a safetensors file") from error
    return tensors, metadata


def checked(
    mine: Mapping[str, torch.Tensor],
    incoming: Mapping[str, torch.Tensor],
    *,
    partly: bool = False,
) -> dict[str, torch.Tensor]:
    """`incoming` in the types of `mine`: the same names (or some of them, `partly`) and shapes.

    `mine` may be on the device "meta": only names, shapes and types of it are looked at.
    Raises BadCheckpoint for what does not fit and for values that are not finite.
    """
    _same_names(set(incoming) & set(mine) if partly else set(mine), set(incoming))
    ready: dict[str, torch.Tensor] = {}
    for name, value in incoming.items():
        target = mine[name]
        if value.shape != target.shape:
            raise BadCheckpoint(
                f"{name} has shape {list(value.shape)}, the model needs {list(target.shape)}"
            )
        if target.is_floating_point():
            if not value.is_floating_point():
                raise BadCheckpoint(f"{name} is {value.dtype}, the model needs {target.dtype}")
            value = value.to(target.dtype)
            if not bool(torch.isfinite(value).all()):
                raise BadCheckpoint(f"{name} holds values that are not finite")
        elif value.dtype != target.dtype:
            raise BadCheckpoint(f"{name} is {value.dtype}, the model needs {target.dtype}")
        ready[name] = value
    return ready


def own_tensors(model: Any) -> dict[str, torch.Tensor]:
    """Parameters and persistent buffers by name; of tensors that share storage, the first."""
    out: dict[str, torch.Tensor] = {}
    seen: set[int] = set()
    for name, tensor in model.state_dict(keep_vars=True).items():
        if id(tensor) not in seen:
            seen.add(id(tensor))
            out[name] = tensor
    return out


def _same_names(mine: set[str], incoming: set[str]) -> None:
    if mine == incoming:
        return
    parts = []
    for word, names in (("lack", mine - incoming), ("have an unknown", incoming - mine)):
        if names:
            more = f" and {len(names) - 1} more" if len(names) > 1 else ""
            parts.append(f"{word} {min(names)}{more}")
    raise BadCheckpoint(f"the weights do not fit this model: they {' and '.join(parts)}")
