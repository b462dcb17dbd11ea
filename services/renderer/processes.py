"""Processes as the kernel sees them: cores and memory they have, and the end of a browser's.

Linux only where it reads /proc; elsewhere memory is unknown (0) and limits on it do nothing.
"""

import math
import os
import signal
from pathlib import Path

_PAGE_BYTES = os.sysconf("SC_PAGE_SIZE")


def cores() -> int:
    """Cores that this process may use, a container's quota included; at least 1."""
    usable = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count()
    try:
        quota, period = Path("/sys/fs/cgroup/cpu.max").read_text().split()
        return max(1, min(usable or 1, math.ceil(int(quota) / int(period))))
    except (OSError, ValueError):  # No such file, or "max": no quota.
        return usable or 1


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


def has_ended(pid: int) -> bool:
    """Whether a process is gone, or only its exit status is left."""
    try:
        os.kill(pid, 0)
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] == "Z"
    except ProcessLookupError:
        return True
    except OSError:
        return False


def kill(pid: int) -> None:
    """End one process; nothing happens when it is gone."""
    try:
        os.kill(pid, signal.SIGKILL)
    except ProcessLookupError:
        return


def kill_group(group: int) -> None:
    """End every process of a group; nothing happens when there is none."""
    try:
        os.killpg(group, signal.SIGKILL)
    except ProcessLookupError:
        return
