"""The CSS viewport at which gWorld's pages are meant to be drawn. Pure arithmetic.

gWorld learned pages of phones as a browser on the phone sees them: CSS pixels, not device
pixels. The table is the one of its published evaluation.
"""

from wmkit.domain.screen import Screen

_CANDIDATES_PORTRAIT = (4.0, 3.0, 2.5, 2.0, 1.5)
_CANDIDATES_LANDSCAPE = (2.0, 1.5, 3.0)
_OTHERWISE = 2.0
_TABLETS = frozenset(
    ((1600, 2560), (1200, 1920), (1536, 2048), (1668, 2388), (2048, 2732), (1752, 2800))
)
"""Usual screens of tablets, in portrait."""


def device_scale(width_px: int, height_px: int) -> float:
    """Device pixels per CSS pixel for a screen of this size."""
    if (width_px, height_px) == (1344, 2992) or width_px == 1080 < height_px:
        return 3.0
    if width_px == 1440 < height_px:
        return 4.0
    if width_px == 720 < height_px or tuple(sorted((width_px, height_px))) in _TABLETS:
        return 2.0
    candidates: tuple[float, ...]
    if width_px <= height_px:
        candidates, widths, heights = _CANDIDATES_PORTRAIT, (300, 500), (500, 1200)
    else:
        candidates, widths, heights = _CANDIDATES_LANDSCAPE, (600, 1200), (400, 800)
    for scale in candidates:
        width, height = int(width_px / scale), int(height_px / scale)
        if widths[0] <= width <= widths[1] and heights[0] <= height <= heights[1]:
            return scale
    return _OTHERWISE


def gworld_screen(width_px: int, height_px: int) -> Screen:
    """The screen with the scale at which gWorld's pages fill it."""
    return Screen(width_px, height_px, device_scale(width_px, height_px))
