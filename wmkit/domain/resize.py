"""The size a picture has after a Qwen-VL processor's own resize.

Agents that write pixels mean pixels of *that* picture, so points are only right when this is.
Pure arithmetic: no picture is touched.
"""

import math
from dataclasses import dataclass

MAX_ASPECT_RATIO = 200


@dataclass(frozen=True, slots=True)
class ResizeRule:
    """What a checkpoint's processor is configured with; limits in pixels (width x height)."""

    factor: int
    min_pixels: int
    max_pixels: int

    def size(self, width_px: int, height_px: int) -> tuple[int, int]:
        """(width, height) after the resize; raises ValueError as `smart_resize` does."""
        return smart_resize(
            width_px,
            height_px,
            factor=self.factor,
            min_pixels=self.min_pixels,
            max_pixels=self.max_pixels,
        )


QWEN2_5_VL = ResizeRule(factor=28, min_pixels=3136, max_pixels=12845056)
"""The limits of the published Qwen2-VL and Qwen2.5-VL checkpoints."""
QWEN3_VL = ResizeRule(factor=32, min_pixels=65536, max_pixels=16777216)
"""The limits of the published Qwen3-VL checkpoints."""


def smart_resize(
    width_px: int, height_px: int, *, factor: int, min_pixels: int, max_pixels: int
) -> tuple[int, int]:
    """(width, height) as multiples of `factor`, near the given size and inside the limits.

    Each side is rounded half to even (720 / 32 = 22.5 gives 22 * 32 = 704), then shrunk or
    grown by a common beta where the area leaves [min_pixels, max_pixels]. The formula is that
    of the Qwen2-VL image processor. Raises ValueError for sides or limits that are not
    positive, and for an aspect ratio over 200.
    """
    if min(width_px, height_px, factor) <= 0:
        raise ValueError(f"sides and factor must be positive: {width_px}x{height_px}, {factor}")
    if not 0 < min_pixels <= max_pixels:
        raise ValueError(f"the limits {min_pixels}..{max_pixels} are no range of pixels")
    if max(width_px, height_px) > MAX_ASPECT_RATIO * min(width_px, height_px):
        raise ValueError(
            f"{width_px}x{height_px} has an aspect ratio over {MAX_ASPECT_RATIO}; such a"
            " picture cannot be resized"
        )
    sides = (width_px, height_px)
    width, height = (max(factor, round(side / factor) * factor) for side in sides)
    if width * height > max_pixels:
        beta = math.sqrt(width_px * height_px / max_pixels)
        width, height = (max(factor, math.floor(s / beta / factor) * factor) for s in sides)
    elif width * height < min_pixels:
        beta = math.sqrt(min_pixels / (width_px * height_px))
        width, height = (math.ceil(side * beta / factor) * factor for side in sides)
    return width, height
