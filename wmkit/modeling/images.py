"""Encoded pictures (PNG, JPEG, ...) to the patches that the vision tower reads.

Wraps the checkpoint's own image processor (PIL backend, so torchvision is not needed) and
remembers recent pictures. It does not run the model.
"""

import io
import threading
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from PIL import Image
from transformers import AutoImageProcessor

from wmkit.blobs import digest
from wmkit.domain.errors import BadCheckpoint, InvalidRequest
from wmkit.lru import Lru

MAX_SOURCE_PX = 64_000_000
"""Larger pictures are refused before they are decoded."""


@dataclass(frozen=True, slots=True, eq=False)
class EncodedPixels:
    """One picture as the model sees it.

    `pixel_values` is float32 [t * h * w, patch_dim] with grid_thw = (t, h, w) in patches;
    `tokens` is the number of placeholders that it takes in a prompt.
    """

    digest: str
    pixel_values: torch.Tensor
    grid_thw: tuple[int, int, int]
    width_px: int
    height_px: int
    tokens: int

    @property
    def nbytes(self) -> int:
        return self.pixel_values.numel() * self.pixel_values.element_size()


class ImageEncoder:
    """The image processor of the checkpoint in `folder`; safe to call from several threads.

    Raises BadCheckpoint when the folder describes no Qwen-VL image processor.
    """

    def __init__(self, folder: str | Path, *, cache_bytes: int = 256 << 20) -> None:
        try:
            self.processor: Any = AutoImageProcessor.from_pretrained(
                str(folder), backend="pil", local_files_only=True, trust_remote_code=False
            )
        except (OSError, ValueError) as error:
            raise BadCheckpoint(f"{folder} has no usable preprocessor_config.json") from error
        if not hasattr(self.processor, "merge_size"):
            raise BadCheckpoint(f"the image processor in {folder} is not one of the Qwen-VL kind")
        self.patch_size = int(self.processor.patch_size)
        self.merge_size = int(self.processor.merge_size)
        self._cache: Lru[str, EncodedPixels] = Lru(cache_bytes, lambda encoded: encoded.nbytes)
        self._lock = threading.Lock()

    @property
    def settings(self) -> dict[str, Any]:
        """Everything that changes pixel values; part of the processor digest."""
        processor = self.processor
        size = processor.size
        names = (
            "do_resize", "do_rescale", "rescale_factor", "do_normalize", "do_convert_rgb",
            "patch_size", "temporal_patch_size", "merge_size",
        )  # fmt: skip
        return {name: getattr(processor, name) for name in names} | {
            "resample": int(processor.resample),
            "image_mean": [float(v) for v in processor.image_mean],
            "image_std": [float(v) for v in processor.image_std],
            "min_pixels": int(size["shortest_edge"]),
            "max_pixels": int(size["longest_edge"]),
        }

    def cached(self, name: str) -> EncodedPixels | None:
        """The picture with digest `name` (of its encoded bytes), if it is remembered."""
        with self._lock:
            return self._cache.get(name)

    def encode(self, data: bytes) -> EncodedPixels:
        """Raises InvalidRequest when `data` is no picture or one of an impossible shape."""
        name = digest(data)
        found = self.cached(name)
        if found is not None:
            return found
        encoded = self._encode(data, name)
        with self._lock:
            self._cache[name] = encoded
        return encoded

    def picture(self, encoded: EncodedPixels) -> Image.Image:
        """The RGB picture of `width_px` x `height_px` that `encoded` was cut from, exactly.

        Encoding it again gives the same patches: engines with a processor of their own are
        given this one, so that they see what the trainer sees.
        """
        processor = self.processor
        t, h, w = encoded.grid_thw
        patch, merge = self.patch_size, self.merge_size
        blocks = encoded.pixel_values.reshape(
            t, h // merge, w // merge, merge, merge, 3, -1, patch, patch
        )[0, ..., 0, :, :]
        # (block row, block column, row in it, column in it, channel, y, x)
        values = blocks.permute(0, 2, 5, 1, 3, 6, 4).reshape(h * patch, w * patch, 3)
        if processor.do_normalize:
            values = values * torch.tensor(processor.image_std) + torch.tensor(processor.image_mean)
        if processor.do_rescale:
            values = values / processor.rescale_factor
        return Image.fromarray(values.round().clamp(0, 255).to(torch.uint8).numpy())

    def _encode(self, data: bytes, name: str) -> EncodedPixels:
        try:
            with Image.open(io.BytesIO(data)) as source:
                if source.width * source.height > MAX_SOURCE_PX:
                    raise InvalidRequest(
                        f"a picture of {source.width} x {source.height} pixels is too large"
                    )
                picture = source.convert("RGB")
        except (OSError, SyntaxError, ValueError, Image.DecompressionBombError) as error:
            raise InvalidRequest("the picture cannot be read; send PNG or JPEG") from error
        try:
            out = self.processor(images=[picture], return_tensors="pt")
        except ValueError as error:
            raise InvalidRequest(f"the picture does not fit the model: {error}") from error
        t, h, w = (int(v) for v in out["image_grid_thw"][0])
        return EncodedPixels(
            digest=name,
            pixel_values=out["pixel_values"].to(torch.float32).contiguous(),
            grid_thw=(t, h, w),
            width_px=w * self.patch_size,
            height_px=h * self.patch_size,
            tokens=t * h * w // self.merge_size**2,
        )
