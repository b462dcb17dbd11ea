"""Pictures for people: decode them, save them."""

from io import BytesIO
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
