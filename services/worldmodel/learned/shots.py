"""Screenshots as models take them: decoded, resized to a model's limits, as a data URL.

Pictures come from callers too, so what cannot be decoded or is far too large is their fault.
CPU work: call it in a thread.
"""

import base64
import io
from collections.abc import Mapping
from typing import Any

from PIL import Image

from wmkit.domain.errors import InvalidRequest
from wmkit.domain.resize import ResizeRule

MAX_PIXELS = 40_000_000
"""Largest screen that is decoded; the largest tablets have 6 million pixels."""


def decode(data: bytes) -> Image.Image:
    """An encoded picture as RGB; transparent places are white.

    Raises InvalidRequest for bytes that are no PNG, JPEG or WebP, or too large a picture.
    """
    try:
        with Image.open(io.BytesIO(data), formats=("PNG", "JPEG", "WEBP")) as opened:
            if opened.width * opened.height > MAX_PIXELS:
                raise InvalidRequest(f"a screen of {opened.width}x{opened.height} is too large")
            opened.load()
            if "A" not in opened.getbands() and "transparency" not in opened.info:
                return opened.convert("RGB")
            white = Image.new("RGBA", opened.size, "white")
            return Image.alpha_composite(white, opened.convert("RGBA")).convert("RGB")
    except (OSError, SyntaxError, ValueError) as error:
        raise InvalidRequest(f"the screen is no picture: {error}", field="image") from None


def fit(picture: Image.Image, rule: ResizeRule) -> Image.Image:
    """The picture inside the rule's limits of pixels; the same one where it is already."""
    if rule.min_pixels <= picture.width * picture.height <= rule.max_pixels:
        return picture
    return picture.resize(rule.size(*picture.size), Image.Resampling.BICUBIC)


def image_part(picture: Image.Image) -> Mapping[str, Any]:
    """The picture as a part of an OpenAI message, a PNG in a data URL."""
    out = io.BytesIO()
    # Quick rather than small: it travels to a server near by, once.
    picture.save(out, "PNG", compress_level=1)
    url = "data:image/png;base64," + base64.b64encode(out.getvalue()).decode("ascii")
    return {"type": "image_url", "image_url": {"url": url}}
