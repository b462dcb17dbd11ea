"""`wmkit.ports.Renderer` in this process: sanitize, remember, draw, judge, store.

    request -> checked -> remembered? -> sanitized -> pool -> blank? -> blob store -> answer

Not here: the wire (`servicer`), and how pages are kept alive (`pool`).
"""

import json
import math
import time
from dataclasses import dataclass, replace

from services.renderer.blank import is_blank
from services.renderer.cache import RenderCache
from services.renderer.limits import Limits
from services.renderer.metrics import CACHED, RENDERS
from services.renderer.page import Drawn
from services.renderer.pool import Job, Pool, Undrawable
from services.renderer.sanitize import Clean, sanitize
from wmkit.blobs import digest
from wmkit.domain.errors import InvalidRequest
from wmkit.domain.transition import FailureReason, Image, ImageRequest, Rendering
from wmkit.ports import BlobStore

_MAX_SIDE_PX = 10_000
_MAX_WEBP_SIDE_PX = 16_383
# What a message of 32 MiB holds besides the picture fits into the rest.
_MAX_PICTURE_BYTES = 30 << 20


@dataclass(frozen=True, slots=True)
class EngineLimits:
    """Times in seconds; `picture_px` bounds output pixels. See `RendererSettings`."""

    document: Limits
    picture_px: int = 24_000_000
    timeout_s: float = 10.0
    timeout_max_s: float = 30.0


@dataclass(frozen=True, slots=True)
class Request:
    """One render. `image` None makes no picture; `elements` is for that case."""

    html: str
    width_px: int
    height_px: int
    image: ImageRequest | None
    elements: bool = False
    timeout_s: float = 0.0


class LocalRenderer:
    """Draws in `pool`; `revision` names what its pictures depend on besides the request."""

    def __init__(
        self, pool: Pool, blobs: BlobStore, cache: RenderCache, limits: EngineLimits, revision: str
    ) -> None:
        self._pool = pool
        self._blobs = blobs
        self._cache = cache
        self._limits = limits
        self.revision = revision

    async def render(
        self, html: str, width_px: int, height_px: int, image: ImageRequest
    ) -> Rendering:
        """See `answer`."""
        request = Request(html, width_px, height_px, image, elements=image.with_elements)
        return await self.answer(request)

    async def answer(self, request: Request) -> Rendering:
        """The picture, which then lies in the blob store, or the reason why there is none.

        Raises InvalidRequest for a size or time that cannot be drawn, Overloaded,
        BrowserCrashed or Unavailable.
        """
        self._check(request)
        rendering, known = await self._cache.get(
            _key(request, self.revision), request.timeout_s, lambda: self._make(request)
        )
        RENDERS.labels(rendering.reason or "ok").inc()
        if known:
            CACHED.inc()
            rendering = replace(rendering, cached=True)
        image = rendering.image
        if image is not None and request.image is not None and request.image.deliver == "digest":
            rendering = replace(rendering, image=replace(image, data=b""))
        return rendering

    async def _make(self, request: Request) -> Rendering:
        begin = time.perf_counter()
        rendering = await self._draw(request, sanitize(request.html, self._limits.document))
        return replace(
            rendering,
            render_ms=(time.perf_counter() - begin) * 1000,
            revision=self.revision,
        )

    async def _draw(self, request: Request, clean: Clean) -> Rendering:
        if clean.reason is not None:
            return Rendering(None, clean.reason, warnings=clean.warnings)
        try:
            drawn = await self._pool.draw(
                Job(
                    clean.html,
                    request.width_px,
                    request.height_px,
                    request.image,
                    request.elements,
                    min(request.timeout_s or self._limits.timeout_s, self._limits.timeout_max_s),
                )
            )
        except Undrawable as fault:
            return Rendering(None, fault.reason, warnings=clean.warnings)
        warnings = (*clean.warnings, *_oddities(drawn))
        if request.image is None:
            return Rendering(None, elements=drawn.elements, warnings=warnings)
        if is_blank(drawn):
            return Rendering(None, FailureReason.BLANK, warnings=warnings)
        if len(drawn.data) > _MAX_PICTURE_BYTES:
            return Rendering(None, FailureReason.OVERSIZED, warnings=warnings)
        width_px, height_px = _size(request, request.image.scale)
        name = await self._blobs.put(drawn.data)
        image = Image(name, width_px, height_px, request.image.format, drawn.data)
        return Rendering(image, elements=drawn.elements, warnings=warnings)

    def _check(self, request: Request) -> None:
        for field in ("width_px", "height_px"):
            value = getattr(request, field)
            if not 1 <= value <= _MAX_SIDE_PX:
                raise InvalidRequest(f"{field} must be 1-{_MAX_SIDE_PX}, is {value}", field)
        if not (math.isfinite(request.timeout_s) and request.timeout_s >= 0):
            raise InvalidRequest("timeout_ms must not be negative", "timeout_ms")
        if request.image is None:
            return
        scale = request.image.scale
        if not 0 < scale <= 4:
            raise InvalidRequest(f"image.scale must be in (0, 4], is {scale:g}", "image.scale")
        if not 1 <= request.image.quality <= 100:
            quality = request.image.quality
            raise InvalidRequest(f"image.quality must be 1-100, is {quality}", "image.quality")
        width_px, height_px = _size(request, scale)
        if request.image.format == "webp" and max(width_px, height_px) > _MAX_WEBP_SIDE_PX:
            raise InvalidRequest(
                f"a WebP of {width_px}x{height_px} px cannot be made, at most "
                f"{_MAX_WEBP_SIDE_PX} px to a side; choose another image.format",
                "image.format",
            )
        if not 1 <= width_px * height_px <= self._limits.picture_px:
            raise InvalidRequest(
                f"a picture of {width_px}x{height_px} px cannot be made, "
                f"at most {self._limits.picture_px} pixels; choose another image.scale",
                "image.scale",
            )


def _size(request: Request, scale: float) -> tuple[int, int]:
    """Output pixels, as the browser rounds them: halves up."""
    return math.floor(request.width_px * scale + 0.5), math.floor(request.height_px * scale + 0.5)


def _key(request: Request, revision: str) -> str:
    """Delivery and timeout do not change what is drawn."""
    image = request.image
    look = image and [image.format, image.scale, image.lossy_quality]
    rest = [request.width_px, request.height_px, look, request.elements, revision]
    html = request.html.encode("utf-8", "surrogatepass")
    return digest(json.dumps(rest).encode() + b"\0" + html)


def _oddities(drawn: Drawn) -> list[str]:
    found = []
    if not drawn.has_target:
        found.append("no #render-target")
    if not drawn.background:
        found.append("no background: composited on white")
    if drawn.animated:
        found.append("animation stopped at its first frame")
    x, y = drawn.overflow_px
    if x > 1 or y > 1:
        found.append(f"content reaches {x} px to the right of and {y} px below #render-target")
    return found
