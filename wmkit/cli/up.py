"""`wmr1 up`: the stack for as long as the command runs, with a table of its processes."""

import time
from collections.abc import Sequence
from pathlib import Path

from rich.live import Live
from rich.table import Table

from wmkit.cli import places
from wmkit.cli.console import end_cleanly, out
from wmkit.cli.recipes import checkpoint
from wmkit.cli.stack import SERVICES, Layout, Stack, free_ports
from wmkit.cli.stack.child import Child, Phase
from wmkit.cli.stack.layout import HOST
from wmkit.domain.errors import InvalidRequest
from wmkit.rpc.ports import is_taken
from wmkit.settings import DEFAULT_PORTS

REDIS_PORT = 6379
"""Where commands look for a queue that is not named."""

_COLOURS = {
    Phase.SERVING: "green",
    Phase.STARTING: "yellow",
    Phase.WAITING: "red",
    Phase.STOPPED: "dim",
}


def up(
    names: Sequence[str],
    *,
    policy: str = "",
    redis_url: str = "",
    redis_port: int = 0,
    any_port: bool = False,
    state: Path | None = None,
) -> None:
    """Keep the named services (all for none) running until Ctrl-C. Raises StackFailed."""
    root = places.root()
    services = _chosen(names)
    ports = free_ports(services if redis_url else ("redis", *services))
    if not any_port:
        ports |= {name: DEFAULT_PORTS[name] for name in services}
        if "redis" in ports and not is_taken(HOST, REDIS_PORT):
            ports["redis"] = REDIS_PORT
    if redis_port and not redis_url:
        ports["redis"] = redis_port
    layout = Layout(
        root=root,
        folder=state or root / "var" / "up",
        logs=(state or root / "var") / "log",
        ports=ports,
        redis_url=redis_url,
        settings={"WMR1_CHECKPOINT": checkpoint(policy)} if policy else {},
    )
    end_cleanly()
    try:
        with Stack(layout) as stack:
            if out.is_terminal:
                _show_table(stack)
            else:
                _tell_changes(stack)
    except KeyboardInterrupt:
        out.print("everything is stopped")


def _chosen(names: Sequence[str]) -> tuple[str, ...]:
    for name in names:
        if name not in SERVICES:
            raise InvalidRequest(f"there is no service {name!r}; known: {', '.join(SERVICES)}")
    return tuple(name for name in SERVICES if not names or name in names)


def _show_table(stack: Stack) -> None:
    note = f"logs in {places.shown(stack.layout.logs)}; Ctrl-C stops everything"
    with Live(_table(stack, note), console=out, auto_refresh=False) as live:
        refreshed = _Refresh(live, stack, note)
        stack.wait_ready(each_look=refreshed)
        while True:
            refreshed()
            time.sleep(0.5)


class _Refresh:
    def __init__(self, live: Live, stack: Stack, note: str) -> None:
        self._live, self._stack, self._note = live, stack, note

    def __call__(self) -> None:
        self._live.update(_table(self._stack, self._note), refresh=True)


def _table(stack: Stack, note: str) -> Table:
    table = Table(caption=note, caption_justify="left")
    for column in ("service", "state", "address", "pid", "up", "restarts"):
        table.add_column(column)
    for child in stack.children:
        colour = _COLOURS[child.phase]
        table.add_row(
            child.spec.name,
            f"[{colour}]{child.phase}[/{colour}]",
            child.spec.address,
            str(child.pid or ""),
            f"{child.age_s:.0f} s",
            _restarts(child),
        )
    return table


def _restarts(child: Child) -> str:
    return f"{child.restarts} (last code {child.exit_code})" if child.restarts else "0"


def _tell_changes(stack: Stack) -> None:
    """One line per change of a process's state, for logs."""
    seen: dict[str, tuple[Phase, int | None]] = {}

    def tell() -> None:
        for child in stack.children:
            now = (child.phase, child.pid)
            if seen.get(child.spec.name) != now:
                seen[child.spec.name] = now
                out.print(_line(child), soft_wrap=True)

    stack.wait_ready(each_look=tell)
    tell()
    out.print("ready")
    while True:
        tell()
        time.sleep(0.5)


def _line(child: Child) -> str:
    if child.phase is Phase.WAITING:
        return f"{child.spec.name} ended with code {child.exit_code}, it is started again"
    return f"{child.spec.name} {child.phase} at {child.spec.address} (pid {child.pid})"
