"""Draws the screens of a corpus, as the renderer service draws them in a rollout."""

import asyncio
from collections.abc import Callable, Mapping

from services.renderer.app import open_renderer
from services.renderer.settings import RendererSettings
from services.worldmodel.phone import HEIGHT, WIDTH, Phone, html
from wmkit.blobs import MemoryBlobs
from wmkit.domain.transition import ImageRequest

# That of recipes/demo.toml: 162 x 360, which the image processor makes 128 x 320 of.
PICTURE = ImageRequest(deliver="bytes", scale=0.15)


async def render(screens: Mapping[str, Phone], advance: Callable[[], None]) -> dict[str, bytes]:
    """PNG bytes by the key of each phone; `advance` is called after every picture."""
    out: dict[str, bytes] = {}
    waiting = iter(screens.items())
    settings = RendererSettings(picture_cache_mb=0)
    async with open_renderer(settings, MemoryBlobs()) as renderer:

        async def draw() -> None:
            for key, phone in waiting:
                drawn = await renderer.render(html(phone), WIDTH, HEIGHT, PICTURE)
                if drawn.image is None:
                    raise RuntimeError(f"a screen could not be drawn: {drawn.reason}")
                out[key] = drawn.image.data
                advance()

        await asyncio.gather(*(draw() for _ in range(4)))
    return {key: out[key] for key in screens}
