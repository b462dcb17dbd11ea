"""The processes of a stack together: started in order, watched by a thread, stopped in reverse.

    with Stack(layout) as stack:
        stack.wait_ready()
        ...

Leaves no process behind, whatever ends the block.
"""

import fcntl
import threading
import time
from collections.abc import Callable
from pathlib import Path
from types import TracebackType
from typing import Self, TextIO

from wmkit.cli.stack.child import Child, Phase
from wmkit.cli.stack.layout import Layout
from wmkit.domain.errors import Unavailable
from wmkit.rpc.ports import holder, is_taken

WAVES = (("redis",), ("renderer", "worldmodel", "policy"), ("rollout",), ("trainer",))
"""Who needs whom; they stop in reverse, those of a wave at once."""
LOOK_EVERY_S = 0.2
START_ATTEMPTS = 3
GRACE_S = {"redis": 5.0, "trainer": 60.0}
"""Seconds from SIGTERM to SIGKILL; the trainer writes the summary of a run that is cut short."""
OTHER_GRACE_S = 25.0


class StackFailed(Unavailable):
    """A process of the stack does not come up; the message is its own last sentence."""


class Stack:
    def __init__(self, layout: Layout) -> None:
        self.layout = layout
        self.children = [Child(spec) for spec in layout.specs()]
        self._lock = threading.Lock()
        self._over = threading.Event()
        self._claimed: TextIO | None = None
        self._watcher = threading.Thread(target=self._watch, name="stack", daemon=True)

    def __enter__(self) -> Self:
        try:
            self.start()
        except BaseException:
            self.stop()
            raise
        return self

    def __exit__(
        self, _: type[BaseException] | None, __: BaseException | None, ___: TracebackType | None
    ) -> None:
        self.stop()

    def address(self, name: str) -> str:
        return self.layout.address(name)

    def start(self) -> None:
        """Start everything; Redis answers before the first service starts.

        Raises StackFailed for a folder or port in use and for a Redis that does not come up.
        """
        self._claim(self.layout.folder)
        for child in self.children:
            _check_port(child)
        for child in self.children:
            _set_aside(child)
        with self._lock:
            for child in self.children:
                child.start()
                if child.spec.name == "redis":
                    self._until(lambda: self.children[0].served, 15.0, watched=False)
        self._watcher.start()

    def _claim(self, folder: Path) -> None:
        """Two Redis servers that write one file would ruin it."""
        folder.mkdir(parents=True, exist_ok=True)
        self._claimed = (folder / ".lock").open("w")
        try:
            fcntl.flock(self._claimed, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            raise StackFailed(
                f"another stack runs in {folder}; stop that, or name another folder with --state"
            ) from None

    def wait_ready(
        self, timeout_s: float = 180.0, each_look: Callable[[], None] | None = None
    ) -> None:
        """Return when all serve; `each_look` is called now and then. Raises StackFailed."""

        def done() -> bool:
            if each_look:
                each_look()
            return all(child.served for child in self.children)

        self._until(done, timeout_s)

    def _until(self, done: Callable[[], bool], timeout_s: float, *, watched: bool = True) -> None:
        end = time.monotonic() + timeout_s
        while True:
            if not watched:
                self._look()
            for child in self.children:
                if not child.served and (
                    child.exit_code == 2 or child.deaths_in_a_row >= START_ATTEMPTS
                ):
                    raise StackFailed(_obituary(child))
            if done():
                return
            if time.monotonic() > end:
                late = ", ".join(c.spec.name for c in self.children if not c.served)
                raise StackFailed(
                    f"not ready after {timeout_s:g} s: {late}; see the logs in {self.layout.logs}"
                )
            time.sleep(LOOK_EVERY_S)

    def _watch(self) -> None:
        while not self._over.wait(LOOK_EVERY_S):
            with self._lock:
                if not self._over.is_set():
                    self._look()

    def _look(self) -> None:
        for child in self.children:
            if child.phase is not Phase.STOPPED:
                child.look()

    def stop(self) -> None:
        """End all processes in reverse order; at once when interrupted meanwhile."""
        self._over.set()
        try:
            with self._lock:
                for wave in reversed(WAVES):
                    children = [c for c in self.children if c.spec.name in wave]
                    for child in children:
                        child.ask_to_stop()
                    for child in children:
                        child.stop(GRACE_S.get(child.spec.name, OTHER_GRACE_S))
        finally:
            # Not earlier: on Linux the end of this thread ends the children that it restarted.
            if self._watcher.is_alive():
                self._watcher.join()
            for child in reversed(self.children):
                child.kill()
            if self._claimed:
                self._claimed.close()


def _check_port(child: Child) -> None:
    host, _, port = child.spec.address.rpartition(":")
    if is_taken(host, int(port)):
        by = f" by {who}" if (who := holder(int(port))) else ""
        raise StackFailed(
            f"port {port}, wanted for {child.spec.name}, is taken{by}; stop that, or use "
            "--free-ports"
        )


def _set_aside(child: Child) -> None:
    """Keep the log of the stack before this one as `NAME.previous.log`."""
    log = child.spec.log
    if log.exists():
        log.replace(log.with_suffix(".previous.log"))


def _obituary(child: Child) -> str:
    words = child.last_words()
    if child.exit_code == 2 and words:
        return words
    ended = f"{child.spec.name} ended with code {child.exit_code} before it was ready"
    return f"{ended}: {words or 'it said nothing'} (log: {child.spec.log})"
