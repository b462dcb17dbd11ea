"""Draws HTML in a pool of hardened browser pages: pictures, element boxes, typed failures.

A gRPC server; needs a Chromium and the blob store.
"""

from services.renderer.settings import RendererSettings
from wmkit.entry import main


async def run(settings: RendererSettings) -> None:
    from services.renderer.app import serve_renderer

    await serve_renderer(settings)


if __name__ == "__main__":
    main("renderer", __doc__ or "", RendererSettings, run)
