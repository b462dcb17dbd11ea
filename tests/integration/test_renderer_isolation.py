"""Nothing of one job is seen in another.

The walls are tested one by one where it matters: the browser's own with documents that the
sanitizer has not touched.
"""

import base64
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
import pytest_asyncio

from services.renderer.engine import LocalRenderer
from services.renderer.pool import Job
from tests.renderer_cases import data, document, draw, renderer
from wmkit.domain.transition import ImageRequest

pytestmark = pytest.mark.asyncio(loop_scope="module")

PROBE = document(
    "<p class=a style='font:80px F,serif;color:var(--c,#123)'>Probe</p><ol start=3 "
    "style='list-style:marks inside'><li>x</ol><i style='animation:move 1s'>y</i>"
    "<a href='http://visited.example/'>link</a><input value=text>"
)
FONT = next(Path("/usr/share/fonts").rglob("DejaVuSansMono.ttf"), None)


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def drawing() -> AsyncIterator[LocalRenderer]:
    async with renderer(pages=1) as opened:
        yield opened


def loud() -> str:
    """A document that defines, styles, stores and moves all that it can."""
    face = ""
    if FONT is not None:
        url = base64.b64encode(FONT.read_bytes()).decode()
        face = f"@font-face{{font-family:F;src:url(data:font/ttf;base64,{url})}}"
    head = (
        f"<style>{face}@property --c{{syntax:'<color>';inherits:true;initial-value:#f00}}"
        "@counter-style marks{system:cyclic;symbols:'@@'}@keyframes move{from{margin-left:400px}}"
        ".a{background:#ff0}html{background:#0ff;filter:invert(1)}input{border:9px solid red}"
        ":root{color-scheme:dark;--c:#f0f;font-size:40px}@page{size:1cm}</style>"
        "<meta name=color-scheme content=dark><meta name=viewport content='width=300'>"
        "<meta http-equiv=set-cookie content='a=b'><title>loud</title>"
    )
    return document(
        "<p class=a style='font:90px F'>LOUD</p><dialog open>d</dialog>"
        "<div style='height:5000px'></div><input autofocus>",
        head=head,
    ).removeprefix("<!DOCTYPE html>")


@pytest.mark.parametrize("blanked", [False, True], ids=["written over", "blanked between"])
async def test_nothing_of_a_document_is_left_in_the_next(
    drawing: LocalRenderer, blanked: bool
) -> None:
    async with renderer(pages=1) as fresh:
        alone = data(await draw(fresh, PROBE))
    assert data(await draw(drawing, loud())) != alone
    if blanked:
        browser = drawing._pool._browser
        assert browser is not None
        (page,) = browser.idle
        await page.blank()
    assert data(await draw(drawing, PROBE)) == alone


@pytest.mark.parametrize(
    "meta",
    [
        "<meta name=color-scheme content=dark>",
        "<meta http-equiv=content-security-policy content=\"style-src 'none'\">",
        "<meta http-equiv=content-language content=ja>",
    ],
)
async def test_not_even_what_got_past_the_sanitizer(drawing: LocalRenderer, meta: str) -> None:
    image = ImageRequest(scale=0.25)
    alone = data(await draw(drawing, PROBE))
    raw = Job(document("<p>x", head=meta), 1080, 2400, image, False, 20.0)
    assert (await drawing._pool.draw(raw)).spoiled
    assert data(await draw(drawing, PROBE)) == alone


async def test_a_page_per_job_gives_the_same_bytes() -> None:
    async with renderer(pages=1) as warm, renderer(pages=1, page_jobs=1) as single:
        for document_ in (loud(), PROBE):
            assert data(await draw(warm, document_)) == data(await draw(single, document_))
