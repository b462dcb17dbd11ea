"""The policy-gradient losses of GRPO and its relatives, token by token.

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

LOG_RATIO_LIMIT = 20.0
"""Ratios are kept within exp(-20) and exp(20): beyond that every objective is bounded anyway,
and an infinite ratio would turn the gradient of a bounded token (0 * inf) into NaN."""


@dataclass(frozen=True, slots=True)
class TokenLosses:
    """Per sampled token, all of shape [tokens]. The flags say where a bound was active."""

    loss: Tensor
    ratio: Tensor
    clipped_low: Tensor
    clipped_high: Tensor
    dual_clipped: Tensor


def policy_losses(
    logprobs: Tensor, old: Tensor, advantages: Tensor, loss: Loss, answers: Tensor
) -> TokenLosses:
    """The loss of each sampled token; all inputs have shape [tokens], in nats.

    `answers` numbers the answer (sample) that each token belongs to, from 0 without gaps.
    With r = exp(logprobs - old):

    - `clip`: -min(r A, clip(r, 1 - low, 1 + high) A)  (PPO, Schulman et al. 2017, with the
      asymmetric "clip-higher" bounds of DAPO, Yu et al. 2025); where A < 0 it is at most
      -dual A  (dual clip, Ye et al. 2020). A bounded token has no gradient.
    - `gspo`: the same with the geometric mean of r over the answer (Zheng et al. 2025).
    - `cispo`: -min(r, cap) A logprobs with a constant first factor, so that no token loses
      its gradient (MiniMax-M1, 2025).
    - `likelihood`: -A logprobs, whoever sampled the tokens: supervised training where A = 1.
    """
    difference = logprobs - old
    if loss.objective == "gspo":
        difference = answer_means(difference, answers)
    ratio = difference.clamp(-LOG_RATIO_LIMIT, LOG_RATIO_LIMIT).exp()
    if loss.objective == "likelihood":
        never = torch.zeros_like(ratio, dtype=torch.bool)
        return TokenLosses(-advantages * logprobs, ratio.detach(), never, never, never)
    if loss.objective == "cispo":
        weight = ratio.detach()
        over = weight > loss.cispo_cap
        never = torch.zeros_like(over)
        values = -weight.clamp(max=loss.cispo_cap) * advantages * logprobs
        return TokenLosses(values, weight, never, over & (advantages > 0), never)
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


def sampler_correction(trainer: Tensor, sampler: Tensor, loss: Loss, answers: Tensor) -> Tensor:
    """Importance weight [tokens] of trainer over sampler, without gradient.

    `trainer` and `sampler` are log-probabilities [tokens] of the same policy version.
    exp(trainer - sampler) per token, or for `sequence_*` its product over the answer; then
    truncated to [floor, cap] (Yao et al. 2025), or 0 for what lies outside (masked).
    """
    with torch.no_grad():
        difference = trainer - sampler
        if loss.correction.startswith("sequence"):
            difference = answer_sums(difference, answers)[answers]
        weight = difference.clamp(-LOG_RATIO_LIMIT, LOG_RATIO_LIMIT).exp()
        low, high = loss.correction_floor, loss.correction_cap
        if loss.correction.endswith("truncate"):
            return weight.clamp(low, high)
        return weight.masked_fill((weight < low) | (weight > high), 0.0)


def answer_sums(values: Tensor, answers: Tensor) -> Tensor:
    """The sum of `values` [tokens] over each answer, [answers]."""
    count = int(answers[-1]) + 1
    return torch.zeros(count, dtype=values.dtype, device=values.device).index_add(
        0, answers, values
    )


def answer_means(values: Tensor, answers: Tensor) -> Tensor:
    """The mean of `values` [tokens] over each answer, at each of its tokens."""
    means = answer_sums(values, answers) / answer_sums(torch.ones_like(values), answers)
    return means[answers]


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
