"""The library's own forward pass, for comparison with ours: one sequence, no padding, no cache."""

from collections.abc import Sequence
from typing import Any

import torch

from wmkit.modeling import EncodedPixels, Loaded


def inputs(loaded: Loaded, ids: Sequence[int], images: Sequence[EncodedPixels]) -> dict[str, Any]:
    """Keyword arguments for the model's `forward` and `generate`."""
    loaded.model.model.rope_deltas = None
    tokens = torch.tensor([list(ids)])
    out: dict[str, Any] = {"input_ids": tokens, "attention_mask": torch.ones_like(tokens)}
    if images:
        out["pixel_values"] = torch.cat([image.pixel_values for image in images])
        out["image_grid_thw"] = torch.tensor([image.grid_thw for image in images])
        out["mm_token_type_ids"] = (tokens == loaded.chat.image_id).int()
    return out


def placeholders(loaded: Loaded) -> list[int]:
    """The two ids that sampling rules out."""
    return [loaded.model.config.image_token_id, loaded.model.config.video_token_id]


def logprobs(
    loaded: Loaded,
    ids: Sequence[int],
    images: Sequence[EncodedPixels],
    temperature: float = 1.0,
) -> torch.Tensor:
    """[L - 1] log-probability of each token after the first, placeholders ruled out."""
    logits = loaded.model(**inputs(loaded, ids, images)).logits[0, :-1].float()
    keep = torch.ones(logits.shape[-1], dtype=torch.bool)
    keep[placeholders(loaded)] = False
    scores = torch.where(keep, logits, torch.tensor(-torch.inf)) / temperature
    targets = torch.tensor(list(ids[1:]))
    return torch.log_softmax(scores, -1).gather(1, targets[:, None])[:, 0]
