"""The numbers of a finished run, and the books they must balance."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from statistics import fmean
from typing import Any

from services.trainer.evaluation import (
    Comparison,
    Rate,
    Row,
    compare,
    compare_by,
    improvement_dict,
)
from services.trainer.recipe import Recipe
from services.trainer.revision import code_revision
from wmkit.domain.episode import Trajectory
from wmkit.ports import Ledger

METHOD = (
    "success: Wilson 95 % interval; improvement: mean paired difference with a paired normal "
    "95 % interval over the instances valid both times; p_value: exact McNemar, two-sided"
)


@dataclass(slots=True)
class Transitions:
    """World-model steps of a run, summed from its trajectories."""

    commit: int = 0
    imagine: int = 0
    cache_hits: int = 0

    def add(self, trajectory: Trajectory) -> None:
        for step in trajectory.steps:
            self.commit += step.outcome is not None
            self.imagine += sum(call.outcome is not None for call in step.imagined)
            self.cache_hits += step.cache_hit + sum(call.cache_hit for call in step.imagined)


@dataclass(slots=True)
class Findings:
    """What a run has found out so far; `before` and `after` are empty until evaluated."""

    before: list[Row] = field(default_factory=list)
    after: list[Row] = field(default_factory=list)
    transitions: Transitions = field(default_factory=Transitions)
    iterations: int = 0
    train_s: float = 0.0
    earlier: Ledger = field(default_factory=Ledger)
    """Jobs of earlier attempts that the queue no longer knows."""
    earlier_s: float = 0.0
    """Wall-clock seconds of earlier attempts, as far as they were saved."""
    best: dict[str, float] | None = None
    """Iteration, version and validation success of the weights in `best/`."""
    imagining: list[Row] = field(default_factory=list)
    """Training episodes in which the agent asked the world model; for the report alone."""

    @property
    def overall(self) -> Comparison:
        return compare("all", self.before, self.after)

    @property
    def by_app(self) -> list[Comparison]:
        return compare_by("app", self.before, self.after)

    @property
    def by_template(self) -> list[Comparison]:
        return compare_by("template", self.before, self.after)

    @property
    def complexity(self) -> float:
        """Mean complexity of the held-out instances."""
        known = [r.complexity for r in (self.after or self.before) if r.trajectory]
        return fmean(known) if known else 0.0


def summarize(
    findings: Findings,
    *,
    run_id: str,
    status: str,
    error: str,
    recipe: Recipe,
    ledger: Ledger,
    wall_s: float,
) -> dict[str, Any]:
    """The content of summary.json. An evaluation that did not take place is null."""
    overall = findings.overall if findings.before else None
    return {
        "run_id": run_id,
        "status": status,
        "error": error,
        "control": recipe.control,
        "seed": recipe.seed,
        "code": code_revision(),
        "before": _rate(findings.before),
        "after": _rate(findings.after),
        "improvement": improvement_dict(overall.improvement) if overall else None,
        "best": findings.best,
        "iterations": findings.iterations,
        "episodes": {
            "requested": ledger.requested,
            "accepted": ledger.accepted,
            "masked": ledger.masked,
            "dead": ledger.dead,
        },
        "transitions": {
            "commit": findings.transitions.commit,
            "imagine": findings.transitions.imagine,
            "cache_hits": findings.transitions.cache_hits,
        },
        "wall_s": wall_s,
        "train_s": findings.train_s,
        "complexity": findings.complexity,
        "method": METHOD,
        "by_app": {c.name: c.as_dict() for c in findings.by_app},
        "by_template": {c.name: c.as_dict() for c in findings.by_template},
    }


def check_books(ledger: Ledger) -> None:
    """Every job has ended exactly once."""
    assert ledger.ended == ledger.requested, (
        f"the ledger does not balance: {ledger.accepted} accepted + {ledger.masked} masked + "
        f"{ledger.dead} dead are not {ledger.requested} requested"
    )


def _rate(rows: Sequence[Row]) -> dict[str, Any] | None:
    return Rate.of(rows).as_dict() if rows else None
