"""Weights by NCCL into the engine `vllm`: two GPUs, one for the sender and one for the engine.

Written against vLLM's documented interface. No machine without GPUs can run it.
"""

import asyncio
from collections.abc import Mapping
from functools import partial
from pathlib import Path
from typing import Any

import pytest
import torch

from services.policy.engine import Prompt, Update
from services.policy.versions import Version
from services.policy.vllm_engine import VllmEngine
from services.policy.vllm_llm import Options
from tests import tiny_checkpoints
from tests.processes import free_port
from wmkit.domain.errors import BadCheckpoint
from wmkit.domain.generation import NcclTransfer, Sampling, TensorSpec, Text, Turn
from wmkit.modeling import Loaded, load, load_processor, probe_logprobs
from wmkit.modeling.weights import own_tensors

pytestmark = [pytest.mark.gpu, pytest.mark.slow]


def transfer(model: Loaded, port: int) -> NcclTransfer:
    specs = tuple(
        TensorSpec(name, str(t.dtype).removeprefix("torch."), tuple(t.shape))
        for name, t in own_tensors(model.model).items()
    )
    return NcclTransfer("127.0.0.1", port, 2, specs)


def broadcast(tensors: Mapping[str, torch.Tensor], group: Any) -> None:
    for tensor in tensors.values():
        group.broadcast(tensor.cuda(1), src=0, stream=torch.cuda.current_stream(1))
    torch.cuda.synchronize(1)


@pytest.mark.skipif(torch.cuda.device_count() < 2, reason="needs two CUDA devices")
async def test_a_broadcast_replaces_the_weights_and_the_canary_watches(tmp_path: Path) -> None:
    from vllm.distributed.weight_transfer.nccl_common import stateless_init_process_group

    models = [load(tiny_checkpoints.make(tmp_path / str(i), seed=i, head_dim=32)) for i in range(2)]
    engine = VllmEngine(load_processor(models[0].folder), Options(nccl=True))
    await engine.start()
    try:
        ids = models[0].chat.encode([Turn("user", (Text("go"),))], [])
        prompt, port = Prompt(ids, [], Sampling(0.0, 16)), free_port()
        before, _ = await engine.generate(prompt)

        groups: list[Any] = []

        async def send(version: int, model: Loaded, probe: list[float]) -> None:
            announced = transfer(model, port)
            update = Update(Version("run", version, "nccl"), transfer=announced, probe=probe)
            loading = asyncio.create_task(engine.update(update))
            if not groups:
                device = torch.device("cuda:1")
                join = partial(stateless_init_process_group, "127.0.0.1", port, 0, 2, device)
                groups.append(await asyncio.to_thread(join))
            await asyncio.to_thread(broadcast, own_tensors(model.model), groups[0])
            await loading

        await send(1, models[1], probe_logprobs(models[1]))
        after, version = await engine.generate(prompt)
        assert version == Version("run", 1, "nccl")
        assert after.token_ids != before.token_ids
        with pytest.raises(BadCheckpoint, match="score the probe"):
            await send(2, models[0], probe_logprobs(models[1]))
        # The last weights that came by file: those of the checkpoint.
        assert (await engine.generate(prompt))[0].token_ids == before.token_ids
    finally:
        await engine.close()
