"""One model behind a bounded queue: batches, weight updates between them, policy versions.

The event loop stays free: all torch work runs in one thread of its own. Knows neither gRPC
nor Redis; `services.policy.updates` keeps what was published.
"""

import asyncio
import time
from collections import deque
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass
from typing import TypeVar

import structlog
import torch

from services.policy import metrics
from services.policy.decoding import Answer, Prompt, generate
from services.policy.features import FeatureCache
from wmkit.domain.errors import EngineDown, InvalidRequest, Overloaded, StalePolicyVersion
from wmkit.modeling import Loaded, load_weights

log = structlog.get_logger(__name__)

T = TypeVar("T")

_STOPPING = "the policy service is stopping"


@dataclass(frozen=True, slots=True)
class Version:
    """The weights that are loaded. `digest` is "" for those of the checkpoint folder."""

    policy_id: str = ""
    version: int = 0
    digest: str = ""


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
    gone: bool = False
    """Its caller gave up; read by the model's thread."""

    @property
    def tokens(self) -> int:
        return len(self.prompt.ids) + self.prompt.sampling.max_new_tokens


class Engine:
    """Runs between `start` and `close`; its methods belong to the event loop's thread.

    `threads` is torch's thread count for the model, 0 the library's default.
    """

    def __init__(
        self,
        loaded: Loaded,
        limits: Limits | None = None,
        *,
        feature_bytes: int = 256 << 20,
        threads: int = 0,
    ) -> None:
        self.loaded = loaded
        self.current = Version()
        self._limits = limits or Limits()
        self._features = FeatureCache(feature_bytes)
        self._queue: deque[_Waiting] = deque()
        self._arrived, self._enough = asyncio.Event(), asyncio.Event()
        self._idle = asyncio.Lock()
        self._batch_s = 0.1
        self._thread = ThreadPoolExecutor(1, "model", initializer=_use_threads, initargs=(threads,))
        self._loop_task: asyncio.Task[None] | None = None

    async def start(self) -> None:
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
    def queued(self) -> int:
        return len(self._queue)

    async def generate(
        self, prompt: Prompt, policy_id: str = "", min_version: int = 0
    ) -> tuple[Answer, Version]:
        """The answer to `prompt`, and the version that gave it.

        Raises StalePolicyVersion when the loaded weights belong to another policy or are
        older than `min_version`, InvalidRequest when the prompt leaves no room for the
        answer, Overloaded when the queue is full, EngineDown when the model fails.
        """
        waiting = _Waiting(
            prompt, policy_id, min_version, asyncio.get_running_loop().create_future()
        )
        if waiting.tokens > self.loaded.context:
            raise InvalidRequest(
                f"a prompt of {len(prompt.ids)} tokens and {prompt.sampling.max_new_tokens} new "
                f"ones exceed the model's context of {self.loaded.context}",
                field="sampling.max_new_tokens",
            )
        self._check_version(waiting)
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
            waiting.gone = True
            if not waiting.future.done() or waiting.future.cancelled():
                with suppress(ValueError):
                    self._queue.remove(waiting)
                self._signal()

    async def update(self, new: Version, weights: bytes) -> float:
        """Load `weights` as `new` between two batches; returns the seconds that loading took.

        Repeating the loaded version changes nothing. Raises StalePolicyVersion for a version
        that is not above the loaded one of the same policy, InvalidRequest for the same
        version with other weights, BadCheckpoint for weights that do not fit; the loaded
        weights then stay.
        """
        async with self._idle:
            self.check_update(new)
            if new == self.current:
                return 0.0
            begin = time.perf_counter()
            # All of it on the model's thread, so that a caller who leaves cannot split it.
            await self._in_thread(lambda: self._load(new, weights))
            seconds = time.perf_counter() - begin
        metrics.VERSION.set(new.version)
        log.info("weights loaded", policy_id=new.policy_id, version=new.version, s=seconds)
        return seconds

    def check_update(self, new: Version) -> None:
        """Raise the version errors of `update`."""
        now = self.current
        if new == now or new.policy_id != now.policy_id:
            return
        if new.version == now.version:
            raise InvalidRequest(
                f"version {new.version} of {new.policy_id!r} is loaded with other weights",
                field="weights_digest",
            )
        if new.version < now.version:
            raise StalePolicyVersion(
                f"version {new.version} of {new.policy_id!r} is older than the loaded {now.version}"
            )

    def _load(self, new: Version, weights: bytes) -> None:
        load_weights(self.loaded.model, weights)
        self._features.clear()
        self.current = new

    def _check_version(self, waiting: _Waiting) -> None:
        now = self.current
        if waiting.policy_id not in ("", now.policy_id):
            loaded = f"policy {now.policy_id!r}" if now.policy_id else "the checkpoint's own policy"
            raise StalePolicyVersion(f"policy {waiting.policy_id!r} is not loaded, but {loaded}")
        if waiting.min_version > now.version:
            raise StalePolicyVersion(
                f"version {waiting.min_version} is not loaded yet, only {now.version}"
            )

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
            longest = max(longest, first.tokens)
            if batch and longest * (len(batch) + 1) > self._limits.batch_tokens:
                break
            self._queue.popleft()
            try:
                # Once more: other weights may have been loaded while it waited.
                self._check_version(first)
            except StalePolicyVersion as error:
                _fail(first, error)
            else:
                batch.append(first)
        self._signal()
        return batch

    async def _answer(self, batch: Sequence[_Waiting]) -> None:
        version, begin = self.current, time.perf_counter()
        prompts = [waiting.prompt for waiting in batch]
        try:
            answers = await self._in_thread(
                lambda: generate(self.loaded, prompts, self._features, lambda i: batch[i].gone)
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
        self._batch_s = time.perf_counter() - begin
        metrics.BATCH_SECONDS.observe(self._batch_s)
        metrics.BATCH_ROWS.observe(len(batch))
        for waiting, answer in zip(batch, answers, strict=True):
            metrics.TOKENS.inc(len(answer.token_ids))
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
