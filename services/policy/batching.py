"""The engine `transformers`: one model behind a bounded queue, updated between two batches.

The event loop stays free: all torch work runs in one thread of its own. How a batch is
decoded is `services.policy.decoding`, how weights get in `services.policy.loading`.
"""

import asyncio
import time
from collections import deque
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass, field
from typing import TypeVar

import structlog
import torch

from services.policy import metrics
from services.policy.decoding import generate
from services.policy.engine import Answer, Prompt, Update, check_room
from services.policy.features import FeatureCache
from services.policy.loading import Weights
from services.policy.versions import Version, check_request, check_update, replaced
from wmkit.domain.errors import EngineDown, InvalidRequest, Overloaded, StalePolicyVersion
from wmkit.modeling import Loaded, Processor

log = structlog.get_logger(__name__)

T = TypeVar("T")

_STOPPING = "the policy service is stopping"


@dataclass(frozen=True, slots=True)
class Limits:
    """What a batch and the queue may hold. `batch_tokens` counts padding and room for answers."""

    batch: int = 64
    batch_tokens: int = 65536
    window_s: float = 0.005
    queue: int = 1024


@dataclass(slots=True, eq=False)
class _Waiting:
    prompt: Prompt
    policy_id: str
    min_version: int
    future: "asyncio.Future[tuple[Answer, Version]]"
    arrived: float = field(default_factory=time.perf_counter)

    @property
    def gone(self) -> bool:
        """Nobody waits for it any more; read by the model's thread."""
        return self.future.done()


class BatchEngine:
    """An `Engine`; its methods belong to the event loop's thread.

    `threads` is torch's thread count for the model, 0 the library's default. `tolerance` is
    the canary's, in nats.
    """

    name = "transformers"

    def __init__(
        self,
        loaded: Loaded,
        limits: Limits | None = None,
        *,
        feature_bytes: int = 256 << 20,
        threads: int = 0,
        tolerance: float = 0.05,
    ) -> None:
        self.loaded = loaded
        self._weights = Weights(loaded, tolerance)
        self._running: Sequence[_Waiting] = ()
        self.current = Version()
        self._limits = limits or Limits()
        self._features = FeatureCache(feature_bytes)
        self._queue: deque[_Waiting] = deque()
        self._arrived, self._enough = asyncio.Event(), asyncio.Event()
        self._idle = asyncio.Lock()
        self._batch_s = 0.1
        self._thread = ThreadPoolExecutor(1, "model", initializer=_use_threads, initargs=(threads,))
        self._loop_task: asyncio.Task[None] | None = None

    async def start(self, adapter: bytes = b"") -> None:
        if adapter:
            await self._in_thread(lambda: self._weights.load(adapter, ()))
        self._loop_task = asyncio.create_task(self._run(), name="policy-batches")

    async def close(self) -> None:
        if self._loop_task is not None:
            self._loop_task.cancel()
            with suppress(asyncio.CancelledError):
                await self._loop_task
        while self._queue:
            _fail(self._queue.popleft(), EngineDown(_STOPPING))
        await asyncio.to_thread(self._thread.shutdown)

    @property
    def processor(self) -> Processor:
        return self.loaded

    @property
    def device(self) -> str:
        return str(self.loaded.model.device)

    @property
    def parameters(self) -> int:
        return sum(p.numel() for p in self.loaded.model.parameters())

    @property
    def queued(self) -> int:
        return len(self._queue)

    async def generate(
        self, prompt: Prompt, policy_id: str = "", min_version: int = 0
    ) -> tuple[Answer, Version]:
        check_room(prompt, self.loaded.context)
        check_request(self.current, policy_id, min_version)
        waiting = _Waiting(
            prompt, policy_id, min_version, asyncio.get_running_loop().create_future()
        )
        if len(self._queue) >= self._limits.queue:
            batches = len(self._queue) / self._limits.batch
            raise Overloaded(
                f"{len(self._queue)} requests are waiting for the policy",
                retry_after_s=max(0.1, batches * self._batch_s),
            )
        self._queue.append(waiting)
        self._signal()
        try:
            return await waiting.future
        finally:
            if not waiting.future.done() or waiting.future.cancelled():
                with suppress(ValueError):
                    self._queue.remove(waiting)
                self._signal()

    async def update(self, update: Update) -> float:
        """Load weights between two batches, see `Engine.update`.

        `abort` ends the running batch; requests that still wait are answered by the new
        version, where that is good enough for them.
        """
        if update.transfer is not None:
            raise InvalidRequest(
                "this engine cannot receive weights by NCCL; send them by file, or run "
                "WMR1_POLICY_ENGINE=vllm on a GPU",
                field="nccl",
            )
        check_update(self.current, update.version)
        if update.abort and update.version != self.current:
            for waiting in self._running:
                _fail(waiting, replaced(update.version))
        async with self._idle:
            check_update(self.current, update.version)
            if update.version == self.current:
                return 0.0
            begin = time.perf_counter()
            # All of it on the model's thread, so that a caller who leaves cannot split it.
            await self._in_thread(lambda: self._load(update))
            return time.perf_counter() - begin

    def _load(self, update: Update) -> None:
        self._weights.load(update.data, update.probe)
        self._features.clear()
        self.current = update.version

    async def _run(self) -> None:
        while True:
            await self._arrived.wait()
            # Callers come in bursts: a short wait turns many small batches into one.
            with suppress(TimeoutError):
                await asyncio.wait_for(self._enough.wait(), self._limits.window_s)
            async with self._idle:
                batch = self._take()
                if batch:
                    await self._answer(batch)

    def _take(self) -> list[_Waiting]:
        """The longest head of the queue that fits a batch."""
        batch: list[_Waiting] = []
        longest = 0
        while self._queue and len(batch) < self._limits.batch:
            first = self._queue[0]
            longest = max(longest, first.prompt.tokens)
            if batch and longest * (len(batch) + 1) > self._limits.batch_tokens:
                break
            self._queue.popleft()
            try:
                # Once more: other weights may have been loaded while it waited.
                check_request(self.current, first.policy_id, first.min_version)
            except StalePolicyVersion as error:
                _fail(first, error)
            else:
                batch.append(first)
        self._signal()
        return batch

    async def _answer(self, batch: Sequence[_Waiting]) -> None:
        version, begin = self.current, time.perf_counter()
        meter = metrics.Meter(version)
        self._running = batch
        prompts = [waiting.prompt for waiting in batch]
        try:
            answers = await self._in_thread(
                lambda: generate(
                    self.loaded, prompts, self._features, lambda i: batch[i].gone, meter.prefilled
                )
            )
        except asyncio.CancelledError:
            for waiting in batch:
                _fail(waiting, EngineDown(_STOPPING))
            raise
        except Exception as error:  # whatever torch raises must not end the loop
            log.exception("batch failed", rows=len(batch))
            for waiting in batch:
                _fail(waiting, EngineDown(f"the model failed: {type(error).__name__}"))
            return
        finally:
            self._running = ()
        self._batch_s = time.perf_counter() - begin
        meter.company(len(batch))
        meter.batch(self._batch_s)
        for waiting, answer in zip(batch, answers, strict=True):
            meter.answer(len(answer.token_ids), waiting.arrived)
            if not answer.finite:
                _fail(waiting, EngineDown(f"version {version.version} gives logits that are NaN"))
            elif not waiting.future.done():
                waiting.future.set_result((answer, version))

    async def _in_thread(self, work: Callable[[], T]) -> T:
        """Run `work` on the model's thread, to its end even when the caller is cancelled."""
        running = asyncio.get_running_loop().run_in_executor(self._thread, work)
        try:
            return await asyncio.shield(running)
        except asyncio.CancelledError:
            await asyncio.wait([running])
            raise

    def _signal(self) -> None:
        waiting = len(self._queue)
        metrics.QUEUED.set(waiting)
        for event, least in ((self._arrived, 1), (self._enough, self._limits.batch)):
            if waiting >= least:
                event.set()
            else:
                event.clear()


def _use_threads(count: int) -> None:
    """Torch's thread count belongs to the thread that sets it; 0 leaves the default."""
    if count:
        torch.set_num_threads(count)


def _fail(waiting: _Waiting, error: Exception) -> None:
    if not waiting.future.done():
        waiting.future.set_exception(error)
