"""`wmr1 tasks validate`: the checks that every template has to pass, as a table."""

import json
import os
import sys
from collections.abc import Sequence
from concurrent.futures import ProcessPoolExecutor
from functools import partial
from typing import TYPE_CHECKING, Any

from rich.table import Table

from wmkit.cli.console import counting, out
from wmkit.domain.errors import WMError

if TYPE_CHECKING:
    from services.worldmodel.tasks.checks import Report


def validate(names: Sequence[str], seeds: int, as_json: bool) -> None:
    """Play the checks of every named template. Raises WMError when a rule is broken."""
    from services.worldmodel import tasks
    from services.worldmodel.tasks.checks import check, check_kinds

    for name in names:
        tasks.make(name, 0)
    chosen = list(names or tasks.TEMPLATES)
    reports = []
    with counting() as progress, ProcessPoolExecutor(os.cpu_count()) as pool:
        bar = progress.add_task("checking templates", total=len(chosen))
        for report in pool.map(partial(check, seeds=range(seeds)), chosen):
            reports.append(report)
            progress.advance(bar)
    problems = [p for report in reports for p in report.problems] + check_kinds(reports)
    if as_json:
        rows = [_row(report) for report in reports]
        sys.stdout.write(json.dumps({"templates": rows, "problems": problems}, indent=2) + "\n")
    else:
        _print_reports(reports)
    for problem in problems:
        out.print(f"[red]{problem}[/red]", soft_wrap=True)
    if problems:
        raise WMError(f"{len(problems)} problems in {len(reports)} templates x {seeds} seeds")
    if not as_json:
        out.print(f"{len(reports)} templates x {seeds} seeds: every check holds")


def _row(report: "Report") -> dict[str, Any]:
    return {
        "template": report.template,
        "kind": report.kind,
        "seeds": report.seeds,
        "complexity": report.complexity,
        "random": report.random_wins / report.seeds,
        "giving_up": report.giving_up_wins / report.seeds,
    }


def _print_reports(reports: Sequence["Report"]) -> None:
    columns = ("template", "kind", "complexity", "random play", "giving up")
    table = Table(*columns, box=None, header_style="bold")
    for report in reports:
        row = _row(report)
        table.add_row(
            report.template,
            report.kind,
            f"{row['complexity']:.1f}",
            f"{row['random']:.1%}",
            f"{row['giving_up']:.1%}",
        )
    out.print(table)
