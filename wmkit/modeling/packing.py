"""Sequences of token ids with pictures to one padded batch of tensors.

Positions are those of the model's `get_rope_index`, computed without its per-token loops.
The model itself is run by `wmkit.modeling.forward`.
"""

from collections.abc import Sequence
from dataclasses import dataclass, fields, replace
from functools import lru_cache
from typing import Any, Literal

import numpy as np
import torch
from numpy.typing import NDArray

from wmkit.modeling.images import EncodedPixels

PadSide = Literal["left", "right"]
Grid = tuple[int, int, int]


@dataclass(frozen=True, slots=True, eq=False)
class Batch:
    """B sequences padded to L tokens. Each distinct picture is held (and encoded) once.

    `images` are the U distinct pictures; `image_index` int64 [N] names the picture of each of
    the N placeholder runs, row by row.
    """

    input_ids: torch.Tensor
    """int64 [B, L]"""
    attention_mask: torch.Tensor
    """int64 [B, L], 1 where there is a token."""
    position_ids: torch.Tensor
    """int64 [3, B, L]: time, height, width; 0 on padding."""
    mm_token_type_ids: torch.Tensor
    """int32 [B, L], 1 on image placeholders."""
    next_position: torch.Tensor
    """int64 [B]: rope position of the token after each sequence."""
    images: tuple[EncodedPixels, ...]
    image_index: torch.Tensor

    @property
    def pixel_values(self) -> torch.Tensor | None:
        """float32 [patches, patch_dim] of the distinct pictures."""
        if not self.images:
            return None
        pixels = torch.cat([image.pixel_values for image in self.images])
        return pixels.to(self.input_ids.device)

    @property
    def image_grid_thw(self) -> torch.Tensor | None:
        """int64 [U, 3] of the distinct pictures."""
        if not self.images:
            return None
        grids = [image.grid_thw for image in self.images]
        return torch.tensor(grids, device=self.input_ids.device)

    @property
    def image_tokens(self) -> torch.Tensor:
        """bool [B, L]: where pictures go."""
        return self.mm_token_type_ids == 1

    def to(self, device: torch.device | str) -> "Batch":
        moved: dict[str, Any] = {
            f.name: value.to(device)
            for f in fields(self)
            if isinstance(value := getattr(self, f.name), torch.Tensor)
        }
        return replace(self, **moved)


def pack(
    sequences: Sequence[Sequence[int]],
    images_per_sequence: Sequence[Sequence[EncodedPixels]],
    *,
    pad_side: PadSide,
    pad_id: int,
    image_id: int,
    merge_size: int,
    names: Sequence[str] = (),
) -> Batch:
    """One batch of `sequences`, each with its pictures in the order of their placeholders.

    Raises ValueError, naming the sample (`names[i]`, or its index), when placeholders and
    grids do not agree or a sequence is empty.
    """
    if len(sequences) != len(images_per_sequence):
        raise ValueError(f"{len(sequences)} sequences but pictures for {len(images_per_sequence)}")
    if not sequences:
        raise ValueError("an empty batch")
    length = max(len(sequence) for sequence in sequences)
    rows = len(sequences)
    ids = np.full((rows, length), pad_id, dtype=np.int64)
    mask = np.zeros((rows, length), dtype=np.int64)
    types = np.zeros((rows, length), dtype=np.int32)
    positions = np.zeros((3, rows, length), dtype=np.int64)
    following = np.zeros(rows, dtype=np.int64)
    distinct: dict[str, tuple[int, EncodedPixels]] = {}
    index: list[int] = []
    for row, (sequence, images) in enumerate(zip(sequences, images_per_sequence, strict=True)):
        name = names[row] if names else f"sample {row}"
        if not len(sequence):
            raise ValueError(f"{name}: an empty sequence")
        values = np.asarray(sequence, dtype=np.int64)
        grids = [image.grid_thw for image in images]
        try:
            place, following[row] = rope_positions(values == image_id, grids, merge_size)
        except ValueError as error:
            raise ValueError(f"{name}: {error}") from error
        start = length - len(sequence) if pad_side == "left" else 0
        span = slice(start, start + len(sequence))
        ids[row, span] = values
        mask[row, span] = 1
        types[row, span] = values == image_id
        positions[:, row, span] = place
        for image in images:
            index.append(distinct.setdefault(image.digest, (len(distinct), image))[0])
    return Batch(
        input_ids=torch.from_numpy(ids),
        attention_mask=torch.from_numpy(mask),
        position_ids=torch.from_numpy(positions),
        mm_token_type_ids=torch.from_numpy(types),
        next_position=torch.from_numpy(following),
        images=tuple(image for _, image in distinct.values()),
        image_index=torch.tensor(index, dtype=torch.int64),
    )


def rope_positions(
    is_image: NDArray[np.bool_], grids: Sequence[Grid], merge_size: int
) -> tuple[NDArray[np.int64], int]:
    """Multimodal rope positions int64 [3, L] of one sequence, and the next free position.

    Text advances by one on all three axes; a picture occupies a (t, h, w) box of merged
    patches and advances by the longer of its sides (Qwen2-VL, section "M-RoPE"). Raises
    ValueError when the placeholder runs are not exactly the grids' token counts.
    """
    where = np.flatnonzero(is_image)
    counts = [t * h * w // merge_size**2 for t, h, w in grids]
    if sum(counts) != len(where):
        raise ValueError(
            f"{len(where)} image placeholders, but its {len(grids)} pictures take {sum(counts)}"
        )
    out = np.empty((3, len(is_image)), dtype=np.int64)
    here, position, used = 0, 0, 0
    for grid, count in zip(grids, counts, strict=True):
        start = int(where[used])
        if where[used + count - 1] != start + count - 1:
            raise ValueError(f"the placeholders at {start} are fewer than a grid {grid} takes")
        out[:, here:start] = np.arange(position, position + start - here)
        position += start - here
        out[:, start : start + count] = _box(grid, merge_size) + position
        position += max(grid[1], grid[2]) // merge_size
        here, used = start + count, used + count
    out[:, here:] = np.arange(position, position + len(is_image) - here)
    return out, position + len(is_image) - here


@lru_cache(maxsize=256)
def _box(grid: Grid, merge_size: int) -> NDArray[np.int64]:
    t, h, w = grid[0], grid[1] // merge_size, grid[2] // merge_size
    return np.indices((t, h, w)).reshape(3, -1)
