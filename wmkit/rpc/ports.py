"""Taken ports, said in one sentence. Names the process that holds a port where /proc tells."""

import errno
import os
import socket
from pathlib import Path


class PortTaken(Exception):
    """Another process listens on the port; the message says which and what to do."""

    def __init__(self, port: int, variable: str) -> None:
        by = f" by {who}" if (who := holder(port)) else ""
        super().__init__(f"port {port} is taken{by}; set {variable} to a free one")


def is_taken(host: str, port: int) -> bool:
    """True when `port` is in use on `host`; False also where `host` itself cannot be had."""
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    with socket.socket(family, socket.SOCK_STREAM) as probe:
        # What TIME_WAIT leaves behind is no listener; gRPC binds over it too.
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind((host.strip("[]"), port))
            probe.listen(1)
        except OSError as error:
            return error.errno == errno.EADDRINUSE
    return False


def holder(port: int) -> str:
    """`"python -m services.renderer" (pid 42)`, or "" where the system does not tell."""
    inodes = set()
    for table in ("/proc/net/tcp", "/proc/net/tcp6"):
        try:
            rows = Path(table).read_text().splitlines()[1:]
        except OSError:
            continue
        for row in rows:
            cells = row.split()
            if cells[3] == "0A" and int(cells[1].rpartition(":")[2], 16) == port:
                inodes.add(f"socket:[{cells[9]}]")
    if not inodes:
        return ""
    for process in Path("/proc").glob("[0-9]*"):
        try:
            if any(os.readlink(fd) in inodes for fd in (process / "fd").iterdir()):
                words = (process / "cmdline").read_bytes().decode(errors="replace").split("\0")
                return f'"{" ".join(words).strip()[:80]}" (pid {process.name})'
        except OSError:
            continue
    return ""
