"""A checkpoint folder in Hugging Face layout to a ready model, and back.

Only local folders, only safetensors, never remote code. Weights that travel between trainer
and policy are `wmkit.modeling.weights`.
"""

from collections.abc import Sequence
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any

import torch
from transformers import Qwen2_5_VLForConditionalGeneration as Qwen25
from transformers import Qwen3VLForConditionalGeneration as Qwen3
from transformers.utils import logging as transformers_logging

from wmkit.domain.errors import BadCheckpoint
from wmkit.modeling.images import EncodedPixels
from wmkit.modeling.packing import Batch, PadSide, pack
from wmkit.modeling.patches import use_linear_patches
from wmkit.modeling.processor import FAMILIES, Processor, first_line, load_processor

# Bars on stderr would break up the services' one-line logs.
transformers_logging.disable_progress_bar()

_MODELS: dict[str, Any] = dict(zip(FAMILIES, (Qwen3, Qwen25), strict=True))


@dataclass(frozen=True, slots=True, eq=False)
class Loaded(Processor):
    """A model with everything that turns text and pictures into its inputs."""

    model: Any

    def pack(
        self,
        sequences: Sequence[Sequence[int]],
        images_per_sequence: Sequence[Sequence[EncodedPixels]],
        *,
        pad_side: PadSide = "right",
        names: Sequence[str] = (),
    ) -> Batch:
        """`wmkit.modeling.packing.pack` with this model's ids, on the model's device."""
        return pack(
            sequences,
            images_per_sequence,
            pad_side=pad_side,
            pad_id=self.pad_id,
            image_id=self.chat.image_id,
            merge_size=self.images.merge_size,
            names=names,
        ).to(self.model.device)


def load(
    folder: str | Path,
    *,
    device: torch.device | str = "cpu",
    dtype: torch.dtype = torch.float32,
    image_cache_bytes: int = 256 << 20,
) -> Loaded:
    """Load a Qwen3-VL or Qwen2.5-VL checkpoint, in evaluation mode.

    Raises BadCheckpoint with one sentence when the folder is missing or incomplete, holds
    another kind of model, or its tokenizer, image processor and model do not fit together.
    """
    path = Path(folder)
    processor = load_processor(path, image_cache_bytes=image_cache_bytes)
    try:
        model, info = _MODELS[processor.config.model_type].from_pretrained(
            str(path),
            dtype=dtype,
            attn_implementation="sdpa",
            use_safetensors=True,
            trust_remote_code=False,
            local_files_only=True,
            output_loading_info=True,
        )
    except Exception as error:  # from_pretrained raises whatever its many readers raise
        raise BadCheckpoint(
            f"the weights in {path} cannot be loaded: {first_line(error)}"
        ) from error
    absent = sorted(info["missing_keys"]) + sorted(str(k) for k in info["mismatched_keys"])
    if absent:
        raise BadCheckpoint(
            f"the weights in {path} lack {absent[0]}"
            + (f" and {len(absent) - 1} more" if len(absent) > 1 else "")
        )
    use_linear_patches(model)
    model = model.to(device).eval()
    known = {field.name: getattr(processor, field.name) for field in fields(Processor)}
    return Loaded(**known, model=model)


def skeleton(processor: Processor, dtype: torch.dtype) -> Any:
    """The model without values, on the device "meta": names, shapes and types only."""
    with torch.device("meta"):
        return _MODELS[processor.config.model_type](processor.config).to(dtype)


def save(loaded: Loaded, folder: str | Path) -> None:
    """Write a complete checkpoint folder that `load` reads; the processor digest stays equal."""
    loaded.model.save_pretrained(str(folder), safe_serialization=True)
    loaded.tokenizer.save_pretrained(str(folder))
    loaded.images.processor.save_pretrained(str(folder))
