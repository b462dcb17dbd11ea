"""When a picture shows nothing, and whether that is a failure.

    BLANK  <=>  every pixel is equal
                and the document has something to show (text, a graphic, a control, a named
                    element), or paints no background of its own

A uniform picture of a document that paints a background and puts nothing on it is a plain
screen on purpose (a display that is off, a splash) and no failure. A white page because the
document paints nothing at all, or text that cannot be seen, is a page that went wrong.
"""

import io

from PIL import Image

from services.renderer.page import Drawn

# A uniform picture of n pixels takes less than this, in any format; most others more.
_BYTES_PER_PX = 1 / 40
_BYTES_OF_HEADERS = 2_000


def is_blank(drawn: Drawn) -> bool:
    """The rule above. False where no picture was made."""
    return (drawn.content or not drawn.background) and is_uniform(drawn.data)


def is_uniform(data: bytes) -> bool:
    """Whether all pixels of an encoded picture are equal; False for no picture.

    Only pictures that are small for their size are decoded, so that the usual answer is free.
    """
    if not data:
        return False
    with Image.open(io.BytesIO(data)) as picture:
        if len(data) > picture.width * picture.height * _BYTES_PER_PX + _BYTES_OF_HEADERS:
            return False
        # The last column and row hold a part of a pixel where the scale leaves a remainder.
        whole = (0, 0, max(picture.width - 1, 1), max(picture.height - 1, 1))
        bands = picture.convert("RGB").crop(whole).split()
        return all(len(set(band.getextrema())) == 1 for band in bands)
