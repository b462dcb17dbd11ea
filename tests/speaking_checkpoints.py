"""Tiny Qwen3-VL checkpoints that say one sentence, whatever they are shown.

A real model through and through (vision tower, attention, sampling), but with the layers'
outputs set to zero, so that the next token follows from the last one alone: words are single
tokens, and the output row of each is the embedding of the one before it.
"""

import json
from pathlib import Path
from typing import Any

import torch
from tokenizers import AddedToken
from transformers import AutoTokenizer, Qwen3VLForConditionalGeneration

from tests import tiny_checkpoints

END = "<|im_end|>"
CONTEXT = 16_384


def make(folder: Path, *words: str, end: bool = True) -> Path:
    """A checkpoint that says `words`, each another one, and ends; or says the last for ever."""
    assert len(set(words)) == len(words)
    tiny_checkpoints.make(folder)
    tokenizer: Any = AutoTokenizer.from_pretrained(str(folder))
    tokenizer.add_tokens([AddedToken(word, normalized=False) for word in words])
    tokenizer.save_pretrained(str(folder))
    model: Any = Qwen3VLForConditionalGeneration.from_pretrained(str(folder))
    model.resize_token_embeddings(len(tokenizer) + 5, mean_resizing=False)
    with torch.no_grad():
        for layer in model.model.language_model.layers:
            layer.self_attn.o_proj.weight.zero_()
            layer.mlp.down_proj.weight.zero_()
        model.model.language_model.norm.weight.fill_(1.0)
        embedding = model.get_input_embeddings().weight
        generator = torch.Generator().manual_seed(1)
        # Unit vectors in 64 dimensions: two of them have a product of about an eighth.
        drawn = torch.randn(embedding.shape, generator=generator)
        embedding.copy_(drawn / drawn.norm(dim=1, keepdim=True))
        output = torch.zeros_like(embedding)
        before = tokenizer.encode("\n", add_special_tokens=False)[-1]
        for word in (*words, END) if end else (*words, words[-1]):
            token = tokenizer.convert_tokens_to_ids(word)
            output[token] += 4 * embedding[before]
            before = token
        model.lm_head.weight = torch.nn.Parameter(output)
    model.config.tie_word_embeddings = False
    model.config.text_config.max_position_embeddings = CONTEXT
    model.save_pretrained(str(folder), safe_serialization=True)
    # As real checkpoints have it: sampling is the default.
    config = {"do_sample": True, "temperature": 0.7, "top_k": 20, "top_p": 0.8}
    path = folder / "generation_config.json"
    path.write_text(json.dumps(json.loads(path.read_text()) | config))
    return folder
