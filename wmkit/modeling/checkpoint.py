"""A checkpoint folder in Hugging Face layout to a ready model, and back.

Only local folders, only safetensors, never remote code. Weights that travel between trainer
and policy are `wmkit.modeling.weights`.
"""

import json
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from transformers import AutoConfig, AutoTokenizer
from transformers import Qwen2_5_VLForConditionalGeneration as Qwen25
from transformers import Qwen3VLForConditionalGeneration as Qwen3
from transformers.utils import logging as transformers_logging

from wmkit.blobs import digest
from wmkit.domain.errors import BadCheckpoint
from wmkit.modeling.chat import FRAMING, ChatEncoder
from wmkit.modeling.images import EncodedPixels, ImageEncoder
from wmkit.modeling.packing import Batch, PadSide, pack
from wmkit.modeling.patches import use_linear_patches

# Bars on stderr would break up the services' one-line logs.
transformers_logging.disable_progress_bar()

_MODELS: dict[str, Any] = {"qwen3_vl": Qwen3, "qwen2_5_vl": Qwen25}


@dataclass(frozen=True, slots=True, eq=False)
class Loaded:
    """A model with everything that turns text and pictures into its inputs."""

    folder: Path
    model: Any
    tokenizer: Any
    chat: ChatEncoder
    images: ImageEncoder
    processor_digest: str
    """BLAKE3 of tokenizer, image processor and framing: equal digests mean equal inputs."""
    pad_id: int
    end_ids: frozenset[int]
    """Tokens that end the assistant's turn."""

    @property
    def context(self) -> int:
        """Longest sequence of the language model, in tokens."""
        return int(self.model.config.text_config.max_position_embeddings)

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
    kind = _kind(path)
    try:
        model, info = _MODELS[kind].from_pretrained(
            str(path),
            dtype=dtype,
            attn_implementation="sdpa",
            use_safetensors=True,
            trust_remote_code=False,
            local_files_only=True,
            output_loading_info=True,
        )
    except Exception as error:  # from_pretrained raises whatever its many readers raise
        raise BadCheckpoint(f"the weights in {path} cannot be loaded: {_first(error)}") from error
    absent = sorted(info["missing_keys"]) + sorted(str(k) for k in info["mismatched_keys"])
    if absent:
        raise BadCheckpoint(
            f"the weights in {path} lack {absent[0]}"
            + (f" and {len(absent) - 1} more" if len(absent) > 1 else "")
        )
    use_linear_patches(model)
    model = model.to(device).eval()
    try:
        tokenizer = AutoTokenizer.from_pretrained(
            str(path), use_fast=True, trust_remote_code=False, local_files_only=True
        )
    except (OSError, ValueError) as error:
        raise BadCheckpoint(f"the tokenizer in {path} cannot be loaded") from error
    chat = ChatEncoder(tokenizer, int(model.config.text_config.vocab_size))
    images = ImageEncoder(path, cache_bytes=image_cache_bytes)
    _check_fit(path, model.config, chat, images)
    return Loaded(
        folder=path,
        model=model,
        tokenizer=tokenizer,
        chat=chat,
        images=images,
        processor_digest=_processor_digest(chat, images),
        pad_id=_pad_id(tokenizer, chat),
        end_ids=_end_ids(model, chat),
    )


def save(loaded: Loaded, folder: str | Path) -> None:
    """Write a complete checkpoint folder that `load` reads; the processor digest stays equal."""
    loaded.model.save_pretrained(str(folder), safe_serialization=True)
    loaded.tokenizer.save_pretrained(str(folder))
    loaded.images.processor.save_pretrained(str(folder))


def _kind(path: Path) -> str:
    if not path.is_dir():
        raise BadCheckpoint(f"there is no checkpoint folder {path}")
    if not (path / "config.json").is_file():
        raise BadCheckpoint(f"{path} holds no config.json, so it is no checkpoint")
    try:
        config = AutoConfig.from_pretrained(
            str(path), trust_remote_code=False, local_files_only=True
        )
    except Exception as error:  # a damaged config.json fails in as many ways as it has keys
        raise BadCheckpoint(f"{path}/config.json cannot be read: {_first(error)}") from error
    kind = str(config.model_type)
    if kind not in _MODELS:
        raise BadCheckpoint(f"{path} holds a {kind} model; {' and '.join(_MODELS)} are supported")
    if not any(path.glob("*.safetensors")):
        pickled = any(path.glob("*.bin")) or any(path.glob("*.pt"))
        raise BadCheckpoint(
            f"{path} holds pickled weights only; convert them to safetensors"
            if pickled
            else f"{path} holds no safetensors weights"
        )
    if not (path / "tokenizer.json").is_file():
        raise BadCheckpoint(f"{path} holds no tokenizer.json")
    return kind


def _check_fit(path: Path, config: Any, chat: ChatEncoder, images: ImageEncoder) -> None:
    vision = config.vision_config
    for what, ours, theirs in (
        ("image placeholder", chat.image_id, config.image_token_id),
        ("patch size", images.patch_size, vision.patch_size),
        ("merge size", images.merge_size, vision.spatial_merge_size),
        ("temporal patch size", images.processor.temporal_patch_size, vision.temporal_patch_size),
    ):
        if ours != theirs:
            raise BadCheckpoint(
                f"{path} does not fit together: the {what} is {ours} for its tokenizer or image "
                f"processor and {theirs} for its model"
            )


def _processor_digest(chat: ChatEncoder, images: ImageEncoder) -> str:
    content = {
        "framing": FRAMING,
        "tokenizer": json.loads(chat.specification),
        "images": images.settings,
    }
    return digest(json.dumps(content, sort_keys=True).encode())


def _pad_id(tokenizer: Any, chat: ChatEncoder) -> int:
    return chat.turn_end_id if tokenizer.pad_token_id is None else int(tokenizer.pad_token_id)


def _end_ids(model: Any, chat: ChatEncoder) -> frozenset[int]:
    stated = model.generation_config.eos_token_id
    ids = [] if stated is None else [stated] if isinstance(stated, int) else list(stated)
    return frozenset([chat.turn_end_id, *ids])


def _first(error: Exception) -> str:
    lines = str(error).strip().splitlines()
    return lines[0] if lines else type(error).__name__
