"""Pictures of states: equal looks are drawn once.

A picture is named by backend revision, look (`screen_id`) and what was asked of it; its
bytes lie in the blob store. Only pictures are remembered: a render that failed may succeed
under less load. HTML is drawn by the renderer; a state that is a picture already is only
resized.
"""

import json
import time
from dataclasses import replace
from typing import Any

from services.worldmodel import screenshots
from services.worldmodel.backends import WorldBackend
from services.worldmodel.backends.pages import Page, PageBackend
from services.worldmodel.flight import Flight
from services.worldmodel.index import Index
from services.worldmodel.states import Live, States
from wmkit.blobs import digest
from wmkit.domain.errors import (
    BadHtml,
    DeadlineExpired,
    NotFound,
    StateNotFound,
    Unavailable,
)
from wmkit.domain.transition import FailureReason, Image, ImageRequest, Rendering
from wmkit.lru import Lru
from wmkit.ports import BlobStore, Renderer

_Name = tuple[str, str, str, float, int]


class Pictures:
    """Screens as images. `size` bounds the names kept in this process, not bytes."""

    def __init__(
        self, renderer: Renderer, states: States, index: Index, blobs: BlobStore, size: int
    ) -> None:
        self._renderer = renderer
        self._states = states
        self._index = index
        self._blobs = blobs
        self._known: Lru[_Name, Rendering] = Lru(size)
        self._flight: Flight[_Name, Rendering] = Flight()
        self._drawn_by = ""

    async def get(self, backend: WorldBackend[Any], live: Live, request: ImageRequest) -> Rendering:
        """The picture of a state; `cached` tells whether it was there. Never has elements.

        A look that cannot be drawn is a Rendering with a reason. Raises Unavailable when
        the renderer is down or too slow, InvalidRequest for a picture that cannot be asked
        for, StateNotFound when the state has lost its payload.
        """
        name = _name(backend, live, request)
        known = self._known.get(name)
        if known is None:
            known, shared = await self._flight.run(
                name, lambda: self._find(backend, live, request, name)
            )
            if shared:
                known = replace(known, cached=True)
        if request.deliver == "digest" or known.image is None:
            return known
        return await self._with_bytes(backend, live, request, known, known.image)

    async def _find(
        self, backend: WorldBackend[Any], live: Live, request: ImageRequest, name: _Name
    ) -> Rendering:
        page = await self._picture_page(backend, live)
        if page is not None:
            return await self._resized(live, page, request, name)
        # Which renderer would draw is known after its first picture; another browser draws
        # other bytes, so no picture of an unknown one is taken over.
        if self._drawn_by:
            stored = await self._index.get(_key(name, self._drawn_by))
            if stored is not None:
                found = _read(stored, self._drawn_by)
                self._known[name] = found
                return found
        drawn = await self._draw(backend, live, replace(request, deliver="digest"))
        if drawn.image is None:
            return drawn
        if drawn.revision != self._drawn_by:
            self._known.clear()
            self._drawn_by = drawn.revision
        await self._index.put(_key(name, drawn.revision), _record(drawn, drawn.image))
        self._known[name] = replace(drawn, cached=True, render_ms=0.0)
        return drawn

    async def _resized(
        self, live: Live, page: Page, request: ImageRequest, name: _Name
    ) -> Rendering:
        key = _key(name, screenshots.REVISION)
        stored = await self._index.get(key)
        if stored is not None:
            found = _read(stored, screenshots.REVISION)
            self._known[name] = found
            return found
        begin = time.perf_counter()
        image = await self._fit(live, page, request)
        found = Rendering(replace(image, data=b""), revision=screenshots.REVISION)
        await self._index.put(key, _record(found, image))
        self._known[name] = replace(found, cached=True)
        return replace(found, render_ms=(time.perf_counter() - begin) * 1000)

    async def _fit(self, live: Live, page: Page, request: ImageRequest) -> Image:
        image = await screenshots.fit(await self._original(live, page), page.screen, request)
        await self._blobs.put(image.data)
        return image

    async def _picture_page(self, backend: WorldBackend[Any], live: Live) -> Page | None:
        """The page of a state that is a picture, None for all others."""
        if not isinstance(backend, PageBackend):
            return None
        page = backend.page(await self._states.value(live))
        return page if page.picture else None

    async def _original(self, live: Live, page: Page) -> bytes:
        try:
            return await self._blobs.get(page.picture)
        except NotFound:
            raise StateNotFound(
                f"state {live.state.state_id} has lost its picture {page.picture}; "
                "does the blob folder still exist?",
                resource=live.state.state_id,
            ) from None

    async def _draw(
        self, backend: WorldBackend[Any], live: Live, request: ImageRequest
    ) -> Rendering:
        html = backend.html(await self._states.value(live))
        screen = live.state.screen
        request = replace(request, with_elements=False)
        width_px, height_px = screen.width_px, screen.height_px
        if screen.scale != 1.0:
            # The page is laid out in CSS pixels; the picture still has the device's size.
            width_px, height_px = int(width_px / screen.scale), int(height_px / screen.scale)
            request = replace(request, scale=request.scale * screen.scale)
        begin = time.perf_counter()
        try:
            drawn = await self._renderer.render(html, width_px, height_px, request)
        except DeadlineExpired:
            # Our deadline towards the renderer, not the caller's towards us.
            raise Unavailable("the renderer did not answer in time") from None
        except BadHtml:
            return Rendering(None, FailureReason.NO_DOCUMENT)
        return replace(drawn, cached=False, render_ms=(time.perf_counter() - begin) * 1000)

    async def _with_bytes(
        self,
        backend: WorldBackend[Any],
        live: Live,
        request: ImageRequest,
        known: Rendering,
        image: Image,
    ) -> Rendering:
        try:
            return replace(known, image=replace(image, data=await self._blobs.get(image.digest)))
        except NotFound:
            # Collected meanwhile, or the renderer keeps its pictures elsewhere.
            page = await self._picture_page(backend, live)
            if page is not None:
                return replace(known, image=await self._fit(live, page, request))
            drawn = await self._draw(backend, live, replace(request, deliver="bytes"))
            if drawn.image is not None:
                await self._blobs.put(drawn.image.data)
            return drawn


def _name(backend: WorldBackend[Any], live: Live, request: ImageRequest) -> _Name:
    look = (request.format, request.scale, request.lossy_quality)
    return (backend.revision, live.state.screen_id, *look)


def _key(name: _Name, drawn_by: str) -> str:
    return f"picture:{digest(json.dumps([*name, drawn_by]).encode())}"


def _record(drawn: Rendering, image: Image) -> bytes:
    size = [image.width_px, image.height_px]
    record = [image.digest, image.format, *size, list(drawn.warnings)]
    return json.dumps(record, separators=(",", ":")).encode()


def _read(record: bytes, drawn_by: str) -> Rendering:
    name, form, width_px, height_px, warnings = json.loads(record)
    image = Image(name, width_px, height_px, form)
    return Rendering(image, warnings=tuple(warnings), cached=True, revision=drawn_by)
