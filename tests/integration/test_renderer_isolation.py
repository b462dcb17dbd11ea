"""Nothing of one job is seen in another, nothing leaves the browser, equal is equal.

The walls are tested one by one where it matters: the browser's own with documents that the
sanitizer has not touched.
"""

import asyncio
import base64
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest
import pytest_asyncio

from services.renderer.engine import LocalRenderer
from services.renderer.pool import Job
from services.worldmodel.phone import boot, html
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


@asynccontextmanager
async def listening() -> AsyncIterator[tuple[int, list[bytes]]]:
    """A port of this machine, and whatever first lines arrive there."""
    heard: list[bytes] = []

    async def hear(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        heard.append(await reader.readline())
        writer.close()

    async with await asyncio.start_server(hear, "127.0.0.1", 0) as server:
        yield server.sockets[0].getsockname()[1], heard


def calling(port: int) -> str:
    """Everything that loads, prefetches, connects, refreshes or embeds."""
    url = f"http://127.0.0.1:{port}"
    links = "".join(
        f"<link rel='{rel}' href='{url}/{rel}'>"
        for rel in ("stylesheet", "preload", "prefetch", "preconnect", "dns-prefetch", "icon",
                    "manifest", "modulepreload", "prerender", "search")
    )  # fmt: skip
    return document(
        f"<img src='{url}/img' srcset='{url}/srcset 2x'><iframe src='{url}/frame'></iframe>"
        f"<object data='{url}/object'></object><embed src='{url}/embed'><video src='{url}/video' "
        f"poster='{url}/poster' autoplay></video><audio src='{url}/audio' autoplay></audio>"
        f"<input type=image src='{url}/input'><svg><image href='{url}/svg'/><use "
        f"xlink:href='{url}/use#a'/></svg><script src='{url}/script'></script><script>"
        f"fetch('{url}/fetch');new WebSocket('ws://127.0.0.1:{port}/ws')</script>"
        f"<p style='background:url({url}/style)'>text</p><table background='{url}/table'></table>",
        head=f"{links}<style>@import url({url}/import);@font-face{{font-family:F;src:url({url}/f)}}"
        f"p{{font-family:F;background-image:image-set('{url}/set' 1x)}}</style>",
    )


async def test_nothing_leaves_whether_sanitized_or_not(drawing: LocalRenderer) -> None:
    async with listening() as (port, heard):
        html_ = calling(port)
        await draw(drawing, html_)
        raw = Job(html_, 1080, 2400, ImageRequest(scale=0.1), False, 20.0)
        for _ in range(2):
            assert (await drawing._pool.draw(raw)).data
        # The port does hear: a caller that is no browser gets through.
        reader, writer = await asyncio.open_connection("127.0.0.1", port)
        writer.write(b"here\n")
        await reader.read()
        writer.close()
        assert heard == [b"here\n"]


async def test_a_refresh_that_got_through_spoils_nothing_else(drawing: LocalRenderer) -> None:
    async with listening() as (port, heard):
        head = f"<meta http-equiv=refresh content='0;url=http://127.0.0.1:{port}/'>"
        raw = Job(document("x", head=head), 1080, 2400, ImageRequest(scale=0.1), False, 20.0)
        await asyncio.gather(drawing._pool.draw(raw), return_exceptions=True)
        before = data(await draw(drawing, PROBE))
        assert data(await draw(drawing, PROBE)) == before
        assert heard == []


@pytest.mark.parametrize("scale", [0.15, 0.37, 1.0])
async def test_equal_requests_have_equal_bytes_in_every_page_and_browser(scale: float) -> None:
    """Fractional scales and curves are what came out in two ways; see probe.js."""
    circles = document(
        "".join(
            f"<svg style='position:absolute;left:{60 + i * 90}px;top:{300 + i * 77}px' width=140 "
            f"height=140 viewBox='0 0 24 24'><circle cx=12 cy=12 r={3 + i} fill=red></svg>"
            f"<div style='position:absolute;left:{i * 90}px;top:{900 + i * 77}px;width:140px;"
            f"height:140px;border-radius:{36 + i}px;background:#48c'></div>"
            for i in range(8)
        )
    )
    documents = [circles, html(boot(3)), html(boot(4))]
    image = ImageRequest(scale=scale)
    seen: list[set[bytes]] = [set(), set(), set()]
    for _ in range(2):
        async with renderer(pages=3) as opened:
            turns = [i % 3 for i in range(24)]
            drawn = await asyncio.gather(*(draw(opened, documents[i], image) for i in turns))
            for i, rendering in zip(turns, drawn, strict=True):
                seen[i].add(data(rendering))
    assert [len(each) for each in seen] == [1, 1, 1]
