"""What travels with a call through tasks and on to the next service: trace id and deadline.

Context variables, set by the server's guard and read by the clients. A task that a
call leaves behind keeps the trace id, but not the deadline: that ends with the call.
"""

import random
import time
from contextvars import Context, ContextVar, copy_context
from dataclasses import dataclass

TRACE_KEY = "x-wmr1-trace"
"""Metadata key of the trace id."""


@dataclass(slots=True)
class Call:
    """A call that is being answered. `end` is the `time.monotonic()` at which its caller gives up.

    None when it never does, and as soon as the call has been answered.
    """

    trace: str
    end: float | None = None


current: ContextVar[Call | None] = ContextVar("wmr1_call", default=None)
"""The call that this task works for; None outside of one."""


# Names, not secrets: a system call per request would cost more than the rest of it.
_names = random.Random()


def new_trace() -> str:
    return f"{_names.getrandbits(64):016x}"


def trace() -> str:
    """Trace id of the current call; empty outside of one."""
    call = current.get()
    return call.trace if call else ""


def detached() -> Context:
    """The current context without the deadline, for work that several calls share."""
    context = copy_context()
    if call := current.get():
        context.run(current.set, Call(call.trace))
    return context


def left_s() -> float | None:
    """Seconds until the current call's caller gives up; None when it never does."""
    call = current.get()
    return None if call is None or call.end is None else max(call.end - time.monotonic(), 0.0)


def remaining_s(default_s: float) -> float:
    """Seconds for a call made now: `default_s`, or less where the caller gives up earlier."""
    left = left_s()
    return default_s if left is None else min(default_s, left)
