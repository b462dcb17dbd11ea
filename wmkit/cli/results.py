"""The end of a run as a table: before, after, and the paired difference, by app."""

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.table import Table

from wmkit.cli.console import interval, percent
from wmkit.cli.places import shown
from wmkit.domain.runs import Run


def print_results(console: Console, run: Run) -> None:
    """Table, verdict and files of a run that has ended."""
    summary = json.loads(run.summary_json) if run.summary_json else {}
    if summary.get("before") or summary.get("after"):
        console.print()
        console.print(comparison(summary))
        if sentence := verdict(summary):
            console.print(sentence)
    if summary:
        console.print(books(summary))
    folder = Path(run.directory)
    for name in ("summary.json", "report.html"):
        if (folder / name).exists():
            console.print(f"{name:13} {shown(folder / name)}", soft_wrap=True)


def comparison(summary: Mapping[str, Any]) -> Table:
    """One row per app and one for all of them."""
    table = Table(title="held-out success, 95 % intervals", title_justify="left")
    table.add_column("tasks")
    # Where nothing was trained there is one evaluation, and nothing to compare.
    columns: tuple[str, ...] = ("n", "before", "after", "difference, paired")
    if not summary.get("after"):
        columns = ("n", "before" if summary.get("iterations") else "success")
    for name in columns:
        table.add_column(name, justify="right")
    for app, row in summary.get("by_app", {}).items():
        table.add_row(app, *_cells(row)[: len(columns)])
    table.add_section()
    table.add_row("all", *_cells(summary)[: len(columns)], style="bold")
    return table


def verdict(summary: Mapping[str, Any]) -> str:
    """What the difference says, and nothing more than it says."""
    change = summary.get("improvement")
    if not change:
        return ""
    low, high = change["ci95"]
    wins, losses = change["wins"], change["losses"]
    pairs = f"{wins} tasks turned from failure to success, {losses} the other way"
    if low > 0:
        return f"The policy got [bold green]better[/bold green]: {pairs}."
    if high < 0:
        return f"The policy got [bold red]worse[/bold red]: {pairs}."
    return f"No difference beyond chance: {pairs}."


def books(summary: Mapping[str, Any]) -> str:
    """What was played, in one line."""
    episodes, moves = summary["episodes"], summary["transitions"]
    return (
        f"{summary['iterations']} iterations, {episodes['requested']} episodes "
        f"({episodes['accepted']} accepted, {episodes['masked']} masked, {episodes['dead']} dead), "
        f"{moves['commit']} steps, {moves['imagine']} imagined, "
        f"{moves['cache_hits']} answered from the cache, {summary['wall_s']:.0f} s"
    )


def _cells(row: Mapping[str, Any]) -> tuple[str, str, str, str]:
    before, after, change = row.get("before"), row.get("after"), row.get("improvement")
    n = max((rate["n"] for rate in (before, after) if rate), default=0)
    difference = "-"
    if change:
        difference = f"{100 * change['mean']:+.1f} {interval(change['ci95'])}"
    return str(n), _rate(before), _rate(after), difference


def _rate(rate: Mapping[str, Any] | None) -> str:
    return f"{percent(rate['success'])} {interval(rate['ci95'])}" if rate and rate["n"] else "-"
