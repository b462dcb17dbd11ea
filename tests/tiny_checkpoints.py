"""Tiny random checkpoints of both model families, for tests that need a real model.

Matrices are drawn from N(0, 1/fan_in), embeddings small beside them and the last norm large:
with the library's own initialisation, or with tied embeddings that outweigh the layers, all
answers look alike, and a test on them could not fail.
"""

import io
import math
from pathlib import Path
from typing import Any, Literal

import numpy as np
import torch
from PIL import Image
from tokenizers import AddedToken, Tokenizer, decoders, models, pre_tokenizers, trainers
from transformers import (
    PreTrainedTokenizerFast,
    Qwen2_5_VLConfig,
    Qwen2_5_VLForConditionalGeneration,
    Qwen3VLConfig,
    Qwen3VLForConditionalGeneration,
)
from transformers.models.qwen2_vl.image_processing_pil_qwen2_vl import Qwen2VLImageProcessorPil

# On tensors this small a second thread is only waited for.
torch.set_num_threads(1)

Family = Literal["qwen3", "qwen25"]
FAMILIES: tuple[Family, ...] = ("qwen3", "qwen25")

SPECIAL = (
    "<|endoftext|>",
    "<|im_start|>",
    "<|im_end|>",
    "<|vision_start|>",
    "<|vision_end|>",
    "<|image_pad|>",
    "<|video_pad|>",
)
_CORPUS = (
    "<think> I tap the icon of Settings, then scroll. </think>\nAction: tap(start_box='(10,20)')",
    "system user assistant Imagined screen after scroll(direction='up') (1 of 5 calls)",
    '<call_wm>press_back()</call_wm> <call_wm from="1">wait()</call_wm> the quick brown fox',
)


def make(
    folder: Path,
    family: Family = "qwen3",
    *,
    seed: int = 0,
    deepstack: bool = True,
    head_dim: int = 16,
    context: int = 1024,
) -> Path:
    """Write a checkpoint of about 0.1 M parameters to `folder` and return it.

    `head_dim` 32 is the smallest that vLLM's attention on a CPU takes.
    """
    folder.mkdir(parents=True, exist_ok=True)
    tokenizer = _tokenizer()
    tokenizer.save_pretrained(str(folder))
    patch = 16 if family == "qwen3" else 14
    Qwen2VLImageProcessorPil(
        min_pixels=(2 * patch) ** 2,
        max_pixels=16 * (2 * patch) ** 2,
        patch_size=patch,
        image_mean=[0.5, 0.5, 0.5],
        image_std=[0.5, 0.5, 0.5],
    ).save_pretrained(str(folder))
    model = _model(family, tokenizer, deepstack, head_dim, context)
    draw(model, seed)
    model.save_pretrained(str(folder), safe_serialization=True)
    return folder


def draw(model: Any, seed: int) -> None:
    """Draw every weight of `model` anew."""
    generator = torch.Generator().manual_seed(seed)
    with torch.no_grad():
        for name, parameter in model.named_parameters():
            if parameter.dim() >= 2:
                fan_in = parameter[0].numel()
                std = 0.5 if "pos_embed" in name else 1 / math.sqrt(fan_in)
                if "embed_tokens" in name or "lm_head" in name:
                    std = 0.2
                parameter.copy_(torch.randn(parameter.shape, generator=generator) * std)
            else:
                parameter.add_(torch.randn(parameter.shape, generator=generator) * 0.1)
            if name.endswith("language_model.norm.weight"):
                parameter.mul_(2)


def png(seed: int = 0, width_px: int = 96, height_px: int = 160) -> bytes:
    """A picture of random coloured blocks."""
    rng = np.random.default_rng(seed)
    blocks = rng.integers(0, 256, (8, 4, 3), dtype=np.uint8)
    picture = Image.fromarray(blocks).resize((width_px, height_px), Image.Resampling.NEAREST)
    out = io.BytesIO()
    picture.save(out, "PNG")
    return out.getvalue()


def _tokenizer() -> PreTrainedTokenizerFast:
    raw = Tokenizer(models.BPE())
    raw.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    raw.decoder = decoders.ByteLevel()
    trainer = trainers.BpeTrainer(
        vocab_size=340,
        initial_alphabet=sorted(pre_tokenizers.ByteLevel.alphabet()),
        show_progress=False,
    )
    raw.train_from_iterator(_CORPUS * 2, trainer)
    raw.add_special_tokens([AddedToken(token, special=True) for token in SPECIAL])
    return PreTrainedTokenizerFast(
        tokenizer_object=raw, eos_token="<|im_end|>", pad_token="<|endoftext|>"
    )


def _model(
    family: Family,
    tokenizer: PreTrainedTokenizerFast,
    deepstack: bool,
    head_dim: int,
    context: int,
) -> Any:
    ids = {token: tokenizer.convert_tokens_to_ids(token) for token in SPECIAL}
    text = {
        "vocab_size": len(tokenizer) + 5,  # real checkpoints have more rows than tokens too
        "hidden_size": 64,
        "intermediate_size": 128,
        "num_hidden_layers": 3,
        "num_attention_heads": 64 // head_dim,
        "num_key_value_heads": 32 // head_dim,
        "max_position_embeddings": context,
        "bos_token_id": None,
        "eos_token_id": ids["<|im_end|>"],
        "pad_token_id": ids["<|endoftext|>"],
    }
    shared = {
        "image_token_id": ids["<|image_pad|>"],
        "video_token_id": ids["<|video_pad|>"],
        "vision_start_token_id": ids["<|vision_start|>"],
        "vision_end_token_id": ids["<|vision_end|>"],
    }
    section = [head_dim // 4, head_dim // 8, head_dim // 8]
    if family == "qwen3":
        rope = {"rope_type": "default", "mrope_interleaved": True, "mrope_section": section}
        return Qwen3VLForConditionalGeneration(
            Qwen3VLConfig(
                text_config=text | {"head_dim": head_dim, "rope_scaling": rope},
                vision_config={
                    "depth": 2,
                    "hidden_size": 32,
                    "intermediate_size": 64,
                    "num_heads": 2,
                    "out_hidden_size": 64,
                    "num_position_embeddings": 64,
                    "deepstack_visual_indexes": [0] if deepstack else [],
                },
                tie_word_embeddings=True,
                **shared,
            )
        )
    return Qwen2_5_VLForConditionalGeneration(
        Qwen2_5_VLConfig(
            text_config=text | {"rope_scaling": {"rope_type": "default", "mrope_section": section}},
            vision_config={
                "depth": 2,
                "hidden_size": 32,
                "intermediate_size": 64,
                "num_heads": 2,
                "out_hidden_size": 64,
                "window_size": 56,
                "fullatt_block_indexes": [1],
            },
            tie_word_embeddings=False,
            **shared,
        )
    )
