"""smart_resize against values that were checked on the published processors."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from wmkit.domain.resize import QWEN2_5_VL, QWEN3_VL, smart_resize


@pytest.mark.parametrize(
    ("max_pixels", "expected"),
    [
        (12845056, (1092, 2408)),
        (4194304, (1092, 2408)),
        (2116800, (952, 2156)),
        (1003520, (672, 1484)),
    ],
)
def test_a_phone_at_factor_28(max_pixels: int, expected: tuple[int, int]) -> None:
    got = smart_resize(1080, 2400, factor=28, min_pixels=3136, max_pixels=max_pixels)
    assert got == expected


def test_the_checkpoints_own_limits() -> None:
    assert QWEN2_5_VL.size(1080, 2400) == (1092, 2408)
    assert QWEN3_VL.size(1080, 2400) == (1088, 2400)


def test_rounding_is_half_to_even() -> None:
    assert QWEN3_VL.size(720, 1280) == (704, 1280)  # 22.5 -> 22
    assert QWEN3_VL.size(752, 1280) == (768, 1280)  # 23.5 -> 24


def test_a_picture_that_is_too_small_grows() -> None:
    # beta = sqrt(65536 / (128 * 320)) = 1.2649: 161.9 -> 192, 404.8 -> 416
    assert QWEN3_VL.size(128, 320) == (192, 416)


@pytest.mark.parametrize(
    ("max_pixels", "expected"),
    [(46_000, (128, 288)), (46_100, (128, 320)), (55_700, (128, 320)), (56_000, (128, 352))],
)
def test_the_tiny_policys_window(max_pixels: int, expected: tuple[int, int]) -> None:
    assert smart_resize(1080, 2400, factor=32, min_pixels=1024, max_pixels=max_pixels) == expected


@given(
    width=st.integers(30, 4000),
    height=st.integers(30, 4000),
    factor=st.sampled_from([28, 32]),
)
def test_sides_are_multiples_and_the_area_is_inside_the_limits(
    width: int, height: int, factor: int
) -> None:
    low, high = 100 * factor**2, 1000 * factor**2
    got = smart_resize(width, height, factor=factor, min_pixels=low, max_pixels=high)
    assert got[0] % factor == got[1] % factor == 0
    assert low <= got[0] * got[1] <= high


@pytest.mark.parametrize("size", [(10, 2010), (0, 5), (5, -1)])
def test_impossible_pictures_are_refused(size: tuple[int, int]) -> None:
    with pytest.raises(ValueError, match=r"aspect ratio|positive"):
        QWEN2_5_VL.size(*size)
