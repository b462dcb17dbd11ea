"""A stack for one command: free ports, a Redis of its own, gone when the command ends.

Blobs and runs lie with everybody else's, so that trajectories outlive the command.
"""

import os
import shutil
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from datetime import datetime
from pathlib import Path

from wmkit.cli import places
from wmkit.cli.console import end_cleanly, out
from wmkit.cli.stack import SERVICES, Layout, Stack, free_ports


@contextmanager
def private_stack(
    name: str,
    services: tuple[str, ...] = SERVICES,
    settings: Mapping[str, str] | None = None,
    *,
    keep: bool = True,
) -> Iterator[Stack]:
    """Serving when the block begins. Raises StackFailed.

    Its folder is `var/NAME-TIME`; without `keep` it is removed when nothing went wrong.
    """
    end_cleanly()
    stack = Stack(private_layout(name, services, settings or {}))
    try:
        with out.status(f"starting {', '.join(services)}"):
            stack.start()
            stack.wait_ready()
        yield stack
    finally:
        with out.status("stopping"):
            stack.stop()
    if not keep:
        shutil.rmtree(stack.layout.folder)


def private_layout(name: str, services: tuple[str, ...], settings: Mapping[str, str]) -> Layout:
    root = places.root()
    folder = _fresh(root / "var", f"{name}-{datetime.now():%Y%m%d-%H%M%S}")
    return Layout(
        root=root,
        folder=folder,
        logs=folder / "log",
        ports=free_ports(("redis", *services)),
        settings={
            "WMR1_BLOBS": os.environ.get("WMR1_BLOBS", str(root / "var" / "blobs")),
            "WMR1_RUNS": os.environ.get("WMR1_RUNS", str(root / "runs")),
            **settings,
        },
    )


def _fresh(parent: Path, name: str) -> Path:
    for n in range(1, 100):
        folder = parent / (name if n == 1 else f"{name}-{n}")
        try:
            folder.mkdir(parents=True)
        except FileExistsError:
            continue
        return folder
    raise AssertionError(f"a hundred folders named {name} in one second")
