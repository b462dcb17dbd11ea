"""The tiny policy: a real Qwen3-VL, 1.2 million parameters, for screens of 128 x 320 pixels.

The initialisation matters more than the size. With the library's default (std 0.02) such a
model learns nothing about position in 300 steps; with matrices from N(0, 1/sqrt(fan_in)) and
embeddings with std 0.5 it locates an icon in that time.
"""

import json
import math
from pathlib import Path

import torch
from transformers import PreTrainedTokenizerBase, Qwen3VLConfig, Qwen3VLForConditionalGeneration

PATCH_PX, MERGE = 16, 2
# 40 image tokens, a grid of 4 columns and 10 rows. A 1080 x 2400 screenshot of any scale above
# 0.14 comes out at 128 x 320 for a maximum between 46,100 and 55,700 pixels.
MIN_PIXELS, MAX_PIXELS = 32_768, 50_000


def config(tokenizer: PreTrainedTokenizerBase) -> Qwen3VLConfig:
    def token(text: str) -> int:
        return int(tokenizer.convert_tokens_to_ids(text))

    return Qwen3VLConfig(
        text_config=dict(
            vocab_size=len(tokenizer),
            hidden_size=128,
            intermediate_size=384,
            num_hidden_layers=3,
            num_attention_heads=4,
            num_key_value_heads=4,
            head_dim=32,
            max_position_embeddings=1024,
            rope_parameters={
                "rope_type": "default",
                "rope_theta": 10_000.0,
                "mrope_interleaved": True,
                "mrope_section": [6, 5, 5],
            },
            tie_word_embeddings=True,
            bos_token_id=None,
            eos_token_id=tokenizer.eos_token_id,
            pad_token_id=tokenizer.pad_token_id,
        ),
        vision_config=dict(
            depth=2,
            hidden_size=96,
            intermediate_size=288,
            num_heads=3,
            out_hidden_size=128,
            patch_size=PATCH_PX,
            spatial_merge_size=MERGE,
            temporal_patch_size=2,
            num_position_embeddings=256,
            deepstack_visual_indexes=[],
        ),
        tie_word_embeddings=True,
        image_token_id=token("<|image_pad|>"),
        video_token_id=token("<|video_pad|>"),
        vision_start_token_id=token("<|vision_start|>"),
        vision_end_token_id=token("<|vision_end|>"),
    )


def create(tokenizer: PreTrainedTokenizerBase, seed: int) -> Qwen3VLForConditionalGeneration:
    torch.manual_seed(seed)
    model = Qwen3VLForConditionalGeneration(config(tokenizer))
    for name, parameter in model.named_parameters():
        if parameter.dim() < 2:
            continue
        fan_in = parameter.shape[1] if parameter.dim() == 2 else parameter[0].numel()
        embedding = "pos_embed" in name or "embed_tokens" in name
        torch.nn.init.normal_(parameter, std=0.5 if embedding else 1 / math.sqrt(fan_in))
    model.tie_weights()
    return model


def save(
    folder: Path, model: Qwen3VLForConditionalGeneration, tokenizer: PreTrainedTokenizerBase
) -> None:
    """Write the folder as Hugging Face writes one: config, safetensors, tokenizer, processor."""
    folder.mkdir(parents=True, exist_ok=True)
    model.generation_config.eos_token_id = tokenizer.eos_token_id
    model.generation_config.pad_token_id = tokenizer.pad_token_id
    model.save_pretrained(folder)
    tokenizer.save_pretrained(folder)
    (folder / "preprocessor_config.json").write_text(
        json.dumps(
            {
                "image_processor_type": "Qwen2VLImageProcessor",
                "do_resize": True,
                "do_rescale": True,
                "rescale_factor": 1 / 255,
                "do_normalize": True,
                "do_convert_rgb": True,
                "image_mean": [0.5, 0.5, 0.5],
                "image_std": [0.5, 0.5, 0.5],
                "resample": 3,
                "patch_size": PATCH_PX,
                "merge_size": MERGE,
                "temporal_patch_size": 2,
                "size": {"shortest_edge": MIN_PIXELS, "longest_edge": MAX_PIXELS},
            },
            indent=2,
        )
        + "\n"
    )
