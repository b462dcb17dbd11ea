"""The clipped policy-gradient loss of GRPO and its relatives, token by token.

Pure functions on tensors; no model, no batching. The loss of an optimizer step is

    sum over samples of  weight(sample) * sum over its sampled tokens of  loss(token)

and `token_weights` sees every sample of the step at once. So the loss and its gradient do
not depend on how the samples are later cut into micro-batches.
"""

from collections import Counter
from collections.abc import Hashable, Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from services.trainer.recipe import Aggregation, Loss


@dataclass(frozen=True, slots=True)
class TokenLosses:
    """Per sampled token, all of shape [tokens]. The flags say where a bound was active."""

    loss: Tensor
    ratio: Tensor
    clipped_low: Tensor
    clipped_high: Tensor
    dual_clipped: Tensor


def policy_losses(logprobs: Tensor, old: Tensor, advantages: Tensor, loss: Loss) -> TokenLosses:
    """The loss of each sampled token; all inputs have shape [tokens], in nats.

    With r = exp(logprobs - old):  -min(r A, clip(r, 1 - low, 1 + high) A)  (PPO, Schulman
    et al. 2017, with the asymmetric "clip-higher" bounds of DAPO, Yu et al. 2025); where
    A < 0 it is at most  -dual A  (dual clip, Ye et al. 2020). A bounded token has no
    gradient.
    """
    ratio = torch.exp(logprobs - old)
    clipped = ratio.clamp(1 - loss.clip_low, 1 + loss.clip_high)
    surrogate = torch.minimum(ratio * advantages, clipped * advantages)
    negative = advantages < 0
    floor = loss.dual_clip * advantages
    bounded = torch.where(negative, torch.maximum(surrogate, floor), surrogate)
    with torch.no_grad():
        low = negative & (ratio < 1 - loss.clip_low)
        high = (advantages > 0) & (ratio > 1 + loss.clip_high)
        dual = negative & (surrogate < floor)
    return TokenLosses(-bounded, ratio.detach(), low, high, dual)


def k3(logprobs: Tensor, reference: Tensor) -> Tensor:
    """Per token, d - log d - 1 with d = exp(reference - logprobs): an unbiased, never
    negative estimate of KL(policy || reference) under samples of the policy (Schulman 2020).
    """
    difference = reference - logprobs
    return torch.exp(difference) - difference - 1


def token_weights(
    aggregation: Aggregation,
    tokens: Sequence[int],
    episodes: Sequence[Hashable],
    *,
    step_share: float,
    iteration_tokens: int,
    constant_tokens: int,
) -> list[float]:
    """One weight per sample, by which each of its token losses is multiplied.

    `tokens[i]` counts the sampled tokens of sample i and `episodes[i]` names its episode:
    an episode's samples together are one sequence. `step_share` is the fraction of the
    iteration that this optimizer step stands for (1 / minibatches).

    - `grpo`: mean over episodes of the mean over the episode's tokens (DeepSeekMath, 2024);
    - `bnpo`: mean over the tokens of this step;
    - `dapo`: mean over the tokens of the iteration, so that every token of an iteration
      weighs the same in whichever step it falls; with one step equal to `bnpo`;
    - `dr_grpo`: sum over tokens / (episodes * constant_tokens): no length bias (Liu et al.
      2025).

    Raises ValueError for samples without a sampled token.
    """
    if not tokens or min(tokens) < 1:
        raise ValueError("every sample needs at least one sampled token")
    per_episode: Counter[Hashable] = Counter()
    for count, episode in zip(tokens, episodes, strict=True):
        per_episode[episode] += count
    match aggregation:
        case "grpo":
            return [1 / (len(per_episode) * per_episode[episode]) for episode in episodes]
        case "bnpo":
            return [1 / sum(tokens)] * len(tokens)
        case "dapo":
            return [1 / (iteration_tokens * step_share)] * len(tokens)
        case "dr_grpo":
            return [1 / (len(per_episode) * constant_tokens)] * len(tokens)
