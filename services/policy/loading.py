"""Weights into the model of this process: whole or as an adapter, checked, or not at all.

Synchronous; the engine calls it on the model's thread while nothing else runs.
"""

from collections.abc import Mapping, Sequence

import torch

from services.policy.canary import compare
from wmkit.modeling import Loaded, load
from wmkit.modeling.adapters import is_adapter, merge
from wmkit.modeling.probe import probe_logprobs
from wmkit.modeling.weights import checked, own_tensors, parse


class Weights:
    """The weights of `loaded`, and those of the checkpoint folder where an adapter needs them."""

    def __init__(self, loaded: Loaded, tolerance: float) -> None:
        self._loaded = loaded
        self._tolerance = tolerance
        self._base: dict[str, torch.Tensor] = {}
        """Tensors of the checkpoint that adapters have replaced."""
        self._foreign = False
        """A whole model was loaded over the checkpoint's own weights."""

    @torch.no_grad()
    def load(self, data: bytes, probe: Sequence[float]) -> None:
        """Load a safetensors document; all or nothing.

        Raises BadCheckpoint, with the model as it was, for a document that does not fit, holds
        values that are not finite, or gives other `probe` log-probabilities than its sender's.
        """
        incoming, metadata = parse(data)
        mine = own_tensors(self._loaded.model)
        adapter = is_adapter(incoming)
        kept: dict[str, torch.Tensor] = {}
        if adapter:
            base = self._checkpoint(mine)
            merged = merge(base, incoming, metadata)
            # What was replaced before and is not now goes back to the checkpoint's own.
            incoming = {**(base if self._foreign else self._base), **merged}
            kept = {name: base[name] for name in merged}
            kept = {name: t if name in self._base else t.clone() for name, t in kept.items()}
        ready = checked(mine, incoming, partly=adapter)
        self._exchange(mine, ready, probe)
        # Tensors that are the checkpoint's own again need no copy.
        self._base, self._foreign = kept, not adapter

    def _checkpoint(self, mine: Mapping[str, torch.Tensor]) -> Mapping[str, torch.Tensor]:
        """The checkpoint's own tensors; read from disk only where memory lost them."""
        if self._foreign:
            fresh = load(self._loaded.folder, dtype=self._loaded.model.dtype)
            return own_tensors(fresh.model)
        return {**mine, **self._base}

    def _exchange(
        self,
        mine: Mapping[str, torch.Tensor],
        ready: Mapping[str, torch.Tensor],
        probe: Sequence[float],
    ) -> None:
        before = {name: mine[name].clone() for name in ready} if probe else {}
        _copy(mine, ready)
        if not probe:
            return
        try:
            compare(probe_logprobs(self._loaded), probe, self._tolerance)
        except BaseException:
            _copy(mine, before)
            raise


def _copy(targets: Mapping[str, torch.Tensor], values: Mapping[str, torch.Tensor]) -> None:
    for name, value in values.items():
        targets[name].copy_(value)
