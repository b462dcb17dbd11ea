"""Screenshots that callers bring: checked, and resized to what somebody asks for.

Pillow only; these screens never see a browser. Decoding and encoding run in threads.
"""

import asyncio
import math
import warnings
from io import BytesIO
from typing import Any

import PIL
from PIL import Image as pil

from wmkit.blobs import digest
from wmkit.domain.errors import InvalidRequest, PayloadTooLarge
from wmkit.domain.screen import Screen
from wmkit.domain.transition import Image, ImageRequest

REVISION = f"pillow-{PIL.__version__}"
"""Decides about the bytes of a resized picture."""

_MAX_PIXELS = 40_000_000
_FORMATS = {"PNG": "png", "JPEG": "jpeg"}


async def inspect(data: bytes) -> tuple[Screen, Any]:
    """The size of an encoded picture, one pixel to a CSS pixel, and its format.

    Raises InvalidRequest for bytes that are no whole PNG or JPEG, PayloadTooLarge for more
    than 40 million pixels.
    """
    return await asyncio.to_thread(_inspect, data)


async def fit(data: bytes, screen: Screen, request: ImageRequest) -> Image:
    """A screen's picture at `request.scale`, in the format that was asked for.

    At its own size and format it stays as it is, byte for byte. `data` is set.
    """
    return await asyncio.to_thread(_fit, data, screen, request)


def _inspect(data: bytes) -> tuple[Screen, Any]:
    if not data:
        raise InvalidRequest("the screenshot is empty", field="screenshot.data")
    try:
        with warnings.catch_warnings():
            # Pillow only warns where the limit below refuses.
            warnings.simplefilter("ignore", pil.DecompressionBombWarning)
            with pil.open(BytesIO(data), formats=list(_FORMATS)) as picture:
                width_px, height_px = picture.size
                if width_px * height_px > _MAX_PIXELS:
                    raise PayloadTooLarge(
                        f"the screenshot has {width_px}x{height_px} pixels; "
                        f"at most {_MAX_PIXELS:,} are accepted"
                    )
                picture.load()
                return Screen(width_px, height_px), _FORMATS[str(picture.format)]
    except pil.DecompressionBombError as error:
        raise PayloadTooLarge(f"the screenshot is too large: {error}") from None
    except (OSError, SyntaxError, ValueError) as error:
        raise InvalidRequest(
            f"the screenshot is no whole PNG or JPEG: {error}", field="screenshot.data"
        ) from None


def _fit(data: bytes, screen: Screen, request: ImageRequest) -> Image:
    size = (
        max(1, math.floor(screen.width_px * request.scale + 0.5)),
        max(1, math.floor(screen.height_px * request.scale + 0.5)),
    )
    with pil.open(BytesIO(data), formats=list(_FORMATS)) as picture:
        if size != picture.size or _FORMATS[str(picture.format)] != request.format:
            data = _encode(_opaque(picture).resize(size, pil.Resampling.LANCZOS), request)
    return Image(digest(data), *size, request.format, data)


def _opaque(picture: pil.Image) -> pil.Image:
    """Without transparency, on white as a page would be."""
    if not picture.has_transparency_data:
        return picture.convert("RGB")
    layer = picture.convert("RGBA")
    return pil.alpha_composite(pil.new("RGBA", layer.size, "white"), layer).convert("RGB")


def _encode(picture: pil.Image, request: ImageRequest) -> bytes:
    out = BytesIO()
    if request.format == "png":
        picture.save(out, "PNG")
    else:
        picture.save(out, request.format.upper(), quality=request.quality)
    return out.getvalue()
