"""Real processes of a test: a service on a free port, who lives below whom, the end of them.

Waiting for an end does not poll.
"""

import asyncio
import json
import os
import select
import socket
import sys
from collections.abc import AsyncIterator, Iterable
from contextlib import asynccontextmanager
from pathlib import Path


def free_port() -> int:
    """A TCP port of this host that nobody listens at. Nothing reserves it, so use it soon."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


@asynccontextmanager
async def service_process(
    name: str, **environment: str
) -> AsyncIterator[tuple[str, asyncio.subprocess.Process]]:
    """`python -m services.<name>` on a free port: its address, and the process.

    Killed at the end unless the test has ended it.
    """
    process = await asyncio.create_subprocess_exec(
        sys.executable,
        "-m",
        f"services.{name}",
        env=os.environ | {"WMR1_PORT": "0"} | environment,
        stderr=asyncio.subprocess.PIPE,
    )
    assert process.stderr is not None
    try:
        said = []
        async for line in process.stderr:
            said.append(line.decode())
            if '"serving"' in said[-1]:
                yield json.loads(said[-1])["address"], process
                break
        else:
            raise AssertionError(f"{name} ended with {await process.wait()}: {''.join(said)}")
    finally:
        if process.returncode is None:
            process.terminate()
            await process.wait()


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
