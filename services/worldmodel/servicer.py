"""`WorldModelService` on the wire: protobuf in, `World`, protobuf out. No decisions here.

Domain errors are turned into statuses by the server's guard; only BatchStep, whose
items fail one by one, encodes them itself.
"""

from collections.abc import AsyncGenerator, AsyncIterator
from contextlib import aclosing
from typing import Any

import structlog
from wmr1.common.v1 import common_pb2 as common
from wmr1.worldmodel.v1 import worldmodel_pb2 as pb
from wmr1.worldmodel.v1 import worldmodel_pb2_grpc as rpc

from services.worldmodel.world import World
from wmkit import convert
from wmkit.domain.errors import WMError
from wmkit.rpc import context as call_context
from wmkit.rpc import status
from wmkit.rpc.batches import answered

log = structlog.get_logger(__name__)

NAME = "wmr1.worldmodel.v1.WorldModelService"


class WorldModelServicer(rpc.WorldModelServiceServicer):  # type: ignore[misc]
    """`batch_in_flight` bounds the steps of one BatchStep call that are worked on at once."""

    def __init__(self, world: World, batch_in_flight: int) -> None:
        self._world = world
        self._batch_in_flight = batch_in_flight

    async def CreateState(self, request: pb.CreateStateRequest, _: Any) -> pb.CreateStateResponse:
        source = convert.source_from_pb(request)
        image = convert.image_request_from_pb(request.image)
        created = await self._world.create_state(
            source, backend=request.backend, image=image, pin=request.pin
        )
        response = convert.created_to_pb(created)
        if image is None and request.image.with_elements:
            await self._add_elements(response, created.state.state_id)
        return response

    async def Step(self, request: pb.StepRequest, _: Any) -> pb.StepResponse:
        image = convert.image_request_from_pb(request.image)
        transition = await self._world.step(
            request.state_id,
            convert.action_from_pb(request.action),
            purpose=convert.purpose_from_pb(request.purpose),
            seed=request.seed,
            image=image,
            pin=request.pin,
            goal=request.goal,
        )
        response = convert.transition_to_pb(transition)
        if image is None and request.image.with_elements and transition.state is not None:
            await self._add_elements(response, transition.state.state_id)
        return response

    async def BatchStep(
        self, requests: AsyncIterator[pb.BatchStepRequest], _: Any
    ) -> AsyncGenerator[pb.BatchStepResponse, None]:
        async with aclosing(answered(requests, self._answer, self._batch_in_flight)) as answers:
            async for done in answers:
                yield done

    async def GetState(self, request: pb.GetStateRequest, _: Any) -> pb.GetStateResponse:
        state = await self._world.get_state(request.state_id)
        response = pb.GetStateResponse(state=convert.state_to_pb(state))
        if request.with_html:
            response.html = await self._world.html(request.state_id)
        if request.with_payload:
            response.payload = await self._world.payload(request.state_id)
        return response

    async def GetScreenshot(
        self, request: pb.GetScreenshotRequest, _: Any
    ) -> pb.GetScreenshotResponse:
        image = convert.image_request_from_pb(request.image)
        if image is None and request.image.with_elements:
            response = pb.GetScreenshotResponse()
            await self._add_elements(response, request.state_id)
            return response
        if image is None:
            # Whoever calls this without a word on how wants to see the picture.
            request.image.delivery = common.DELIVERY_BYTES
            image = convert.image_request_from_pb(request.image)
            assert image is not None
        return convert.screenshot_to_pb(await self._world.get_screenshot(request.state_id, image))

    async def Judge(self, request: pb.JudgeRequest, _: Any) -> pb.JudgeResponse:
        judgement = await self._world.judge(
            convert.task_ref_from_pb(request.task) if request.HasField("task") else None,
            request.final_state_id,
            answer=request.answer if request.HasField("answer") else None,
            finish_status=request.finish_status if request.HasField("finish_status") else None,
            goal=request.goal,
            first_state_id=request.first_state_id,
            actions=convert.action_log_from_pb(request.actions)
            if request.HasField("actions")
            else None,
            request_id=request.request_id,
        )
        return convert.judgement_to_pb(judgement)

    async def ListBackends(self, _: pb.ListBackendsRequest, __: Any) -> pb.ListBackendsResponse:
        backends = await self._world.list_backends()
        return pb.ListBackendsResponse(backends=[convert.backend_to_pb(b) for b in backends])

    async def ListTasks(self, _: pb.ListTasksRequest, __: Any) -> pb.ListTasksResponse:
        templates = await self._world.list_tasks()
        return pb.ListTasksResponse(templates=[convert.template_to_pb(t) for t in templates])

    async def _answer(self, item: pb.BatchStepRequest) -> pb.BatchStepResponse:
        try:
            return pb.BatchStepResponse(key=item.key, response=await self.Step(item.request, None))
        except WMError as error:
            failed = status.encode(error)
        except Exception:
            request_id = call_context.trace() or call_context.new_trace()
            log.exception("step of a batch failed", key=item.key, request_id=request_id)
            failed = status.internal(request_id)
        answer = pb.StepError(code=failed.code, message=failed.message, details=failed.details)
        return pb.BatchStepResponse(key=item.key, error=answer)

    async def _add_elements(self, response: Any, state_id: str) -> None:
        """Boxes need no picture: they come from the backend's own layout."""
        elements = await self._world.elements(state_id)
        response.elements.extend(convert.element_to_pb(element) for element in elements)
