"""Puts the service together: browser, pool, blobs, cache, the server."""

from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from functools import partial
from typing import Any

import structlog
from wmr1.renderer.v1 import renderer_pb2_grpc as rpc

from services.renderer.browser import launch
from services.renderer.cache import RenderCache
from services.renderer.chromium import find_browser
from services.renderer.engine import EngineLimits, LocalRenderer
from services.renderer.limits import Limits
from services.renderer.pool import Pool, PoolLimits
from services.renderer.processes import cores
from services.renderer.revision import revision
from services.renderer.servicer import NAME, RendererServicer
from services.renderer.settings import RendererSettings
from wmkit.blobs import open_blobs
from wmkit.ports import BlobStore
from wmkit.rpc.server import Register, serve

log = structlog.get_logger(__name__)


async def serve_renderer(settings: RendererSettings) -> None:
    """Serve until told to stop; the browser is ended last."""
    resources = AsyncExitStack()
    await serve(settings, "renderer", registration(settings, resources), resources.aclose)


def registration(settings: RendererSettings, resources: AsyncExitStack) -> Register:
    """What adds this service to a server; whatever it opens is closed with `resources`."""

    async def register(server: Any) -> list[str]:
        blobs = open_blobs(settings.blobs)
        renderer = await resources.enter_async_context(open_renderer(settings, blobs))
        servicer = RendererServicer(renderer, blobs, settings.batch_in_flight)
        rpc.add_RendererServiceServicer_to_server(servicer, server)
        return [NAME]

    return register


@asynccontextmanager
async def open_renderer(
    settings: RendererSettings, blobs: BlobStore
) -> AsyncIterator[LocalRenderer]:
    """The renderer that the settings describe, its pages warm.

    Raises InvalidRequest when there is no browser, Unavailable when it does not start.
    """
    executable = find_browser(settings.browser)
    limits = PoolLimits(
        pages=settings.pages or cores() + 1,
        waiting=settings.pages_waiting,
        page_jobs=settings.page_jobs,
        page_memory_mb=settings.page_memory_mb,
        browser_jobs=settings.browser_jobs,
        browser_memory_mb=settings.browser_memory_mb,
    )
    pool = Pool(partial(launch, executable, settings.browser_sandbox), limits)
    try:
        name = await revision(await pool.start())
        log.info("browser is up", path=executable, revision=name, pages=limits.pages)
        yield LocalRenderer(
            pool,
            blobs,
            RenderCache(settings.picture_cache_mb << 20),
            EngineLimits(
                document=Limits(settings.html_max_bytes, settings.html_max_tags),
                picture_px=settings.picture_max_px,
                timeout_s=settings.page_timeout_s,
                timeout_max_s=settings.page_timeout_max_s,
            ),
            name,
        )
    finally:
        await pool.close()
