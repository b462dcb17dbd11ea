"""Running the model on a packed batch: vision features, embeddings, selected log-probabilities.

Calls the language model with ready embeddings and explicit three-row positions, in sampling
and in training alike. It neither samples nor computes a loss.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch.nn import functional as F
from torch.utils.checkpoint import checkpoint

from wmkit.modeling.packing import Batch

LOGITS_PER_CHUNK = 1 << 24
"""Logits that exist at once: 64 MiB in float32."""


@dataclass(frozen=True, slots=True, eq=False)
class Features:
    """Vision tower output of one picture: [tokens, hidden], and the same per deepstack layer."""

    tokens: torch.Tensor
    deepstack: tuple[torch.Tensor, ...] = ()

    @property
    def nbytes(self) -> int:
        return sum(x.numel() * x.element_size() for x in (self.tokens, *self.deepstack))


def encode_images(
    model: Any, pixel_values: torch.Tensor, image_grid_thw: torch.Tensor
) -> list[Features]:
    """Features of each picture in `image_grid_thw`."""
    out = model.model.get_image_features(pixel_values, image_grid_thw, return_dict=True)
    deepstack = getattr(out, "deepstack_features", None) or []
    return [
        Features(tokens, tuple(layer[i] for layer in deepstack))
        for i, tokens in enumerate(out.pooler_output)
    ]


def embed(model: Any, batch: Batch, features: Sequence[Features]) -> dict[str, Any]:
    """Keyword arguments of the language model for `batch`; `features` of its distinct pictures.

    Pictures that no placeholder names change nothing, but stay part of the graph.
    """
    embeds = model.get_input_embeddings()(batch.input_ids)
    if not len(batch.image_index):
        for unused in features:
            for tensor in (unused.tokens, *unused.deepstack):
                embeds = embeds + 0.0 * tensor.sum().to(embeds.dtype)
        return {"inputs_embeds": embeds}
    where = batch.image_tokens
    order = batch.image_index.tolist()
    placed = torch.cat([features[i].tokens for i in order]).to(embeds.dtype)
    embeds = embeds.masked_scatter(where[..., None], placed)
    out: dict[str, Any] = {"inputs_embeds": embeds}
    if features[0].deepstack:
        out["visual_pos_masks"] = where
        out["deepstack_visual_embeds"] = [
            torch.cat([features[i].deepstack[layer] for i in order])
            for layer in range(len(features[0].deepstack))
        ]
    return out


def hidden_states(model: Any, batch: Batch) -> torch.Tensor:
    """Last hidden states [B, L, hidden] of a whole batch, without a cache."""
    features: list[Features] = []
    pixel_values, grids = batch.pixel_values, batch.image_grid_thw
    if pixel_values is not None and grids is not None:
        features = encode_images(model, pixel_values, grids)
    out = model.model.language_model(
        **embed(model, batch, features),
        attention_mask=batch.attention_mask,
        position_ids=batch.position_ids,
        use_cache=False,
    )
    hidden: torch.Tensor = out.last_hidden_state
    return hidden


def logits(model: Any, hidden: torch.Tensor) -> torch.Tensor:
    """float32 logits [..., vocabulary] with the image and video placeholders ruled out.

    A placeholder that the policy sampled could not be told from a picture in the next
    prompt, so both sides take these two ids out of the distribution.
    """
    out: torch.Tensor = model.lm_head(hidden).float()
    config = model.config
    for token in (config.image_token_id, config.video_token_id):
        if token is not None and 0 <= token < out.shape[-1]:
            out[..., token] = -torch.inf
    return out


def forward_logprobs(
    model: Any, batch: Batch, select: torch.Tensor, temperature: float = 1.0
) -> torch.Tensor:
    """Log-probabilities float32 [n] of the tokens of `batch` that `select` marks, row by row.

    `select` is bool [B, L] with n true entries, in the order of `select.nonzero()`; a row's
    first token cannot be selected. The distribution is the one that sampling uses:
    logits / temperature, where a temperature of 0 (greedy) counts as 1. Works with and
    without gradients; logits exist for selected tokens only, a chunk at a time.
    """
    if select.shape != batch.input_ids.shape:
        raise ValueError(f"select is {tuple(select.shape)}, not {tuple(batch.input_ids.shape)}")
    select = select.bool()
    tokens = batch.attention_mask.bool()
    scorable = tokens & (tokens.cumsum(1) > 1)
    if bool((select & ~scorable).any()):
        raise ValueError("a sequence's first token or padding has no log-probability")
    hidden = hidden_states(model, batch)
    before = hidden[:, :-1][select[:, 1:]]
    targets = batch.input_ids[select]
    return target_logprobs(model, before, targets, temperature)


def target_logprobs(
    model: Any, hidden: torch.Tensor, targets: torch.Tensor, temperature: float = 1.0
) -> torch.Tensor:
    """Log-probabilities float32 [n] of `targets` [n] after hidden states [n, hidden]."""
    scale = temperature if temperature > 0 else 1.0

    def score(rows: torch.Tensor, wanted: torch.Tensor) -> torch.Tensor:
        return -F.cross_entropy(logits(model, rows) / scale, wanted, reduction="none")

    rows_per_chunk = max(1, LOGITS_PER_CHUNK // model.lm_head.weight.shape[0])
    if len(targets) <= rows_per_chunk:
        return score(hidden, targets)
    pieces = zip(
        torch.split(hidden, rows_per_chunk), torch.split(targets, rows_per_chunk), strict=True
    )
    if torch.is_grad_enabled():
        # Recomputed in the backward pass, so that no chunk's logits outlive the chunk.
        return torch.cat([_recompute(score, rows, wanted) for rows, wanted in pieces])
    return torch.cat([score(rows, wanted) for rows, wanted in pieces])


def _recompute(score: Any, rows: torch.Tensor, wanted: torch.Tensor) -> torch.Tensor:
    out = checkpoint(score, rows, wanted, use_reentrant=False)
    assert isinstance(out, torch.Tensor)
    return out
