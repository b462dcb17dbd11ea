"""Everything of a checkpoint folder but its weights: tokenizer, image processor, limits.

An engine that holds the weights elsewhere (vLLM, in processes of its own) needs only this;
`wmkit.modeling.checkpoint` adds the model.
"""

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from transformers import AutoConfig, AutoTokenizer, GenerationConfig

from wmkit.blobs import digest
from wmkit.domain.errors import BadCheckpoint
from wmkit.modeling.chat import FRAMING, ChatEncoder
from wmkit.modeling.images import ImageEncoder

FAMILIES = ("qwen3_vl", "qwen2_5_vl")


@dataclass(frozen=True, slots=True, eq=False)
class Processor:
    """Turns text and pictures into a model's inputs, and its tokens back into text."""

    folder: Path
    config: Any
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
        return int(self.config.text_config.max_position_embeddings)

    @property
    def placeholders(self) -> tuple[int, ...]:
        """Ids that stand for pictures and films in a prompt and are never sampled."""
        vocabulary = int(self.config.text_config.vocab_size)
        ids = (self.config.image_token_id, self.config.video_token_id)
        return tuple(i for i in ids if i is not None and 0 <= i < vocabulary)


def load_processor(folder: str | Path, *, image_cache_bytes: int = 256 << 20) -> Processor:
    """Read what surrounds the weights of a Qwen3-VL or Qwen2.5-VL checkpoint.

    Raises BadCheckpoint with one sentence when the folder is missing or incomplete, holds
    another kind of model, or its tokenizer, image processor and model do not fit together.
    """
    path = Path(folder)
    config = _config(path)
    try:
        tokenizer = AutoTokenizer.from_pretrained(
            str(path), use_fast=True, trust_remote_code=False, local_files_only=True
        )
    except (OSError, ValueError) as error:
        raise BadCheckpoint(f"the tokenizer in {path} cannot be loaded") from error
    chat = ChatEncoder(tokenizer, int(config.text_config.vocab_size))
    images = ImageEncoder(path, cache_bytes=image_cache_bytes)
    _check_fit(path, config, chat, images)
    return Processor(
        folder=path,
        config=config,
        tokenizer=tokenizer,
        chat=chat,
        images=images,
        processor_digest=_processor_digest(chat, images),
        pad_id=_pad_id(tokenizer, chat),
        end_ids=_end_ids(path, config, chat),
    )


def _config(path: Path) -> Any:
    if not path.is_dir():
        raise BadCheckpoint(f"there is no checkpoint folder {path}")
    if not (path / "config.json").is_file():
        raise BadCheckpoint(f"{path} holds no config.json, so it is no checkpoint")
    try:
        config = AutoConfig.from_pretrained(
            str(path), trust_remote_code=False, local_files_only=True
        )
    except Exception as error:  # a damaged config.json fails in as many ways as it has keys
        raise BadCheckpoint(f"{path}/config.json cannot be read: {first_line(error)}") from error
    kind = str(config.model_type)
    if kind not in FAMILIES:
        raise BadCheckpoint(f"{path} holds a {kind} model; {' and '.join(FAMILIES)} are supported")
    if not any(path.glob("*.safetensors")):
        pickled = any(path.glob("*.bin")) or any(path.glob("*.pt"))
        raise BadCheckpoint(
            f"{path} holds pickled weights only; convert them to safetensors"
            if pickled
            else f"{path} holds no safetensors weights"
        )
    if not (path / "tokenizer.json").is_file():
        raise BadCheckpoint(f"{path} holds no tokenizer.json")
    return config


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


def _end_ids(path: Path, config: Any, chat: ChatEncoder) -> frozenset[int]:
    try:
        stated = GenerationConfig.from_pretrained(str(path), local_files_only=True).eos_token_id
    except (OSError, ValueError):
        stated = None
    if stated is None:
        stated = getattr(config.text_config, "eos_token_id", None)
    ids = [] if stated is None else [stated] if isinstance(stated, int) else list(stated)
    return frozenset([chat.turn_end_id, *ids])


def first_line(error: Exception) -> str:
    """The first line of what went wrong, or its kind."""
    lines = str(error).strip().splitlines()
    return lines[0] if lines else type(error).__name__
