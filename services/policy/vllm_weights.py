"""Weights into vLLM's workers: by file or by NCCL, checked before and after, or not at all.

A document is checked against the model's names and shapes before a worker sees it, written
beside those of the version before, loaded, and scored by the canary; where that fails, the
version before is loaded again. The caller sees to it that no answer is being written.
"""

import itertools
import shutil
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import torch

from services.policy.canary import compare
from services.policy.engine import Prompt, Update
from services.policy.vllm_llm import last, prompt_for
from wmkit.domain.errors import BadCheckpoint, EngineDown, InvalidRequest
from wmkit.domain.generation import NcclTransfer, Sampling
from wmkit.modeling import Processor, load
from wmkit.modeling.adapters import is_adapter, merge
from wmkit.modeling.checkpoint import skeleton
from wmkit.modeling.probe import probe_prompt
from wmkit.modeling.weights import checked, own_tensors, parse, tensors_to_bytes


class VllmWeights:
    """`llm` is vLLM's AsyncLLM, set once it runs."""

    def __init__(self, processor: Processor, dtype: str, tolerance: float) -> None:
        self.llm: Any = None
        self._processor = processor
        self._dtype: torch.dtype = getattr(torch, dtype)
        self._tolerance = tolerance
        self._shapes = own_tensors(skeleton(processor, self._dtype))
        self._names = itertools.count()
        self._root = Path(tempfile.mkdtemp(prefix="wmr1-weights-"))
        self._loaded = processor.folder
        """Where the workers' weights can be read again."""
        self._group: tuple[str, int, int] | None = None

    @property
    def parameters(self) -> int:
        return sum(t.numel() for t in self._shapes.values())

    def close(self) -> None:
        shutil.rmtree(self._root, ignore_errors=True)

    def check(self, update: Update) -> None:
        """Raises InvalidRequest for a way of coming that this engine does not have, and
        BadCheckpoint for names and shapes of a broadcast that do not fit."""
        if update.transfer is None:
            return
        if self.llm.vllm_config.weight_transfer_config is None:
            raise InvalidRequest(
                "this engine was started without NCCL (WMR1_VLLM_NCCL=true on a GPU)", "nccl"
            )
        announced = {spec.name: spec.shape for spec in update.transfer.tensors}
        wanted = {name: tuple(t.shape) for name, t in self._shapes.items()}
        if announced != wanted:
            name = min(
                n for n in announced.keys() | wanted.keys() if announced.get(n) != wanted.get(n)
            )
            raise BadCheckpoint(
                f"the broadcast has {name} as {announced.get(name)}, the model {wanted.get(name)}"
            )

    async def load(self, data: bytes, probe: Sequence[float]) -> None:
        """Load a safetensors document; all or nothing. Raises BadCheckpoint."""
        folder = self._write(data)
        try:
            await self._reload(folder)
            await self._canary(probe)
        except BaseException:
            await self._reload(self._loaded)
            self._forget(folder)
            raise
        before, self._loaded = self._loaded, folder
        self._forget(before)

    async def receive(self, transfer: NcclTransfer, probe: Sequence[float]) -> None:
        """Load what the sender broadcasts, by vLLM's weight-transfer API.

        A broadcast that fails, or that the canary refuses, is followed by the last weights
        that came by file. Raises BadCheckpoint, EngineDown.
        """
        from vllm.distributed.weight_transfer.base import (
            WeightTransferInitRequest,
            WeightTransferUpdateRequest,
        )

        group = (transfer.address, transfer.port, transfer.world_size)
        await self.llm.pause_generation(mode="wait", clear_cache=True)
        try:
            if group != self._group:
                address, port, world_size = group
                info = {
                    "master_address": address,
                    "master_port": port,
                    "rank_offset": 1,
                    "world_size": world_size,
                }
                await self.llm.init_weight_transfer_engine(WeightTransferInitRequest(info))
                self._group = group
            await self.llm.start_weight_update()
            await self.llm.update_weights(
                WeightTransferUpdateRequest(
                    {
                        "names": [t.name for t in transfer.tensors],
                        "dtype_names": [t.dtype for t in transfer.tensors],
                        "shapes": [list(t.shape) for t in transfer.tensors],
                    }
                )
            )
            await self.llm.finish_weight_update()
            await self.llm.collective_rpc("refresh_head")
        except Exception as error:
            self._group = None
            await self.llm.resume_generation()
            await self._reload(self._loaded)
            raise EngineDown(f"the broadcast failed: {type(error).__name__}: {error}") from error
        await self.llm.resume_generation()
        await self._reset_caches()
        try:
            await self._canary(probe)
        except BadCheckpoint:
            await self._reload(self._loaded)
            raise

    def _write(self, data: bytes) -> Path:
        incoming, metadata = parse(data)
        if is_adapter(incoming):
            base = own_tensors(load(self._processor.folder, dtype=self._dtype).model)
            incoming = {**base, **merge(base, incoming, metadata)}
            data = tensors_to_bytes(checked(self._shapes, incoming))
        else:
            checked(self._shapes, incoming)
        folder = self._root / str(next(self._names))
        folder.mkdir()
        (folder / "model.safetensors").write_bytes(data)
        return folder

    def _forget(self, folder: Path) -> None:
        if folder != self._processor.folder:
            shutil.rmtree(folder, ignore_errors=True)

    async def _reload(self, folder: Path) -> None:
        await self.llm.pause_generation(mode="wait", clear_cache=True)
        try:
            await self.llm.collective_rpc("reload_weights", kwargs={"weights_path": str(folder)})
            await self.llm.collective_rpc("refresh_head")
        finally:
            await self.llm.resume_generation()
        await self._reset_caches()

    async def _reset_caches(self) -> None:
        """Keys, values and vision features of the old weights are worth nothing now."""
        await self.llm.reset_prefix_cache()
        await self.llm.reset_encoder_cache()

    async def _canary(self, probe: Sequence[float]) -> None:
        if probe:
            compare(await self.probe(), probe, self._tolerance)

    async def probe(self) -> list[float]:
        """The probe's log-probabilities under the loaded weights."""
        from vllm import SamplingParams

        ids, pictures, scored = probe_prompt(self._processor)
        shown = [self._processor.images.picture(picture) for picture in pictures]
        prompt = prompt_for(self._processor, Prompt(ids, pictures, Sampling(0.0, 1)), shown)
        parameters = SamplingParams(temperature=0.0, max_tokens=1, prompt_logprobs=0)
        out = await last(self.llm.generate(prompt, parameters, f"probe-{next(self._names)}"))
        rows = out.prompt_logprobs[-scored:]
        return [row[token].logprob for row, token in zip(rows, ids[-scored:], strict=True)]
