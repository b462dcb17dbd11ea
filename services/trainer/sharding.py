"""One model over all processes of a world: FSDP2 (`torch.distributed.fsdp.fully_shard`).

Each process holds a slice of every parameter and gathers a layer while it computes with it.
Weights stay float32; with bfloat16 they are gathered, and computed with, in that type, and
gradients are summed in float32.
"""

from dataclasses import replace
from typing import Any, cast

import torch
from torch import Tensor, nn
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.fsdp import FSDPModule, MixedPrecisionPolicy, fully_shard
from torch.distributed.tensor import DTensor

from services.trainer.world import World
from wmkit.modeling import Batch, EncodedPixels, forward_logprobs


class Scorer(nn.Module):
    """`forward_logprobs` as a module: FSDP gathers parameters where a module's forward begins."""

    def __init__(self, model: Any, *, everywhere: bool) -> None:
        super().__init__()
        self.model = model
        self._everywhere = everywhere

    def forward(self, batch: Batch, select: Tensor, temperature: float) -> Tensor:
        """Log-probabilities float32 [n] of the selected tokens.

        `everywhere`: the vision tower runs even without a picture (on a blank one that counts
        zero times), since in a sharded model every process must pass through every layer.
        """
        if self._everywhere and not batch.images:
            batch = replace(batch, images=(self._blank(),))
        return forward_logprobs(self.model, batch, select, temperature)

    def _blank(self) -> EncodedPixels:
        vision = self.model.config.vision_config
        side, patch = vision.spatial_merge_size, vision.patch_size
        values = vision.in_channels * vision.temporal_patch_size * patch**2
        pixels = torch.zeros(side * side, values)
        return EncodedPixels("", pixels, (1, side, side), side * patch, side * patch, 1)


def shard(scorer: Scorer, world: World, device: str, dtype: torch.dtype) -> None:
    """Shard in place: every layer of both towers is a unit, and the rest is the root's.

    The gradient is the *sum* over processes: weights of samples are global already.
    """
    mesh = init_device_mesh(torch.device(device).type, (world.size,))
    policy = MixedPrecisionPolicy(param_dtype=dtype, reduce_dtype=torch.float32)
    model = scorer.model.model
    for unit in (*model.visual.blocks, *model.language_model.layers, scorer):
        cast(Any, fully_shard)(unit, mesh=mesh, mp_policy=policy)
    for module in scorer.modules():
        if isinstance(module, FSDPModule):
            module.set_gradient_divide_factor(1.0)
            module.set_force_sum_reduction_for_comms(True)  # gloo knows sums only


def whole(tensor: Tensor) -> Tensor:
    """The full tensor behind a shard. With several processes all of them must ask."""
    return tensor.full_tensor() if isinstance(tensor, DTensor) else tensor
