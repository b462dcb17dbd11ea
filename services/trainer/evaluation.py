"""An evaluation as plain rows, and the comparison of two on the same instances."""

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from statistics import fmean
from typing import Any

from services.trainer.gather import Episode
from services.trainer.groups import succeeded
from services.trainer.statistics import Paired, paired, wilson


@dataclass(frozen=True, slots=True)
class Row:
    """One held-out instance. `success` is None when infrastructure or a judge lost it."""

    instance: str
    template: str
    success: bool | None
    app: str = ""
    complexity: int = 0
    length: int = 0
    calls: int = 0
    trajectory: str = ""
    """Digest of the stored trajectory."""
    reason: str = ""
    """Why there is no verdict."""


def row(episode: Episode) -> Row:
    task = episode.job.task
    trajectory = episode.trajectory
    if trajectory is None:
        return Row(str(task), task.template, None, reason=episode.lost)
    return Row(
        instance=str(task),
        template=task.template,
        success=succeeded(trajectory) if episode.valid else None,
        app=trajectory.task.main_app,
        complexity=trajectory.task.complexity,
        length=trajectory.length,
        calls=trajectory.calls,
        trajectory=episode.result.trajectory,
        reason=episode.lost,
    )


@dataclass(frozen=True, slots=True)
class Rate:
    """A success rate over `n` valid instances with Wilson's 95 % interval."""

    success: float
    n: int
    ci95: tuple[float, float]

    @classmethod
    def of(cls, rows: Sequence[Row]) -> "Rate":
        """With nothing valid the rate is 0 of 0 and the interval everything."""
        valid = [r for r in rows if r.success is not None]
        if not valid:
            return cls(0.0, 0, (0.0, 1.0))
        wins = sum(bool(r.success) for r in valid)
        return cls(wins / len(valid), len(valid), wilson(wins, len(valid)))

    def as_dict(self) -> dict[str, Any]:
        return {"success": self.success, "n": self.n, "ci95": list(self.ci95)}


@dataclass(frozen=True, slots=True)
class Comparison:
    """Before and after, and their paired difference on the instances valid both times."""

    name: str
    before: Rate
    after: Rate
    improvement: Paired | None

    def as_dict(self) -> dict[str, Any]:
        return {
            "before": self.before.as_dict(),
            "after": self.after.as_dict(),
            "improvement": improvement_dict(self.improvement),
        }


def improvement_dict(difference: Paired | None) -> dict[str, Any] | None:
    if difference is None:
        return None
    return {
        "mean": difference.mean,
        "ci95": list(difference.ci95),
        "n": difference.n,
        "wins": difference.wins,
        "losses": difference.losses,
        "p_value": difference.p_value,
    }


def compare(name: str, before: Sequence[Row], after: Sequence[Row]) -> Comparison:
    """Pair the rows by instance; None instead of a difference when no pair is valid."""
    later = {r.instance: r.success for r in after}
    pairs = [
        (b.success, a)
        for b in before
        if b.success is not None and (a := later.get(b.instance)) is not None
    ]
    difference = paired([b for b, _ in pairs], [a for _, a in pairs]) if pairs else None
    return Comparison(name, Rate.of(before), Rate.of(after), difference)


def compare_by(key: str, before: Sequence[Row], after: Sequence[Row]) -> list[Comparison]:
    """One comparison per app (`key` "app") or template, sorted by name.

    An instance that was never played has no known app, unless its twin has one.
    """
    names: dict[str, str] = {}
    for r in (*before, *after):
        names[r.instance] = names.get(r.instance) or getattr(r, key)
    groups: dict[str, tuple[list[Row], list[Row]]] = defaultdict(lambda: ([], []))
    for side, rows in enumerate((before, after)):
        for r in rows:
            groups[names[r.instance]][side].append(r)
    return [compare(name, *groups[name]) for name in sorted(groups) if name]


def describe(rows: Sequence[Row]) -> dict[str, float]:
    """What a watcher of the run sees of an evaluation."""
    rate = Rate.of(rows)
    played = [r for r in rows if r.trajectory]
    return {
        "success": rate.success,
        "n": rate.n,
        "ci95_low": rate.ci95[0],
        "ci95_high": rate.ci95[1],
        "length": fmean(r.length for r in played) if played else 0.0,
        "calls": fmean(r.calls for r in played) if played else 0.0,
        "complexity": fmean(r.complexity for r in played) if played else 0.0,
    }
