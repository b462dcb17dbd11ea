"""What travels with a call through tasks and on to the next service: trace id and deadline.

Context variables, set by the server's interceptor and read by the clients.
"""

import secrets
import time
from contextvars import ContextVar

TRACE_KEY = "x-wmr1-trace"
"""Metadata key of the trace id."""

trace: ContextVar[str] = ContextVar("wmr1_trace", default="")
"""Trace id of the current call; empty outside of one."""

deadline: ContextVar[float | None] = ContextVar("wmr1_deadline", default=None)
"""`time.monotonic()` at which the current call's caller gives up; None is never."""


def new_trace() -> str:
    return secrets.token_hex(8)


def left_s() -> float | None:
    """Seconds until the current call's caller gives up; None when it never does."""
    end = deadline.get()
    return None if end is None else max(end - time.monotonic(), 0.0)


def remaining_s(default_s: float) -> float:
    """Seconds for a call made now: `default_s`, or less where the caller gives up earlier."""
    left = left_s()
    return default_s if left is None else min(default_s, left)
