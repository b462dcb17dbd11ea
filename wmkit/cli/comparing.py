"""`wmr1 runs compare`: runs side by side by their folders.

Rows are the recipe keys in which they differ, then what they reached, then how they behaved in
their first and last iterations (means of a tenth of them, so that one noisy line decides nothing).
"""

import json
import tomllib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from statistics import fmean
from typing import Any

from rich.table import Table

from wmkit.cli import places
from wmkit.cli.console import out
from wmkit.domain.errors import InvalidRequest, RunNotFound

DRIFTS = ("success", "length", "calls", "reward", "groups_failed", "logprob_gap", "grad_norm")
Row = tuple[str, list[str]]


def compare_runs(run_ids: Sequence[str], folder: Path | None, *, markdown: bool) -> None:
    """Print the comparison. Raises RunNotFound, and InvalidRequest for a single run."""
    folder = folder or places.root() / "runs"
    if len(run_ids) < 2:
        raise InvalidRequest("name two runs or more; wmr1 runs list shows them", "run_ids")
    rows = list(compared([folder / run_id for run_id in run_ids]))
    if markdown:
        print("| | " + " | ".join(run_ids) + " |")
        print("|---" * (len(run_ids) + 1) + "|")
        for name, cells in rows:
            print(f"| {name} | " + " | ".join(cells) + " |")
        return
    table = Table(box=None, header_style="bold")
    table.add_column("")
    for run_id in run_ids:
        table.add_column(run_id, overflow="fold")
    for name, cells in rows:
        table.add_row(name, *cells)
    out.print(table)


def compared(folders: Sequence[Path]) -> Iterator[Row]:
    """Rows of one cell per run. Raises RunNotFound for a folder without a recipe."""
    recipes = [dict(_flat(_recipe(folder))) for folder in folders]
    keys = list(dict.fromkeys(key for recipe in recipes for key in recipe))
    for key in keys:
        values = [recipe.get(key) for recipe in recipes]
        if any(value != values[0] for value in values):
            yield key, ["" if value is None else str(value) for value in values]
    summaries = [_json(folder / "summary.json") for folder in folders]
    yield "status", [str(summary.get("status", "")) for summary in summaries]
    yield "iterations", [str(summary.get("iterations", "")) for summary in summaries]
    for name in ("before", "after"):
        yield name, [_rate(summary.get(name)) for summary in summaries]
    yield "after against before, paired", [_difference(summary.get("improvement")) for summary in summaries]
    yield "held-out, paired with the first", _against_first(folders)
    yield "world-model calls", [_calls(summary.get("transitions")) for summary in summaries]
    lines = [_metrics(folder) for folder in folders]
    for name in DRIFTS:
        yield f"{name}, first and last", [_drift(metrics, name) for metrics in lines]


def _against_first(folders: Sequence[Path]) -> list[str]:
    """The last evaluation of each run against the first run's, on the instances of both."""
    from services.trainer.statistics import paired

    first, *others = [_outcomes(folder) for folder in folders]
    cells = [""]
    for other in others:
        both = sorted(first.keys() & other.keys())
        if not both:
            cells.append("no task in common")
            continue
        found = paired([first[task] for task in both], [other[task] for task in both])
        cells.append(f"{_difference(asdict(found))}, n = {found.n}")
    return cells


def _outcomes(folder: Path) -> dict[str, bool]:
    """Success by held-out instance in the run's last evaluation; what was lost is left out."""
    by_phase: dict[str, dict[str, bool]] = {}
    path = folder / "trajectories.jsonl"
    if not path.exists():
        return {}
    for line in path.read_text("utf-8").splitlines():
        row = json.loads(line)
        if row["phase"].startswith("evaluate-") and row["success"] is not None:
            by_phase.setdefault(row["phase"], {})[row["task"]] = row["success"]
    return by_phase.get("evaluate-after") or by_phase.get("evaluate-before") or {}


def _calls(transitions: Mapping[str, int] | None) -> str:
    if not transitions:
        return ""
    return f"{transitions['imagine']} beside {transitions['commit']} steps"


def _flat(value: Mapping[str, Any], prefix: str = "") -> Iterator[tuple[str, Any]]:
    for key, inner in value.items():
        if isinstance(inner, Mapping):
            yield from _flat(inner, f"{prefix}{key}.")
        else:
            yield prefix + key, inner


def _recipe(folder: Path) -> dict[str, Any]:
    try:
        return tomllib.loads((folder / "config.toml").read_text("utf-8"))
    except OSError:
        raise RunNotFound(
            f"there is no run {folder.name!r} in {places.shown(folder.parent)}", folder.name
        ) from None


def _json(path: Path) -> dict[str, Any]:
    if not path.exists():
        return {}
    data: dict[str, Any] = json.loads(path.read_text("utf-8"))
    return data


def _metrics(folder: Path) -> list[dict[str, float]]:
    path = folder / "metrics.jsonl"
    if not path.exists():
        return []
    return [json.loads(line) for line in path.read_text("utf-8").splitlines()]


def _rate(rate: Mapping[str, Any] | None) -> str:
    if not rate:
        return ""
    low, high = (100 * end for end in rate["ci95"])
    return f"{100 * rate['success']:.1f} % [{low:.1f}, {high:.1f}]"


def _difference(found: Mapping[str, Any] | None) -> str:
    if not found:
        return ""
    low, high = (100 * end for end in found["ci95"])
    return f"{100 * found['mean']:+.1f} [{low:.1f}, {high:.1f}], p = {found['p_value']:.2g}"


def _drift(metrics: Sequence[Mapping[str, float]], name: str) -> str:
    values = [line[name] for line in metrics if name in line]
    if not values:
        return ""
    part = max(1, len(values) // 10)
    return f"{fmean(values[:part]):.3g} → {fmean(values[-part:]):.3g}"
