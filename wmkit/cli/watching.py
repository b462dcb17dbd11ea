"""A training run as people watch it: a bar for what goes on, a line for what is done.

On a terminal the bar moves; elsewhere only the lines appear, so that a log stays readable.
"""

import time
from collections.abc import AsyncIterator, Mapping
from types import TracebackType
from typing import Self

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

from wmkit.cli.console import interval, percent
from wmkit.domain.runs import RunEvent

TITLES = {
    "evaluate-before": "before training: held-out tasks, greedy",
    "train": "training: other tasks in every iteration, easy ones and hard ones",
    "evaluate-after": "after training: the same tasks, greedy",
    "report": "writing the report",
}
ALONE = {"evaluate-before": "held-out tasks, greedy", "report": TITLES["report"]}
"""The phases of a run that only evaluates."""
_BAR = 16
# "taught": groups whose episodes differed in reward, of all groups.
_HEAD = "  iter  success                    reward  steps  imagined  taught    time"


class Watcher:
    """Prints the events of one run. Use as a `with` block around `follow`."""

    def __init__(self, console: Console, *, max_train_s: float = 0.0, trains: bool = True) -> None:
        self._max_train_s = max_train_s
        self._trains = trains
        self._phase = ""
        self._began = 0.0
        self._progress = Progress(
            TextColumn("  {task.description}"),
            BarColumn(bar_width=_BAR),
            MofNCompleteColumn(),
            TextColumn("{task.fields[note]}"),
            TimeElapsedColumn(),
            console=console,
            transient=True,
            disable=not console.is_terminal,
        )
        self._bar = self._progress.add_task("waiting", total=None, note="")

    def __enter__(self) -> Self:
        self._progress.start()
        return self

    def __exit__(
        self, _: type[BaseException] | None, __: BaseException | None, ___: TracebackType | None
    ) -> None:
        self._progress.stop()

    async def follow(self, events: AsyncIterator[RunEvent]) -> RunEvent | None:
        """Show all events; returns the last one."""
        last = None
        async for event in events:
            last = event
            self.show(event)
        return last

    def show(self, event: RunEvent) -> None:
        begins = bool(event.phase) and event.phase != self._phase
        if begins:
            self._enter(event.phase)
        if event.total:
            self._move(event)
        # The message that begins a phase says no more than its title.
        elif (event.metrics or not begins) and (line := describe(event)):
            self._progress.console.print(line)

    def _enter(self, phase: str) -> None:
        self._phase, self._began = phase, time.monotonic()
        title = TITLES.get(phase, phase) if self._trains else ALONE.get(phase, phase)
        self._progress.console.print(f"[bold]{title}[/bold]")
        if phase == "train":
            self._progress.console.print(f"[dim]{_HEAD}[/dim]")
        self._progress.reset(self._bar, description=title.partition(":")[0], total=None, note="")

    def _move(self, event: RunEvent) -> None:
        note = ""
        if event.phase == "train":
            note = f"iteration {event.iteration}"
            if self._max_train_s:
                left = max(0.0, self._max_train_s - (time.monotonic() - self._began))
                note += f", {left:.0f} s of training left"
        self._progress.update(self._bar, completed=event.done, total=event.total, note=note)


def describe(event: RunEvent) -> str:
    """The line that stays, or "" for an event that leaves none."""
    metrics = event.metrics
    match event.phase:
        case "evaluate-before" | "evaluate-after" if metrics:
            rate = percent(metrics["success"])
            ci95 = interval((metrics["ci95_low"], metrics["ci95_high"]))
            return (
                f"  success [bold]{rate}[/bold] {ci95} of {metrics['n']:.0f} tasks, "
                f"{metrics['length']:.1f} steps and {metrics['calls']:.1f} imagined screens each"
            )
        case "train" if metrics:
            return _iteration(metrics)
        case "":
            # Queued, running, ended: titles and results tell it.
            return ""
        case _:
            return f"  [yellow]{event.message}[/yellow]" if event.message else ""


def _iteration(metrics: Mapping[str, float]) -> str:
    success = metrics.get("success", 0.0)
    filled = round(success * _BAR)
    bar = "█" * filled + "·" * (_BAR - filled)
    taught = f"{metrics.get('groups_used', 0):.0f}/{metrics.get('groups', 0):.0f}"
    return (
        f"  {metrics['iteration']:4.0f}  {bar} {percent(success):>7}"
        f"{metrics.get('reward', 0.0):8.2f}{metrics.get('length', 0.0):7.1f}"
        f"{metrics.get('calls', 0.0):10.1f}{taught:>8}{metrics.get('elapsed_s', 0.0):6.0f} s"
    )
