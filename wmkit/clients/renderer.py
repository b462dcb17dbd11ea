"""Client of the renderer service."""

from collections.abc import AsyncIterable, AsyncIterator, Iterable
from dataclasses import dataclass

from wmr1.renderer.v1 import renderer_pb2 as pb
from wmr1.renderer.v1 import renderer_pb2_grpc

from wmkit import convert
from wmkit.clients.base import Client, each, whole_text
from wmkit.domain.errors import WMError
from wmkit.domain.transition import ImageRequest, Rendering
from wmkit.rpc.status import decode


@dataclass(frozen=True, slots=True)
class Page:
    """All that can be asked of one page; in a batch its answer comes back under `key`.

    `html_digest` names HTML in the blob store, in place of `html`. `image` None makes no
    picture: elements and warnings only. `timeout_ms` 0 is the server's.
    """

    key: str
    html: str
    width_px: int
    height_px: int
    image: ImageRequest | None
    timeout_ms: int = 0
    html_digest: str = ""


class RendererClient(Client):
    """`wmkit.ports.Renderer` over gRPC, with batches besides."""

    _what = "the renderer"
    _stub_class = renderer_pb2_grpc.RendererServiceStub

    async def render(
        self, html: str, width_px: int, height_px: int, image: ImageRequest
    ) -> Rendering:
        """See `draw`."""
        return await self.draw(Page("", html, width_px, height_px, image))

    async def draw(self, page: Page) -> Rendering:
        """The page's picture, or the reason why there is none; `key` is not used.

        Raises InvalidRequest, BadHtml, NotFound for a digest without blob, BrowserCrashed,
        Overloaded, Unavailable, DeadlineExpired.
        """
        return convert.rendering_from_pb(await self._call(self._stub.Render, _request(page)))

    async def batch_render(
        self, pages: AsyncIterable[Page] | Iterable[Page]
    ) -> AsyncIterator[tuple[str, Rendering | WMError]]:
        """Many pages in one stream; `(key, answer)` in the order in which they finish."""

        async def requests() -> AsyncIterator[pb.BatchRenderRequest]:
            async for page in each(pages):
                yield pb.BatchRenderRequest(key=page.key, request=_request(page))

        async for message in self._exchange(self._stub.BatchRender, requests()):
            if message.WhichOneof("result") == "error":
                fault = message.error
                yield message.key, decode(fault.code, fault.message, fault.details, self._peer)
            else:
                yield message.key, convert.rendering_from_pb(message.response)


def _request(page: Page) -> pb.RenderRequest:
    image = convert.image_request_to_pb(page.image)
    if page.image is None:
        image.with_elements = True
    request = pb.RenderRequest(
        width_px=page.width_px, height_px=page.height_px, image=image, timeout_ms=page.timeout_ms
    )
    if page.html_digest:
        request.html_digest = page.html_digest
    else:
        with whole_text():
            request.html = page.html
    return request
