"""Processes seen from outside: who lives below whom, and waiting for their end without polling."""

import os
import select
from collections.abc import Iterable
from pathlib import Path


class Handles:
    """Handles on living processes, taken before they end: a pid alone may be given away again."""

    def __init__(self, pids: Iterable[int]) -> None:
        self._handles = [os.pidfd_open(pid) for pid in pids]

    def wait(self, timeout_s: float = 60.0) -> None:
        """Return when all of them have ended."""
        poll = select.poll()
        for handle in self._handles:
            poll.register(handle, select.POLLIN)
        left = set(self._handles)
        while left:
            ended = poll.poll(timeout_s * 1000)
            assert ended, f"{len(left)} processes live on"
            for handle, _ in ended:
                poll.unregister(handle)
                left.discard(handle)

    @property
    def all_ended(self) -> bool:
        return len(select.select(self._handles, [], [], 0)[0]) == len(self._handles)

    def close(self) -> None:
        for handle in self._handles:
            os.close(handle)

    def __enter__(self) -> "Handles":
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


def descendants(pid: int) -> list[int]:
    """All living processes below a process."""
    children: dict[int, list[int]] = {}
    for stat in Path("/proc").glob("[0-9]*/stat"):
        try:
            fields = stat.read_text().rpartition(")")[2].split()
        except OSError:
            continue
        if fields[0] != "Z":
            children.setdefault(int(fields[1]), []).append(int(stat.parent.name))
    found, todo = [], [pid]
    while todo:
        below = children.get(todo.pop(), [])
        found += below
        todo += below
    return found
