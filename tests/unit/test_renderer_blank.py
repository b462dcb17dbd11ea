"""The rule for blank pictures, on pictures made by another encoder."""

import io
import random

import pytest
from PIL import Image

from services.renderer.blank import is_blank, is_uniform
from services.renderer.page import Drawn


def encoded(picture: Image.Image, form: str = "PNG") -> bytes:
    out = io.BytesIO()
    picture.save(out, form)
    return out.getvalue()


def drawn(data: bytes, *, content: bool, background: bool) -> Drawn:
    return Drawn(data, True, background, content, 0, (0, 0), ())


WHITE = encoded(Image.new("RGB", (162, 360), "white"))


@pytest.mark.parametrize("form", ["PNG", "JPEG", "WEBP"])
@pytest.mark.parametrize("size", [(1, 1), (162, 360), (1080, 2400)])
def test_one_colour_is_uniform_and_one_odd_area_is_not(size: tuple[int, int], form: str) -> None:
    picture = Image.new("RGB", size, (12, 34, 56))
    assert is_uniform(encoded(picture, form))
    if size != (1, 1):
        picture.paste((255, 255, 255), (0, 0, 40, 40))
        assert not is_uniform(encoded(picture, form))


def test_no_picture_and_noise_are_not_uniform() -> None:
    assert not is_uniform(b"")
    noise = Image.frombytes("RGB", (50, 50), random.Random(0).randbytes(7500))
    assert not is_uniform(encoded(noise))


@pytest.mark.parametrize(
    ("content", "background", "blank"),
    [(True, True, True), (True, False, True), (False, False, True), (False, True, False)],
)
def test_a_uniform_picture_is_plain_only_on_purpose(
    content: bool, background: bool, blank: bool
) -> None:
    assert is_blank(drawn(WHITE, content=content, background=background)) is blank


def test_a_picture_with_something_on_it_is_never_blank() -> None:
    picture = Image.new("RGB", (162, 360), "white")
    picture.putpixel((5, 5), (254, 255, 255))
    assert not is_blank(drawn(encoded(picture), content=True, background=False))
