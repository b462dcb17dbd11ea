"""Vision features of recent pictures under the loaded weights; cleared when those change."""

from typing import Any

import torch

from services.policy.metrics import PICTURES
from wmkit.lru import Lru
from wmkit.modeling import Batch
from wmkit.modeling.forward import Features, encode_images


class FeatureCache:
    """Least recently used features by picture digest, at most `max_bytes` of them."""

    def __init__(self, max_bytes: int) -> None:
        self._features: Lru[str, Features] = Lru(max_bytes, lambda features: features.nbytes)

    def clear(self) -> None:
        self._features.clear()

    def of(self, model: Any, batch: Batch) -> list[Features]:
        """Features of the distinct pictures of `batch`, in order; unknown ones are encoded."""
        unknown = [image for image in batch.images if image.digest not in self._features]
        PICTURES.labels("hit").inc(len(batch.images) - len(unknown))
        PICTURES.labels("miss").inc(len(unknown))
        fresh: dict[str, Features] = {}
        if unknown:
            device = batch.input_ids.device
            pixels = torch.cat([image.pixel_values for image in unknown]).to(device)
            grids = torch.tensor([image.grid_thw for image in unknown], device=device)
            encoded = encode_images(model, pixels, grids)
            fresh = {image.digest: f for image, f in zip(unknown, encoded, strict=True)}
        out = [fresh.get(i.digest) or self._features[i.digest] for i in batch.images]
        for image, features in zip(batch.images, out, strict=True):
            if image.digest in fresh:
                self._features[image.digest] = _own(features)
        return out


def _own(features: Features) -> Features:
    """A slice of the batch's features would keep all of them alive."""
    return Features(features.tokens.clone(), tuple(d.clone() for d in features.deepstack))
