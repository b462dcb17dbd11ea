"""One supervised process: its states, its restarts, its end.

    starting -> serving -> (dies) -> waiting -> starting ...
    any -> stopped

It gets a process group of its own, so that Ctrl-C reaches only the supervisor and the
order of the end is ours. On Linux the kernel ends it when the supervisor is killed.
"""

import os
import shutil
import signal
import subprocess
import time
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from enum import StrEnum
from pathlib import Path

BACKOFF_S = (0.5, 1.0, 2.0, 4.0, 8.0, 15.0)
"""Pauses before the first, second, ... restart in a row; the last one goes on."""
SETTLED_S = 60.0
"""A process that lived this long is not held responsible for earlier deaths."""


class Phase(StrEnum):
    STARTING = "starting"
    SERVING = "serving"
    WAITING = "restarting"
    STOPPED = "stopped"


@dataclass(frozen=True, slots=True)
class Spec:
    """What to run. `address` is asked by `ready` until it answers True."""

    name: str
    argv: tuple[str, ...]
    env: Mapping[str, str]
    cwd: Path
    address: str
    log: Path
    ready: Callable[[str], bool]


@dataclass(slots=True)
class Child:
    spec: Spec
    phase: Phase = Phase.STOPPED
    restarts: int = 0
    exit_code: int | None = None
    """Of the last process that ended by itself; negative for a signal."""
    served: bool = False
    """Has been ready at least once."""
    _process: subprocess.Popen[bytes] | None = None
    _started: float = 0.0
    _row: int = 0
    _again_at: float = field(default=0.0)

    @property
    def pid(self) -> int | None:
        return self._process.pid if self._process else None

    @property
    def deaths_in_a_row(self) -> int:
        return self._row

    @property
    def age_s(self) -> float:
        return time.monotonic() - self._started if self._process else 0.0

    def start(self) -> None:
        self.spec.log.parent.mkdir(parents=True, exist_ok=True)
        with self.spec.log.open("ab") as log:
            self._process = subprocess.Popen(
                (*_tied(), *self.spec.argv),
                env=dict(self.spec.env),
                cwd=self.spec.cwd,
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=subprocess.STDOUT,
                start_new_session=True,
            )
        self._started = time.monotonic()
        self.phase = Phase.STARTING

    def look(self) -> None:
        """Notice what has happened and do what is due: mark as serving, schedule, restart."""
        if self.phase is Phase.WAITING and time.monotonic() >= self._again_at:
            self.restarts += 1
            self.start()
        if self._process is not None and (code := self._process.poll()) is not None:
            self._died(code)
        if self.phase is Phase.STARTING and self.spec.ready(self.spec.address):
            self.phase, self.served = Phase.SERVING, True
        if self.phase is Phase.SERVING and self.age_s > SETTLED_S:
            self._row = 0

    def _died(self, code: int) -> None:
        self._kill_group()
        self._process, self.exit_code = None, code
        self._again_at = time.monotonic() + BACKOFF_S[min(self._row, len(BACKOFF_S) - 1)]
        self._row += 1
        self.phase = Phase.WAITING

    def ask_to_stop(self) -> None:
        """SIGTERM; from here on it is not started again."""
        self.phase = Phase.STOPPED
        if self._process is not None and self._process.poll() is None:
            self._process.send_signal(signal.SIGTERM)

    def stop(self, grace_s: float) -> None:
        """Wait for the end of a process that was asked; after `grace_s` kill its whole group."""
        if self._process is not None:
            with suppress(subprocess.TimeoutExpired):
                self._process.wait(grace_s)
            self.kill()

    def kill(self) -> None:
        """End the process and all that it started, at once."""
        self.phase = Phase.STOPPED
        if self._process is not None:
            self._kill_group()
            self._process.wait()
            self._process = None

    def _kill_group(self) -> None:
        assert self._process is not None
        with suppress(ProcessLookupError, PermissionError):
            os.killpg(self._process.pid, signal.SIGKILL)

    def last_words(self) -> str:
        """The last line of the log that was written for people, or ""."""
        try:
            with self.spec.log.open("rb") as log:
                log.seek(max(0, log.seek(0, os.SEEK_END) - 8192))
                lines = log.read().decode(errors="replace").splitlines()
        except OSError:
            return ""
        spoken = [line.strip() for line in lines if line.strip() and not line.startswith("{")]
        return spoken[-1] if spoken else ""


def _tied() -> tuple[str, ...]:
    """A prefix by which the kernel ends the child when the supervisor dies, where there is one."""
    setpriv = shutil.which("setpriv")
    return (setpriv, "--pdeathsig", "TERM") if setpriv else ()
