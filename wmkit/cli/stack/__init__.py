"""A stack on this machine: Redis and the services as child processes, watched over.

    layout    which processes, on which ports, with which settings
    child     one process: started in a group of its own, restarted with backoff, stopped
    ready     does it serve already?
    stack     all of them, in order

No containers, no daemon: when the command ends, so does everything it started.
"""

from wmkit.cli.stack.layout import SERVICES, Layout, free_ports
from wmkit.cli.stack.stack import Stack, StackFailed

__all__ = ["SERVICES", "Layout", "Stack", "StackFailed", "free_ports"]
