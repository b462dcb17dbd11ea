"""Learning rates against worked values and against transformers' own schedule."""

import pytest
import torch
from transformers import get_cosine_schedule_with_warmup

from services.trainer.recipe import Recipe
from services.trainer.schedules import learning_rate


def recipe(iterations: int = 10, **optimizer: object) -> Recipe:
    return Recipe.model_validate(
        {
            "checkpoint": "x",
            "tasks": {"templates": ["a"]},
            "schedule": {"iterations": iterations},
            "optimizer": {"lr": 2.0, **optimizer},
        }
    )


def test_constant_after_the_warm_up() -> None:
    rates = [learning_rate(step, recipe(warmup=4)) for step in (1, 2, 4, 5, 1000)]
    assert rates == [0.5, 1.0, 2.0, 2.0, 2.0]


def test_cosine_by_hand() -> None:
    # 2 epochs of 2 steps in 3 iterations: 12 steps, the top at step 4, the end at 12
    chosen = recipe(3, warmup=4, epochs=2, minibatches=2, schedule="cosine", cosine_floor=0.1)
    rates = [learning_rate(step, chosen) for step in (2, 4, 8, 12, 20)]
    assert rates == pytest.approx([1.0, 2.0, 1.1, 0.2, 0.2])


def test_cosine_is_that_of_transformers() -> None:
    optimizer = torch.optim.SGD([torch.zeros(1, requires_grad=True)], lr=2.0)
    theirs = get_cosine_schedule_with_warmup(optimizer, 3, 10)
    chosen = recipe(10, warmup=3, schedule="cosine")
    for step in range(1, 11):
        optimizer.step()
        theirs.step()
        assert learning_rate(step, chosen) == pytest.approx(theirs.get_last_lr()[0], abs=1e-12)
