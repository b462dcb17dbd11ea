"""Samples for a learner, made with a real tiny model, and the gradient that it takes from them."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import torch

from services.trainer.batches import Sample, samples_of
from services.trainer.learner import Learner
from services.trainer.recipe import Recipe
from tests import tiny_checkpoints
from tests.trainer_cases import score, segment, step, trajectory
from wmkit.blobs import digest
from wmkit.domain.episode import ImageRef
from wmkit.modeling import checkpoint

PICTURES = [tiny_checkpoints.png(seed) for seed in range(3)]
IMAGES = {digest(data): data for data in PICTURES}


def recipe(folder: Path, **sections: Any) -> Recipe:
    values: dict[str, Any] = {"checkpoint": str(folder), "tasks": {"templates": ["a"]}}
    return Recipe.model_validate(values | sections)


def make_samples(loaded: checkpoint.Loaded, *, drift: float = 0.0) -> list[Sample]:
    """Three episodes of 1, 2 and 2 segments, with 0 to 2 pictures each, of unequal lengths.

    Sampling log-probabilities are the model's own plus `drift` times a fixed wiggle.
    """
    encoder = loaded.chat
    out: list[Sample] = []
    plans: list[list[list[int]]] = [[[]], [[0], [0, 1]], [[2], [1, 2]]]
    for number, plan in enumerate(plans):
        steps = []
        for index, shown in enumerate(plan):
            pixels = [loaded.images.encode(PICTURES[i]) for i in shown]
            ids = [encoder.turn_start_id, *encoder.text_ids("user goal " + "ab" * number)]
            for picture in pixels:
                ids += [encoder.vision_start_id, *[encoder.image_id] * picture.tokens]
                ids += [encoder.vision_end_id]
            answer = encoder.text_ids("tap here"[: 3 + 2 * index + number])
            made = segment(
                ids,
                answer,
                images=[ImageRef(digest=p.digest, grid_thw=p.grid_thw) for p in pixels],
                processor=loaded.processor_digest,
            )
            old = score(loaded, made, pixels)
            old = old + drift * torch.sin(torch.arange(len(old)) * 2.0 + number)
            made = made.model_copy(update={"logprobs": (0.0,) * len(ids) + tuple(old.tolist())})
            steps.append(step(index, segment=made))
        episode = trajectory(steps=steps)
        of = episode.job.model_copy(update={"job_id": f"episode-{number}"})
        out += samples_of(episode.model_copy(update={"job": of}), [1.0, -0.7, 0.4][number])
    return out


def gradient(learner: Learner, samples: Sequence[Sample], budget: int) -> torch.Tensor:
    """The gradient of one optimizer step's loss, flat."""
    learner.recipe = learner.recipe.model_copy(
        update={
            "optimizer": learner.recipe.optimizer.model_copy(
                update={"micro_batch_tokens": budget, "grad_clip": 1e9}
            )
        }
    )
    before = [p.detach().clone() for p in learner.model.parameters()]
    learner.update(samples, IMAGES)
    flat = torch.cat([p.grad.flatten() for p in learner.model.parameters() if p.grad is not None])
    with torch.no_grad():
        for p, old in zip(learner.model.parameters(), before, strict=True):
            p.copy_(old)
    return flat


def relative(a: torch.Tensor, b: torch.Tensor) -> float:
    return float((a - b).norm() / b.norm())
