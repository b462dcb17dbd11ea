"""gWorld's viewport table."""

import pytest

from services.worldmodel.learned.viewport import device_scale


@pytest.mark.parametrize(
    ("width_px", "height_px", "scale"),
    [
        (1080, 2400, 3),
        (1080, 1920, 3),
        (1344, 2992, 3),
        (1440, 3120, 4),
        (720, 1280, 2),
        (1600, 2560, 2),  # a tablet
        (2560, 1600, 2),  # and lying
        (1200, 2670, 4),  # 300 x 667 fits at once
        (1170, 2532, 3),  # 292 at 4 is too narrow, 390 x 844
        (828, 1792, 2.5),  # 276 at 3 is too narrow, 331 x 716
        (600, 1024, 2),  # 240 at 2.5 is too narrow, 300 x 512
        (480, 800, 1.5),  # 240 at 2, 320 x 533
        (2400, 1080, 2),  # 1200 x 540
        (1280, 720, 1.5),  # 640 x 360 is too low, 853 x 480
        (3000, 1440, 3),  # 1500 and 2000 are too wide, 1000 x 480
        (200, 300, 2),  # nothing fits
    ],
)
def test_the_scale_of_a_screen(width_px: int, height_px: int, scale: float) -> None:

    assert device_scale(width_px, height_px) == scale
