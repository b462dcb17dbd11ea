"""`RendererService` on the wire: protobuf in, `LocalRenderer`, protobuf out."""

from collections.abc import AsyncIterator
from contextlib import aclosing
from typing import Any

import structlog
from wmr1.renderer.v1 import renderer_pb2 as pb
from wmr1.renderer.v1 import renderer_pb2_grpc as rpc

from services.renderer.engine import LocalRenderer, Request
from wmkit import convert
from wmkit.domain.errors import BadHtml, InvalidRequest, WMError
from wmkit.domain.transition import ImageRequest
from wmkit.ports import BlobStore
from wmkit.rpc import context as call_context
from wmkit.rpc import status
from wmkit.rpc.batches import answered

log = structlog.get_logger(__name__)

NAME: str = pb.DESCRIPTOR.services_by_name["RendererService"].full_name

_WIDTH_PX, _HEIGHT_PX = 1080, 2400


class RendererServicer(rpc.RendererServiceServicer):  # type: ignore[misc]
    """`batch_in_flight` bounds the pages of one BatchRender call that are worked on at once."""

    def __init__(self, renderer: LocalRenderer, blobs: BlobStore, batch_in_flight: int) -> None:
        self._renderer = renderer
        self._blobs = blobs
        self._batch_in_flight = batch_in_flight

    async def Render(self, request: pb.RenderRequest, _: Any) -> pb.RenderResponse:
        rendering = await self._renderer.answer(await self._read(request))
        return convert.rendering_to_pb(rendering)

    async def BatchRender(
        self, requests: AsyncIterator[pb.BatchRenderRequest], _: Any
    ) -> AsyncIterator[pb.BatchRenderResponse]:
        async with aclosing(answered(requests, self._answer, self._batch_in_flight)) as answers:
            async for done in answers:
                yield done

    async def _answer(self, item: pb.BatchRenderRequest) -> pb.BatchRenderResponse:
        try:
            response = await self.Render(item.request, None)
            return pb.BatchRenderResponse(key=item.key, response=response)
        except WMError as error:
            failed = status.encode(error)
        except Exception:
            request_id = call_context.trace() or call_context.new_trace()
            log.exception("page of a batch failed", key=item.key, request_id=request_id)
            failed = status.internal(request_id)
        fault = pb.RenderError(code=failed.code, message=failed.message, details=failed.details)
        return pb.BatchRenderResponse(key=item.key, error=fault)

    async def _read(self, request: pb.RenderRequest) -> Request:
        # Whoever says nothing about the picture wants to see it.
        image: ImageRequest | None = ImageRequest()
        if request.HasField("image"):
            image = convert.image_request_from_pb(request.image)
        if request.timeout_ms < 0:
            raise InvalidRequest(f"timeout_ms is {request.timeout_ms}", "timeout_ms")
        return Request(
            html=await self._html(request),
            width_px=request.width_px or _WIDTH_PX,
            height_px=request.height_px or _HEIGHT_PX,
            image=image,
            elements=request.image.with_elements,
            timeout_s=request.timeout_ms / 1000,
        )

    async def _html(self, request: pb.RenderRequest) -> str:
        match request.WhichOneof("source"):
            case "html":
                return str(request.html)
            case "html_digest":
                data = await self._blobs.get(request.html_digest)
                try:
                    return data.decode()
                except UnicodeDecodeError:
                    message = f"blob {request.html_digest} is no UTF-8 text"
                    raise BadHtml(message, "html_digest") from None
            case _:
                raise InvalidRequest("neither html nor html_digest is set", "html")
