"""Pictures to patches: sizes, pixel values, the memory of recent pictures, bad input."""

import io
from pathlib import Path

import numpy as np
import pytest
import torch
from PIL import Image

from tests import tiny_checkpoints
from wmkit.blobs import digest
from wmkit.domain.errors import InvalidRequest
from wmkit.modeling import ImageEncoder


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tiny_checkpoints.make(tmp_path_factory.mktemp("tiny"), "qwen3")


def encoded(picture: Image.Image, kind: str = "PNG") -> bytes:
    out = io.BytesIO()
    picture.save(out, kind)
    return out.getvalue()


def test_patches_are_the_pixels_scaled_to_one(folder: Path) -> None:
    """With mean and deviation 0.5, a pixel v becomes 2 v / 255 - 1; here nothing is resized."""
    values = np.random.default_rng(0).integers(0, 256, (64, 96, 3), dtype=np.uint8)
    out = ImageEncoder(folder).encode(encoded(Image.fromarray(values)))
    assert (out.width_px, out.height_px, out.grid_thw, out.tokens) == (96, 64, (1, 4, 6), 6)
    assert out.pixel_values.shape == (24, 3 * 2 * 16 * 16)
    # The second patch lies right of the first, the third below it: 2 x 2 patches merge to one.
    for index, (row, column) in enumerate([(0, 0), (0, 1), (1, 0), (1, 1), (0, 2)]):
        block = values[16 * row : 16 * row + 16, 16 * column : 16 * column + 16]
        expected = np.repeat((block / 127.5 - 1).transpose(2, 0, 1)[:, None], 2, axis=1)
        np.testing.assert_allclose(out.pixel_values[index].numpy(), expected.ravel(), atol=1e-6)


@pytest.mark.parametrize(("width", "height"), [(30, 40), (1080, 2400), (2400, 1080), (128, 320)])
def test_sizes_stay_inside_the_checkpoints_limits(folder: Path, width: int, height: int) -> None:
    out = ImageEncoder(folder).encode(encoded(Image.new("RGB", (width, height))))
    assert out.width_px % 32 == out.height_px % 32 == 0
    assert 32 * 32 <= out.width_px * out.height_px <= 16 * 32 * 32
    assert out.tokens == out.width_px * out.height_px // (32 * 32)
    assert abs(out.height_px / height - out.width_px / width) < 0.5


@pytest.mark.parametrize("mode", ["L", "P", "RGBA", "CMYK", "1"])
def test_every_colour_mode_is_read(folder: Path, mode: str) -> None:
    kind = "JPEG" if mode == "CMYK" else "PNG"
    out = ImageEncoder(folder).encode(encoded(Image.new(mode, (64, 64)), kind))
    assert out.grid_thw == (1, 4, 4)


def test_recent_pictures_are_remembered_by_digest(folder: Path) -> None:
    first, second = tiny_checkpoints.png(1), tiny_checkpoints.png(2)
    encoder = ImageEncoder(folder, cache_bytes=ImageEncoder(folder).encode(first).nbytes)
    kept = encoder.encode(first)
    assert kept.digest == digest(first)
    assert encoder.encode(first) is kept is encoder.cached(digest(first))
    encoder.encode(second)
    assert encoder.cached(digest(first)) is None
    assert encoder.cached(digest(second)) is not None


@pytest.mark.parametrize(
    ("data", "sentence"),
    [
        (b"", "cannot be read"),
        (b"<html>", "cannot be read"),
        (tiny_checkpoints.png()[:-200], "cannot be read"),
        (encoded(Image.new("1", (9000, 9000))), "9000 x 9000 pixels is too large"),
        (encoded(Image.new("L", (2010, 10))), "does not fit the model: absolute aspect ratio"),
    ],
)
def test_a_picture_that_is_none_is_the_callers_mistake(
    folder: Path, data: bytes, sentence: str
) -> None:
    with pytest.raises(InvalidRequest, match=sentence):
        ImageEncoder(folder).encode(data)


@pytest.mark.parametrize("size", [(96, 160), (37, 211), (700, 300), (20, 20)])
def test_patches_give_back_the_picture_that_they_were_cut_from(
    folder: Path, size: tuple[int, int]
) -> None:
    """Encoding that picture again is the identity, so another processor sees the same pixels."""
    encoder = ImageEncoder(folder)
    first = encoder.encode(tiny_checkpoints.png(3, *size))
    picture = encoder.picture(first)
    assert picture.size == (first.width_px, first.height_px)
    again = encoder.encode(encoded(picture))
    assert again.grid_thw == first.grid_thw
    assert torch.equal(again.pixel_values, first.pixel_values)
