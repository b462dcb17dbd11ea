"""Client of the world-model service."""

import uuid
from collections.abc import AsyncIterable, AsyncIterator, Iterable, Sequence
from dataclasses import dataclass

from wmr1.worldmodel.v1 import worldmodel_pb2 as pb
from wmr1.worldmodel.v1 import worldmodel_pb2_grpc

from wmkit import convert
from wmkit.clients.base import Client, each, whole_text
from wmkit.domain.actions import Action
from wmkit.domain.errors import InvalidRequest, WMError
from wmkit.domain.sources import StateSource
from wmkit.domain.tasks import Judgement, TaskRef, TaskTemplate
from wmkit.domain.transition import (
    Backend,
    Element,
    ImageRequest,
    Purpose,
    Rendering,
    State,
    Transition,
)
from wmkit.ports import Created
from wmkit.rpc.status import decode


@dataclass(frozen=True, slots=True)
class StepCall:
    """One step of a batch; its answer comes back under `key`."""

    key: str
    state_id: str
    action: Action
    purpose: Purpose = Purpose.COMMIT
    seed: int = 0
    image: ImageRequest | None = None
    pin: bool = False
    goal: str = ""


class WorldModelClient(Client):
    """`wmkit.ports.WorldModel` over gRPC, with HTML, payloads and batches besides."""

    _what = "the world model"
    _stub_class = worldmodel_pb2_grpc.WorldModelServiceStub

    async def create_state(
        self,
        source: StateSource,
        /,
        *,
        backend: str = "",
        image: ImageRequest | None = None,
        pin: bool = False,
    ) -> Created:
        """A state from a task, HTML, a screenshot, or the payload of an earlier state.

        Raises UnknownTask, UnknownBackend, BadHtml, InvalidRequest, StateNotFound,
        Unavailable.
        """
        with whole_text():
            request = convert.source_to_pb(source)
        request.MergeFrom(
            pb.CreateStateRequest(
                backend=backend, image=convert.image_request_to_pb(image), pin=pin
            )
        )
        return convert.created_from_pb(await self._call(self._stub.CreateState, request))

    async def step(
        self,
        state_id: str,
        action: Action,
        *,
        purpose: Purpose = Purpose.COMMIT,
        seed: int = 0,
        image: ImageRequest | None = None,
        pin: bool = False,
        goal: str = "",
    ) -> Transition:
        """What the action leads to. A fault of the simulated world is outcome FAILED.

        Raises StateNotFound, InvalidAction, Unavailable, DeadlineExpired.
        """
        request = _step(StepCall("", state_id, action, purpose, seed, image, pin, goal))
        return convert.transition_from_pb(await self._call(self._stub.Step, request))

    async def batch_step(
        self, calls: AsyncIterable[StepCall] | Iterable[StepCall]
    ) -> AsyncIterator[tuple[str, Transition | WMError]]:
        """Many steps in one stream; `(key, answer)` in the order in which they finish.

        A step that fails as a call of its own would have comes as its error, the others go
        on. Raises what ends the stream as a whole.
        """
        refused: list[tuple[str, WMError]] = []

        async def requests() -> AsyncIterator[pb.BatchStepRequest]:
            async for call in each(calls):
                try:
                    request = _step(call)
                except WMError as error:
                    refused.append((call.key, error))
                else:
                    yield pb.BatchStepRequest(key=call.key, request=request)

        async for message in self._exchange(self._stub.BatchStep, requests()):
            while refused:
                yield refused.pop()
            if message.WhichOneof("result") == "error":
                fault = message.error
                yield message.key, decode(fault.code, fault.message, fault.details, self._peer)
            else:
                yield message.key, convert.transition_from_pb(message.response)
        for answer in refused:
            yield answer

    async def get_state(self, state_id: str) -> State:
        request = pb.GetStateRequest(state_id=state_id)
        answer = await self._call(self._stub.GetState, request)
        return convert.state_from_pb(answer.state)

    async def get_html(self, state_id: str) -> str:
        """The state's screen as an HTML document."""
        request = pb.GetStateRequest(state_id=state_id, with_html=True)
        html: str = (await self._call(self._stub.GetState, request)).html
        return html

    async def get_payload(self, state_id: str) -> bytes:
        """The bytes from which the state can be rebuilt."""
        request = pb.GetStateRequest(state_id=state_id, with_payload=True)
        payload: bytes = (await self._call(self._stub.GetState, request)).payload
        return payload

    async def get_screenshot(self, state_id: str, image: ImageRequest) -> Rendering:
        request = pb.GetScreenshotRequest(
            state_id=state_id, image=convert.image_request_to_pb(image)
        )
        return convert.screenshot_from_pb(await self._call(self._stub.GetScreenshot, request))

    async def get_elements(self, state_id: str) -> tuple[Element, ...]:
        """What is drawn, with its boxes; no picture is made."""
        request = pb.GetScreenshotRequest(state_id=state_id)
        request.image.with_elements = True
        answer = await self._call(self._stub.GetScreenshot, request)
        return convert.screenshot_from_pb(answer).elements

    async def judge(
        self,
        task: TaskRef | None,
        final_state_id: str,
        *,
        answer: str | None = None,
        finish_status: str | None = None,
        goal: str = "",
        first_state_id: str = "",
        actions: Sequence[Action] | None = None,
        request_id: str = "",
    ) -> Judgement:
        """The verdict on an episode; see `wmkit.ports.WorldModel.judge`.

        Without a `request_id` the call has one of its own, so that a retry of the channel is
        not judged twice. Raises InvalidRequest for an id that was used for another question.
        """
        request = pb.JudgeRequest(
            final_state_id=final_state_id,
            goal=goal,
            first_state_id=first_state_id,
            request_id=request_id or uuid.uuid4().hex,
        )
        if task is not None:
            request.task.CopyFrom(convert.task_ref_to_pb(task))
        if actions is not None:
            request.actions.CopyFrom(convert.action_log_to_pb(actions))
        if answer is not None:
            request.answer = answer
        if finish_status is not None:
            request.finish_status = finish_status
        return convert.judgement_from_pb(await self._call(self._stub.Judge, request))

    async def list_backends(self) -> Sequence[Backend]:
        answer = await self._call(self._stub.ListBackends, pb.ListBackendsRequest())
        return [convert.backend_from_pb(backend) for backend in answer.backends]

    async def list_tasks(self) -> Sequence[TaskTemplate]:
        answer = await self._call(self._stub.ListTasks, pb.ListTasksRequest())
        return [convert.template_from_pb(template) for template in answer.templates]


def _step(call: StepCall) -> pb.StepRequest:
    action = convert.action_to_pb(call.action)
    try:
        return pb.StepRequest(
            state_id=call.state_id,
            action=action,
            purpose=convert.purpose_to_pb(call.purpose),
            seed=call.seed,
            image=convert.image_request_to_pb(call.image),
            goal=call.goal,
            pin=call.pin,
        )
    except ValueError as error:
        raise InvalidRequest(f"the step cannot be sent: {error}") from None
