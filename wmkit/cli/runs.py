"""`wmr1 runs`: runs by their folders, or of a trainer that is running."""

import asyncio
import json
from collections.abc import Sequence
from pathlib import Path

from rich.table import Table

from wmkit.cli import places
from wmkit.cli.console import out, percent
from wmkit.cli.results import print_results
from wmkit.domain.errors import RunNotFound
from wmkit.domain.runs import Run, RunStatus


def list_runs(folder: Path | None, trainer: str) -> None:
    """A table of runs, the newest first."""
    folder = folder or places.root() / "runs"
    runs = asyncio.run(_ask(trainer)) if trainer else local_runs(folder)
    if not runs:
        out.print(f"no runs yet in {places.shown(folder)}; make one: wmr1 demo")
        return
    table = Table(box=None, header_style="bold")
    for column in ("run", "status", "iter", "before", "after"):
        table.add_column(column, no_wrap=True)
    table.add_column("error", overflow="fold")
    for run in runs:
        table.add_row(
            run.run_id, run.status, str(run.iteration), *_rates(Path(run.directory)), run.error
        )
    out.print(table)


def show_run(run_id: str, folder: Path | None) -> None:
    """The results of one run. Raises RunNotFound."""
    folder = folder or places.root() / "runs"
    run = local_run(folder / run_id)
    if run is None:
        raise RunNotFound(f"there is no run {run_id!r} in {places.shown(folder)}", run_id)
    out.print(f"run {run.run_id}: {run.status}" + (f", {run.error}" if run.error else ""))
    print_results(out, run)


def local_runs(folder: Path) -> Sequence[Run]:
    """The runs in a folder, the newest first; what is no run is left out."""
    found = [run for path in folder.glob("*/run.json") if (run := local_run(path.parent))]
    return sorted(found, key=lambda run: Path(run.directory).stat().st_ctime, reverse=True)


def local_run(folder: Path) -> Run | None:
    """A run as its folder tells it, or None for a folder that holds none."""
    try:
        data = json.loads((folder / "run.json").read_text("utf-8"))
        status = RunStatus(data["status"])
        run_id, error = str(data["run_id"]), str(data["error"])
    except (OSError, ValueError, KeyError, TypeError):
        return None
    metrics, summary = folder / "metrics.jsonl", folder / "summary.json"
    return Run(
        run_id,
        status,
        str(folder.resolve()),
        len(metrics.read_text("utf-8").splitlines()) if metrics.exists() else 0,
        error,
        summary.read_text("utf-8") if summary.exists() else "",
    )


async def _ask(address: str) -> Sequence[Run]:
    from wmkit.clients.trainer import TrainerClient

    async with TrainerClient(address) as client:
        return await client.list_runs()


def _rates(folder: Path) -> tuple[str, str]:
    try:
        summary = json.loads((folder / "summary.json").read_text("utf-8"))
    except (OSError, ValueError):
        return "", ""
    before, after = (summary.get(name) for name in ("before", "after"))
    return (
        percent(before["success"]) if before else "",
        percent(after["success"]) if after else "",
    )
