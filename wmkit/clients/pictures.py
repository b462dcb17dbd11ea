"""Pictures for people: decode them, encode them."""

from io import BytesIO
from pathlib import Path
from typing import TYPE_CHECKING

from wmkit.domain.transition import Image

if TYPE_CHECKING:
    from PIL.Image import Image as PilImage


def to_pil(image: Image) -> "PilImage":
    """The decoded picture. Raises ValueError when its bytes were not asked for."""
    if not image.data:
        raise ValueError(f"picture {image.digest} came without bytes; ask with deliver='bytes'")
    from PIL import Image as pil

    return pil.open(BytesIO(image.data))


def encoded(picture: "bytes | str | Path | PilImage") -> bytes:
    """Encoded bytes as they are, a file's bytes, or a Pillow image as PNG."""
    if isinstance(picture, bytes):
        return picture
    if isinstance(picture, (str, Path)):
        return Path(picture).read_bytes()
    out = BytesIO()
    picture.save(out, "PNG")
    return out.getvalue()
