"""The engine `vllm`: vLLM's own batching, paged cache and prefix cache, in processes of its own.

Requests are let in through a gate, so that one answer is always of one version: an update
closes the gate, waits for (or ends) what runs, loads, resets the caches and opens it again.
"""

import asyncio
import itertools
import time
from typing import Any

import structlog

from services.policy import metrics
from services.policy.engine import Answer, Prompt, Update, check_room
from services.policy.gate import Gate
from services.policy.versions import Version, check_request, check_update, replaced
from services.policy.vllm_llm import (
    Options,
    Pictures,
    answer_of,
    context_of,
    last,
    open_llm,
    parameters_for,
    prompt_for,
)
from services.policy.vllm_weights import VllmWeights
from wmkit.domain.errors import EngineDown, WMError
from wmkit.modeling import Processor

log = structlog.get_logger(__name__)

_Task = asyncio.Task[tuple[Answer, float | None]]


class VllmEngine:
    """An `Engine`. `queue` bounds the requests that wait; `tolerance` is the canary's, in nats."""

    name = "vllm"

    def __init__(
        self,
        processor: Processor,
        options: Options,
        *,
        queue: int = 1024,
        tolerance: float = 0.05,
    ) -> None:
        self.processor = processor
        self.current = Version()
        self._options = options
        self._gate = Gate(options.max_batch, queue)
        self._weights = VllmWeights(processor, options.dtype, tolerance)
        self._pictures = Pictures(processor)
        self._order = asyncio.Lock()
        self._names = itertools.count()
        self._running: set[_Task] = set()
        self._ended: dict[_Task, Version] = {}
        self._llm: Any = None

    @property
    def queued(self) -> int:
        return self._gate.waiting

    @property
    def device(self) -> str:
        return str(self._llm.vllm_config.device_config.device_type)

    @property
    def parameters(self) -> int:
        return self._weights.parameters

    async def start(self, adapter: bytes = b"") -> None:
        self._llm = open_llm(self.processor, self._options)
        self._weights.llm = self._llm
        if adapter:
            await self._weights.load(adapter, ())

    async def close(self) -> None:
        for task in self._running:
            task.cancel()
        if self._llm is not None:
            await asyncio.to_thread(self._llm.shutdown)
        self._weights.close()

    async def generate(
        self, prompt: Prompt, policy_id: str = "", min_version: int = 0
    ) -> tuple[Answer, Version]:
        check_room(prompt, context_of(self.processor, self._options))
        check_request(self.current, policy_id, min_version)
        arrived = time.perf_counter()
        async with self._gate.place():
            # Once more: other weights may have been loaded while it waited.
            check_request(self.current, policy_id, min_version)
            version, meter = self.current, metrics.Meter(self.current)
            task = asyncio.create_task(self._answer(prompt))
            self._running.add(task)
            meter.company(len(self._running))
            try:
                answer, first_s = await task
            except asyncio.CancelledError:
                if task in self._ended:
                    raise replaced(self._ended.pop(task)) from None
                raise
            finally:
                self._running.discard(task)
                taken_s = time.perf_counter() - arrived
                self._gate.hold_s += 0.1 * (taken_s - self._gate.hold_s)
        meter.answer(len(answer.token_ids), arrived, first_s)
        if not answer.finite:
            raise EngineDown(f"version {version.version} gives logits that are NaN")
        return answer, version

    async def update(self, update: Update) -> float:
        # To its end even when the caller leaves: half a model answers nobody.
        return await asyncio.shield(asyncio.create_task(self._update(update)))

    async def _update(self, update: Update) -> float:
        async with self._order:
            check_update(self.current, update.version)
            if update.version == self.current:
                return 0.0
            self._weights.check(update)
            if update.abort:
                for task in self._running:
                    self._ended[task] = update.version
                    task.cancel()
            async with self._gate.alone():
                self._ended.clear()
                begin = time.perf_counter()
                try:
                    await self._load(update)
                except WMError:
                    raise
                except Exception as error:
                    log.exception("vLLM failed to load weights")
                    raise EngineDown(f"vLLM could not load: {type(error).__name__}") from error
                return time.perf_counter() - begin

    async def _load(self, update: Update) -> None:
        if update.transfer is not None:
            await self._weights.receive(update.transfer, update.probe)
        else:
            await self._weights.load(update.data, update.probe)
        self.current = update.version

    async def _answer(self, prompt: Prompt) -> tuple[Answer, float | None]:
        """The answer, and the seconds to its first token where vLLM says so."""
        data = prompt_for(self.processor, prompt, await self._pictures.of(prompt.images))
        parameters = parameters_for(self.processor, prompt.sampling)
        try:
            out = await last(self._llm.generate(data, parameters, f"wmr1-{next(self._names)}"))
        except Exception as error:
            log.exception("vLLM failed")
            raise EngineDown(f"the model failed: {type(error).__name__}") from error
        if out is None or not out.finished:
            raise EngineDown("vLLM ended without an answer")
        if out.prompt_token_ids != prompt.ids:
            # What the trainer would build is not what was sampled from.
            raise EngineDown("vLLM expands this prompt in another way than the trainer")
        (completion,) = out.outputs
        ids = list(completion.token_ids)
        logprobs = [row[token].logprob for row, token in zip(completion.logprobs, ids, strict=True)]
        answer = answer_of(self.processor, prompt.sampling, ids, logprobs)
        return answer, out.metrics.first_token_latency if out.metrics else None
