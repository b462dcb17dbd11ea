"""The learning rate of each optimizer step, as a plain function."""

import math

from services.trainer.recipe import Recipe


def learning_rate(step: int, recipe: Recipe) -> float:
    """For optimizer step `step`, counted from 1 over the whole run.

    Rises linearly over `warmup` steps, then stays (`constant`) or follows half a cosine down
    to `cosine_floor` times `lr` (`cosine`) by the last step of `schedule.iterations` iterations.
    """
    optimizer = recipe.optimizer
    rise = min(1.0, step / max(1, optimizer.warmup))
    if optimizer.schedule == "constant":
        return optimizer.lr * rise
    total = recipe.schedule.iterations * optimizer.epochs * optimizer.minibatches
    top = max(1, optimizer.warmup)
    done = min(1.0, max(0, step - top) / max(1, total - top))
    floor = optimizer.cosine_floor
    fall = floor + (1 - floor) * (1 + math.cos(math.pi * done)) / 2
    return optimizer.lr * rise * fall
