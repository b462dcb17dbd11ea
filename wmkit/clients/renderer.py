"""Client of the renderer service."""

from collections.abc import AsyncIterable, AsyncIterator, Iterable
from dataclasses import dataclass

from wmr1.renderer.v1 import renderer_pb2 as pb
from wmr1.renderer.v1 import renderer_pb2_grpc

from wmkit import convert
from wmkit.clients.base import Client, each
from wmkit.domain.errors import WMError
from wmkit.domain.transition import ImageRequest, Rendering
from wmkit.rpc.status import decode


@dataclass(frozen=True, slots=True)
class Page:
    """One page of a batch; its answer comes back under `key`. `timeout_ms` 0 is the server's."""

    key: str
    html: str
    width_px: int
    height_px: int
    image: ImageRequest
    timeout_ms: int = 0


class RendererClient(Client):
    """`wmkit.ports.Renderer` over gRPC, with batches besides."""

    _what = "the renderer"
    _stub_class = renderer_pb2_grpc.RendererServiceStub

    async def render(
        self, html: str, width_px: int, height_px: int, image: ImageRequest
    ) -> Rendering:
        """The page's picture, or the reason why there is none.

        Raises InvalidRequest, BadHtml, BrowserCrashed, Overloaded, Unavailable,
        DeadlineExpired.
        """
        request = _request(Page("", html, width_px, height_px, image))
        return convert.rendering_from_pb(await self._call(self._stub.Render, request))

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
    return pb.RenderRequest(
        html=page.html,
        width_px=page.width_px,
        height_px=page.height_px,
        image=convert.image_request_to_pb(page.image),
        timeout_ms=page.timeout_ms,
    )
