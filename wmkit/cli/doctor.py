"""`wmr1 doctor`: one row per thing that is needed, and how to get what is missing."""

from rich.markup import escape
from rich.table import Table

from wmkit.cli.checks import Level, all_checks
from wmkit.cli.console import out

_MARKS = {
    Level.GOOD: "[green]ok[/green]",
    Level.NOTE: "[yellow]note[/yellow]",
    Level.BAD: "[red]missing[/red]",
}


def doctor() -> int:
    """Print the table; returns 1 when something is missing without which nothing runs, else 0."""
    table = Table(box=None, header_style="bold")
    for column in ("", "what", "found", "what to do"):
        table.add_column(column, overflow="fold")
    bad = 0
    for check in all_checks():
        bad += check.level is Level.BAD
        table.add_row(
            _MARKS[check.level], check.name, escape(check.found), escape(check.advice) or ""
        )
    out.print(table)
    out.print(
        f"[red]{bad} missing[/red]: `make setup` gets what it can" if bad else "ready: wmr1 demo"
    )
    return 1 if bad else 0
