"""A circuit breaker: after several failures in a row nobody waits for a dead server.

Closed, every call passes. After `failures` in a row it opens: calls are refused at once for
`rest_s`. Then one call at a time is let through on trial; its success closes the circuit,
its failure opens it again. No timers: time is read when somebody asks.
"""

import time
from collections.abc import Callable

from wmkit.domain.errors import EngineDown


class Breaker:
    """Every `enter` is followed by exactly one of `success`, `failure` and `leave`."""

    def __init__(
        self,
        what: str,
        failures: int,
        rest_s: float,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._what = what
        self._limit = failures
        self._rest_s = rest_s
        self._clock = clock
        self._failed = 0
        self._open_until: float | None = None
        self._on_trial = False

    def enter(self) -> None:
        """Raises EngineDown while the circuit is open or another call is on trial."""
        if self._open_until is None:
            return
        left_s = self._open_until - self._clock()
        if left_s > 0 or self._on_trial:
            raise EngineDown(
                f"{self._what} failed {self._failed} times in a row and is left alone for a while",
                retry_after_s=max(left_s, 0.1),
            )
        self._on_trial = True

    def success(self) -> None:
        self._failed = 0
        self._open_until = None
        self._on_trial = False

    def failure(self) -> None:
        self._on_trial = False
        self._failed += 1
        if self._failed >= self._limit:
            self._open_until = self._clock() + self._rest_s

    def leave(self) -> None:
        """The call ended without saying anything about the server: it was cancelled."""
        self._on_trial = False
