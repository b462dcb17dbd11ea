"""Choosing the next token of each row: pure functions on logits, no model and no state."""

import numpy as np
import torch
from numpy.typing import NDArray


def uniforms(seed: int, count: int) -> NDArray[np.float64]:
    """The `count` random numbers in [0, 1) that a request with `seed` samples with.

    Philox keyed by the seed: independent of the batch, the device and of how many are drawn.
    """
    key = seed & 0xFFFF_FFFF_FFFF_FFFF
    return np.random.Generator(np.random.Philox(key=key)).random(count)


def choose(
    logits: torch.Tensor, temperature: torch.Tensor, uniform: torch.Tensor
) -> tuple[torch.Tensor, torch.Tensor]:
    """Next token int64 [B] of each row and its log-probability float32 [B].

    `logits` is float32 [B, V], `temperature` float32 [B], `uniform` float64 [B]. Samples
    softmax(logits / temperature) by inverting its cumulative sum at `uniform`; a temperature
    of 0 takes the largest logit, and its log-probability is that of temperature 1.
    """
    greedy = temperature <= 0
    scale = torch.where(greedy, torch.ones_like(temperature), temperature)
    logprobs = torch.log_softmax(logits / scale[:, None], dim=-1)
    # float64: in float32 the sum over a large vocabulary loses the rare tokens.
    cumulative = logprobs.double().exp().cumsum(-1)
    total = cumulative[:, -1:]
    target = torch.minimum(
        uniform[:, None] * total, torch.nextafter(total, torch.zeros_like(total))
    )
    sampled = torch.searchsorted(cumulative, target, right=True).squeeze(-1)
    tokens = torch.where(greedy, logits.argmax(-1), sampled.clamp(max=logits.shape[-1] - 1))
    return tokens, logprobs.gather(1, tokens[:, None]).squeeze(-1)
