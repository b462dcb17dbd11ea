"""The terminal: one console for results, one for errors, and an end by signal that cleans up."""

import signal
from types import FrameType

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

out = Console(highlight=False)
err = Console(highlight=False, stderr=True)


class _Ended(SystemExit):
    """SIGTERM or SIGHUP arrived; `with` blocks unwind as they do for Ctrl-C."""


def end_cleanly() -> None:
    """Let SIGTERM and SIGHUP unwind the program instead of cutting it off."""

    def on_signal(number: int, _: FrameType | None) -> None:
        raise _Ended(128 + number)

    for which in (signal.SIGTERM, signal.SIGHUP):
        if signal.getsignal(which) is not signal.SIG_IGN:
            signal.signal(which, on_signal)


def percent(rate: float) -> str:
    return f"{100 * rate:.1f} %"


def interval(ci95: tuple[float, float] | list[float]) -> str:
    """`[41.2, 53.3]`, in percent."""
    return f"\\[{100 * ci95[0]:.1f}, {100 * ci95[1]:.1f}]"


def counting() -> Progress:
    """A bar that counts things; only on a terminal, and gone when it is done."""
    return Progress(
        TextColumn("{task.description}"),
        BarColumn(),
        MofNCompleteColumn(),
        TimeElapsedColumn(),
        console=out,
        transient=True,
        disable=not out.is_terminal,
    )
