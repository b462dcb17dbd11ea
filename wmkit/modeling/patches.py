"""A faster patch embedding with the same parameters and results.

The vision towers embed patches with a Conv3d whose kernel is the whole input: a matrix
product. As a convolution it takes half of a small vision tower's time on a CPU.
"""

from typing import Any

import torch
from torch import nn
from torch.nn import functional as F


class PatchProjection(nn.Module):
    """Takes the place of `nn.Conv3d` on inputs of exactly one kernel; parameters keep names."""

    def __init__(self, convolution: nn.Conv3d) -> None:
        super().__init__()
        self.weight = convolution.weight
        self.bias = convolution.bias

    def forward(self, patches: torch.Tensor) -> torch.Tensor:
        """[n, channels, t, h, w] to [n, features]."""
        return F.linear(patches.flatten(1), self.weight.flatten(1), self.bias)


def use_linear_patches(model: Any) -> None:
    """Replace the patch convolution of a Qwen-VL `model` in place."""
    embedding = model.model.visual.patch_embed
    embedding.proj = PatchProjection(embedding.proj)
