"""Does GRPO learn? A bandit whose optimum is known, on the real learner and a tiny model."""

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pytest
import torch

from services.trainer import batches, losses
from services.trainer.batches import Sample
from services.trainer.learner import Learner
from services.trainer.losses import TokenLosses
from services.trainer.recipe import Recipe
from tests import tiny_checkpoints
from tests.trainer_cases import segment, step, trajectory
from wmkit.domain.advantages import grpo, has_spread
from wmkit.modeling.forward import hidden_states, logits

GROUP, STEPS = 16, 30
PROMPTS = ("red", "blue")


def recipe(folder: Path, **optimizer: Any) -> Recipe:
    settings = {"lr": 2e-3, "warmup": 0, "weight_decay": 0.0, **optimizer}
    values = {"checkpoint": str(folder), "tasks": {"templates": ["a"]}, "optimizer": settings}
    return Recipe.model_validate(values)


def worth(token: int, prompt: int) -> float:
    """The reward of an answer of one token; 1 is the best, for a third of all tokens."""
    return ((token + prompt) % 3) / 2


def distribution(learner: Learner, prompt: Sequence[int]) -> torch.Tensor:
    """Log-probabilities of all one-token answers."""
    batch = learner.loaded.pack([list(prompt)], [[]])
    with torch.no_grad():
        return logits(learner.model, hidden_states(learner.model, batch))[0, -1].log_softmax(-1)


def expected(learner: Learner, prompts: Sequence[Sequence[int]]) -> float:
    """The exact mean reward of the policy; its optimum is 1."""
    means = []
    for number, prompt in enumerate(prompts):
        chances = distribution(learner, prompt).exp().tolist()
        means.append(sum(p * worth(token, number) for token, p in enumerate(chances)))
    return sum(means) / len(means)


def train(learner: Learner, steps: int) -> float:
    chat = learner.loaded.chat
    prompts = [[chat.turn_start_id, *chat.text_ids(text)] for text in PROMPTS]
    generator = torch.Generator().manual_seed(1)
    for _ in range(steps):
        samples: list[Sample] = []
        for number, prompt in enumerate(prompts):
            scores = distribution(learner, prompt)
            drawn = torch.multinomial(scores.exp(), GROUP, replacement=True, generator=generator)
            tokens = [int(token) for token in drawn]
            rewards = [worth(token, number) for token in tokens]
            if not has_spread(rewards):
                continue
            for member, (token, advantage) in enumerate(zip(tokens, grpo(rewards), strict=True)):
                made = segment(prompt, [token], [scores[token].item()], processor=learner.processor)
                episode = trajectory(steps=[step(segment=made)])
                job = episode.job.model_copy(update={"job_id": f"{number}/{member}"})
                played = episode.model_copy(update={"job": job})
                samples += batches.samples_of(played, advantage)
        if samples:
            learner.update(samples, {})
    return expected(learner, prompts)


def test_grpo_reaches_the_optimum_of_a_bandit(tmp_path: Path) -> None:
    folder = tiny_checkpoints.make(tmp_path)
    learner = Learner(recipe(folder))
    assert train(learner, 0) < 0.7
    assert train(learner, STEPS) >= 0.95


def flip(monkeypatch: pytest.MonkeyPatch) -> None:
    honest = losses.policy_losses

    def flipped(*args: Any) -> TokenLosses:
        token = honest(*args)
        return TokenLosses(
            -token.loss, token.ratio, token.clipped_low, token.clipped_high, token.dual_clipped
        )

    monkeypatch.setattr(losses, "policy_losses", flipped)


def broadcast_wrongly(monkeypatch: pytest.MonkeyPatch) -> None:
    """Every member gets its neighbour's advantage."""
    honest = losses.policy_losses

    def rolled(logprobs: Any, old: Any, advantages: Any, *rest: Any) -> TokenLosses:
        return honest(logprobs, old, advantages.roll(1), *rest)

    monkeypatch.setattr(losses, "policy_losses", rolled)


def shift(monkeypatch: pytest.MonkeyPatch) -> None:
    honest = Learner.pack

    def shifted(self: Learner, samples: Sequence[Sample], images: Any) -> Any:
        batch, select = honest(self, samples, images)
        return batch, select.roll(-1, dims=1)

    monkeypatch.setattr(Learner, "pack", shifted)


@pytest.mark.parametrize("plant", [flip, broadcast_wrongly, shift])
def test_the_bandit_sees_planted_faults(
    plant: Callable[[pytest.MonkeyPatch], None], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    plant(monkeypatch)
    learner = Learner(recipe(tiny_checkpoints.make(tmp_path)))
    assert train(learner, STEPS) < 0.95


def test_text_that_was_encoded_again_is_seen(tmp_path: Path) -> None:
    """An answer sampled letter by letter comes back from its text as other tokens. The gap
    between sampler and trainer is then far over the alarm."""
    learner = Learner(recipe(tiny_checkpoints.make(tmp_path)))
    chat = learner.loaded.chat
    prompt = [chat.turn_start_id, *chat.text_ids("user")]
    letters = [chat.text_ids(letter)[0] for letter in "scroll"]
    again = chat.text_ids(chat.decode(letters))
    assert again != letters
    again += letters[len(again) :]  # as many, so that lengths alone do not give it away

    def gap(tokens: Sequence[int]) -> float:
        ids = [*prompt, *letters]
        scores = [
            distribution(learner, ids[: len(prompt) + i])[token].item()
            for i, token in enumerate(letters)
        ]
        made = segment(prompt, tokens, scores, processor=learner.processor)
        fresh = Learner(recipe(tmp_path))
        samples = batches.samples_of(trajectory(steps=[step(segment=made)]), 1.0)
        return fresh.update(samples, {})["logprob_gap"]

    alarm = learner.recipe.loss.gap_alarm
    assert gap(letters) < alarm / 100
    assert gap(again) > alarm
