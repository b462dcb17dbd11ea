"""Our smart_resize against the one inside transformers."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from wmkit.domain.resize import smart_resize

reference = pytest.importorskip("transformers.models.qwen2_vl.image_processing_pil_qwen2_vl")


@pytest.mark.slow
@given(
    width=st.integers(28, 4000),
    height=st.integers(28, 4000),
    factor=st.sampled_from([28, 32]),
    max_pixels=st.sampled_from([12845056, 4194304, 2116800, 1003520, 200_000]),
)
@settings(max_examples=500, deadline=None)
def test_the_same_size_as_the_published_processor(
    width: int, height: int, factor: int, max_pixels: int
) -> None:
    height_want, width_want = reference.smart_resize(
        height, width, factor=factor, min_pixels=100_000, max_pixels=max_pixels
    )
    ours = smart_resize(width, height, factor=factor, min_pixels=100_000, max_pixels=max_pixels)
    # The published one may shrink a very long side to nothing; ours keeps one cell.
    assert ours == (max(width_want, factor), max(height_want, factor))
