"""Documents and a running renderer for the renderer's tests."""

import io
import json
import runpy
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, redirect_stdout
from pathlib import Path
from typing import TYPE_CHECKING, Any

from PIL import Image

from services.renderer.settings import RendererSettings
from wmkit.blobs import MemoryBlobs
from wmkit.domain.transition import ImageRequest, Rendering

if TYPE_CHECKING:
    from services.renderer.engine import LocalRenderer

CASES = Path(__file__).parent / "cases" / "render"
EXPECTED = [json.loads(line) for line in (CASES / "expected.jsonl").read_text().splitlines()]
SMALL = ImageRequest(scale=0.25)


def document(body: str, *, head: str = "", background: str = "background:#fff") -> str:
    """The HTML contract around `body`."""
    return (
        f'<!DOCTYPE html><html><head><meta charset="utf-8">{head}</head><body style="margin:0">'
        '<div id="render-target" style="width:1080px;height:2400px;position:relative;'
        f'overflow:hidden;{background}">{body}</div></body></html>'
    )


def case(name: str) -> str:
    """A case file; one that ends in .py prints its page."""
    path = CASES / name
    if path.suffix != ".py":
        return path.read_text()
    with redirect_stdout(io.StringIO()) as printed:
        runpy.run_path(str(path))
    return printed.getvalue()


@asynccontextmanager
async def renderer(**settings: Any) -> AsyncIterator["LocalRenderer"]:
    """A renderer with a real browser, nothing remembered, and time enough on a busy machine."""
    from services.renderer.app import open_renderer

    values = {"pages": 2, "picture_cache_mb": 0, "page_timeout_s": 30.0} | settings
    async with open_renderer(RendererSettings(**values), MemoryBlobs()) as opened:
        yield opened


async def draw(
    renderer: "LocalRenderer",
    html: str,
    image: ImageRequest = SMALL,
    size: tuple[int, int] = (1080, 2400),
) -> Rendering:
    return await renderer.render(html, *size, image)


def pixels(rendering: Rendering) -> Image.Image:
    assert rendering.image is not None, (rendering.reason, rendering.warnings)
    return Image.open(io.BytesIO(rendering.image.data)).convert("RGB")


def data(rendering: Rendering) -> bytes:
    assert rendering.image is not None, (rendering.reason, rendering.warnings)
    return rendering.image.data
