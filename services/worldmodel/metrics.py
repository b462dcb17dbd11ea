"""What the service counts for Prometheus, and nothing about how it is served."""

from functools import cache
from typing import Any

from prometheus_client import Counter

STEPS = Counter(
    "wmr1_worldmodel_steps_total",
    "Answered steps by purpose, outcome and where the transition came from",
    ["purpose", "outcome", "source"],
)


@cache
def steps(purpose: str, outcome: str, source: str) -> Any:
    """The counter of one kind of step: looked up at every step, and there are few kinds."""
    return STEPS.labels(purpose, outcome, source)


PICTURES = Counter(
    "wmr1_worldmodel_pictures_total",
    "Pictures asked for: drawn, cached or failed",
    ["result"],
)
RESTORED = Counter(
    "wmr1_worldmodel_restored_total",
    "Records in use that Redis had evicted and that were written again",
)
ENGINE_CALLS = Counter(
    "wmr1_worldmodel_engine_calls_total",
    "Calls to learned models by model and how they ended: stop, length, error, timeout, ...",
    ["model", "result"],
)
