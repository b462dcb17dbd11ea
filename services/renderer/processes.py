"""A browser's processes as the kernel sees them: memory, and the end of all of them.

Linux only where it reads /proc; elsewhere memory is unknown (0) and limits on it do nothing.
"""

import os
import signal
from pathlib import Path

_PAGE_BYTES = os.sysconf("SC_PAGE_SIZE")


def resident_mb(pid: int) -> float:
    """Resident memory of one process in MiB; 0 when it is gone or unknown."""
    try:
        pages = int(Path(f"/proc/{pid}/statm").read_text().split()[1])
    except (OSError, IndexError):
        return 0.0
    return pages * _PAGE_BYTES / (1 << 20)


def family(pid: int) -> list[int]:
    """A process and its descendants, as far as they can be seen."""
    found = [pid]
    for parent in found:
        try:
            for task in Path(f"/proc/{parent}/task").iterdir():
                found += map(int, (task / "children").read_text().split())
        except OSError:
            continue
    return found


def kill(pid: int) -> None:
    """End one process; nothing happens when it is gone."""
    try:
        os.kill(pid, signal.SIGKILL)
    except ProcessLookupError:
        return


def kill_group(pid: int) -> None:
    """End a browser with its children and whatever script started it.

    playwright gives each browser a process group of its own; a group that is ours would be
    a mistake and is left alone.
    """
    try:
        group = os.getpgid(pid)
        if group != os.getpgrp():
            os.killpg(group, signal.SIGKILL)
    except ProcessLookupError:
        return
    kill(pid)
