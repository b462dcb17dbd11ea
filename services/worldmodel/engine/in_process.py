"""Asks a checkpoint in this process: one answer at a time, in a thread, the others wait.

For one GPU without a server, and for tests with a tiny checkpoint. A model behind a server
answers many at once, which is what training at scale needs.
"""

import asyncio
import functools
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from services.worldmodel.engine.decoding import Decoder
from services.worldmodel.engine.wire import Ask, Completion, Refused
from services.worldmodel.metrics import ENGINE_CALLS
from wmkit.domain.errors import DeadlineExpired, EngineDown, Overloaded
from wmkit.rpc.context import left_s


@dataclass(frozen=True, slots=True)
class Checkpoint:
    """The identity of weights in this process: their folder's name and what they hold."""

    folder: Path
    weights: str
    """Digest of the weights and of everything that makes their inputs."""

    @property
    def model(self) -> str:
        return f"{self.folder.name}@{self.weights[:16]}"

    @property
    def place(self) -> str:
        return f"{self.folder.name} in this process"

    def same(self, other: Any) -> bool:
        return isinstance(other, Checkpoint) and other.weights == self.weights


class InProcess:
    """One checkpoint; see `ModelClient`. `timeout_s` bounds a call, `waiting` the queue."""

    def __init__(self, decoder: Decoder, *, timeout_s: float = 300.0, waiting: int = 256) -> None:
        self.endpoint = Checkpoint(decoder.folder, decoder.weights)
        self._decoder = decoder
        self._timeout_s = timeout_s
        self._waiting = waiting
        self._thread = ThreadPoolExecutor(1, "world-model")
        self._asked: set[threading.Event] = set()
        self._answer_s = 1.0

    async def close(self) -> None:
        """Give up on what is asked and wait for the thread."""
        for gone in self._asked:
            gone.set()
        await asyncio.to_thread(functools.partial(self._thread.shutdown, cancel_futures=True))

    async def complete(self, ask: Ask) -> Completion:
        """See `ModelClient.complete`."""
        if ask.schema is not None:
            raise Refused("a checkpoint in process cannot be held to a schema", 400)
        if len(self._asked) > self._waiting:
            raise Overloaded(
                f"{len(self._asked)} requests wait for {self.endpoint.place} already",
                retry_after_s=max(1.0, self._answer_s),
            )
        left = left_s()
        ours = left is None or left > self._timeout_s
        timeout_s = self._timeout_s if ours or left is None else left
        gone = threading.Event()
        self._asked.add(gone)
        result = "timeout"
        try:
            async with asyncio.timeout(timeout_s) as limit:
                answer = await self._in_thread(ask, gone)
            result = answer.finish_reason
            return answer
        except TimeoutError:
            if not limit.expired():
                raise
            message = f"{self.endpoint.place} did not answer within {timeout_s:.3g} s"
            raise (EngineDown(message) if ours else DeadlineExpired(message)) from None
        except asyncio.CancelledError:
            result = "cancelled"
            raise
        except Exception:
            result = "error"
            raise
        finally:
            # Read by the thread at every token: a caller that left holds nobody up.
            gone.set()
            self._asked.discard(gone)
            ENGINE_CALLS.labels(self.endpoint.folder.name, result).inc()

    async def _in_thread(self, ask: Ask, gone: threading.Event) -> Completion:
        loop = asyncio.get_running_loop()
        try:
            answer, seconds = await loop.run_in_executor(self._thread, self._timed, ask, gone)
        except RuntimeError as error:  # torch's own, out of memory among them
            words = str(error).strip().splitlines()[0][:300] if str(error).strip() else ""
            raise EngineDown(f"{self.endpoint.place} failed: {words}") from error
        self._answer_s = seconds
        return answer

    def _timed(self, ask: Ask, gone: threading.Event) -> tuple[Completion, float]:
        begin = time.perf_counter()
        answer = self._decoder.complete(ask, gone.is_set)
        return answer, time.perf_counter() - begin
