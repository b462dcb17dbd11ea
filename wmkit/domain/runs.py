"""Training runs as clients see them: a status, and the events of its progress."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum


class RunStatus(StrEnum):
    QUEUED = "queued"
    RUNNING = "running"
    SUCCEEDED = "succeeded"
    FAILED = "failed"
    CANCELLED = "cancelled"

    @property
    def ended(self) -> bool:
        return self in (RunStatus.SUCCEEDED, RunStatus.FAILED, RunStatus.CANCELLED)


@dataclass(frozen=True, slots=True)
class Run:
    """A run and its folder. `error` is one sentence; `summary_json` is empty until it ends."""

    run_id: str
    status: RunStatus
    directory: str = ""
    iteration: int = 0
    error: str = ""
    summary_json: str = ""


@dataclass(frozen=True, slots=True)
class RunEvent:
    """Progress of a run: `done` of `total` episodes of a phase, or the metrics of its end.

    `total` 0 means unknown.
    """

    status: RunStatus
    phase: str = ""
    iteration: int = 0
    done: int = 0
    total: int = 0
    metrics: Mapping[str, float] = field(default_factory=dict)
    message: str = ""
