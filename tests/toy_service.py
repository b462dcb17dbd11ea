"""A world model over gRPC whose world is a fake: the servicer that foundation tests call.

Also a process: `python -m tests.toy_service` serves it as real services are served.
"""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from typing import Any

from wmr1.worldmodel.v1 import worldmodel_pb2 as pb
from wmr1.worldmodel.v1 import worldmodel_pb2_grpc

from wmkit import convert
from wmkit.domain.actions import Action, Back, Home
from wmkit.domain.errors import WMError
from wmkit.domain.transition import FailureReason
from wmkit.rpc.status import encode
from wmkit.settings import ServiceSettings
from wmkit.testing import FakeWorldModel

SERVICE = "wmr1.worldmodel.v1.WorldModelService"


def walk(state: str, action: Action) -> str | FailureReason:
    """Home stays, back fails, anything else moves on."""
    match action:
        case Home():
            return state
        case Back():
            return FailureReason.TRUNCATED
        case _:
            return state + "."


class ToyServicer(worldmodel_pb2_grpc.WorldModelServiceServicer):  # type: ignore[misc]
    """`before(method)` runs at the start of every call: it may raise, wait or look around."""

    def __init__(self, before: Callable[[str], Awaitable[None]] | None = None) -> None:
        self.world = FakeWorldModel(walk)
        self._before = before
        self.batches_closed = asyncio.Event()

    async def _begin(self, method: str) -> None:
        if self._before is not None:
            await self._before(method)

    async def CreateState(self, request: pb.CreateStateRequest, _: Any) -> pb.CreateStateResponse:
        await self._begin("CreateState")
        created = await self.world.create_state(
            convert.task_ref_from_pb(request.task),
            image=convert.image_request_from_pb(request.image),
        )
        return convert.created_to_pb(created)

    async def Step(self, request: pb.StepRequest, _: Any) -> pb.StepResponse:
        await self._begin("Step")
        found = await self.world.step(
            request.state_id,
            convert.action_from_pb(request.action),
            purpose=convert.purpose_from_pb(request.purpose),
            image=convert.image_request_from_pb(request.image),
        )
        return convert.transition_to_pb(found)

    async def BatchStep(
        self, requests: AsyncIterator[pb.BatchStepRequest], context: Any
    ) -> AsyncIterator[pb.BatchStepResponse]:
        try:
            async for item in requests:
                try:
                    response = await self.Step(item.request, context)
                except WMError as error:
                    status = encode(error)
                    fault = pb.StepError(
                        code=status.code, message=status.message, details=status.details
                    )
                    yield pb.BatchStepResponse(key=item.key, error=fault)
                else:
                    yield pb.BatchStepResponse(key=item.key, response=response)
        finally:
            self.batches_closed.set()

    async def GetState(self, request: pb.GetStateRequest, _: Any) -> pb.GetStateResponse:
        await self._begin("GetState")
        state = await self.world.get_state(request.state_id)
        return pb.GetStateResponse(state=convert.state_to_pb(state))

    async def GetScreenshot(
        self, request: pb.GetScreenshotRequest, _: Any
    ) -> pb.GetScreenshotResponse:
        image = convert.image_request_from_pb(request.image)
        assert image is not None
        return convert.screenshot_to_pb(await self.world.get_screenshot(request.state_id, image))

    async def Judge(self, request: pb.JudgeRequest, _: Any) -> pb.JudgeResponse:
        return convert.judgement_to_pb(
            await self.world.judge(convert.task_ref_from_pb(request.task), request.final_state_id)
        )

    async def ListTasks(self, request: pb.ListTasksRequest, _: Any) -> pb.ListTasksResponse:
        await self._begin("ListTasks")
        return pb.ListTasksResponse(
            templates=[convert.template_to_pb(each) for each in await self.world.list_tasks()]
        )


def register(servicer: ToyServicer) -> Callable[[Any], list[str]]:
    def add(server: Any) -> list[str]:
        worldmodel_pb2_grpc.add_WorldModelServiceServicer_to_server(servicer, server)
        return [SERVICE]

    return add


async def _run(settings: ServiceSettings) -> None:
    from wmkit.rpc.server import serve

    async def before(method: str) -> None:
        print(f"called {method}", flush=True)
        if method == "ListTasks":
            await asyncio.sleep(0.5)

    async def close() -> None:
        print("closed", flush=True)

    await serve(settings, "toy", register(ToyServicer(before)), close)


if __name__ == "__main__":
    from wmkit.entry import main

    main("toy", __doc__ or "", ServiceSettings, _run)
