"""States, transitions, tasks and verdicts on the wire."""

from collections.abc import Sequence
from typing import Any

from wmr1.worldmodel.v1 import worldmodel_pb2 as pb

from wmkit.convert.actions import action_from_pb, action_to_pb
from wmkit.convert.enums import FAILURE, OUTCOME, PURPOSE, VERDICT
from wmkit.convert.pictures import (
    element_to_pb,
    elements_from_pb,
    image_from_pb,
    image_to_pb,
    reason_from_pb,
    reason_to_pb,
    screen_from_pb,
    screen_to_pb,
)
from wmkit.domain.actions import Action
from wmkit.domain.errors import InvalidRequest
from wmkit.domain.screen import Screen
from wmkit.domain.sources import FromHtml, FromPayload, FromScreenshot, StateSource
from wmkit.domain.tasks import Judgement, Task, TaskRef, TaskTemplate
from wmkit.domain.transition import (
    Backend,
    Outcome,
    Provenance,
    Purpose,
    Rendering,
    State,
    Transition,
)
from wmkit.ports import Created


def purpose_to_pb(purpose: Purpose) -> Any:
    return PURPOSE.to_pb(purpose)


def purpose_from_pb(number: int, field: str = "purpose") -> Purpose:
    return PURPOSE.from_pb(number, field)


def task_ref_to_pb(ref: TaskRef) -> pb.TaskRef:
    """Raises InvalidRequest for a seed beyond 64 bits."""
    try:
        return pb.TaskRef(template=ref.template, seed=ref.seed)
    except ValueError as error:
        raise InvalidRequest(f"task {ref.template!r} cannot be sent: {error}", "task") from None


def task_ref_from_pb(message: pb.TaskRef, field: str = "task") -> TaskRef:
    if not message.template:
        raise InvalidRequest(f"{field}.template is not set", f"{field}.template")
    return TaskRef(template=message.template, seed=message.seed)


def task_to_pb(task: Task) -> pb.Task:
    return pb.Task(
        ref=task_ref_to_pb(task.ref),
        goal=task.goal,
        complexity=task.complexity,
        step_limit=task.step_limit,
        apps=task.apps,
        main_app=task.main_app,
        kind=task.kind,
        wants_answer=task.wants_answer,
    )


def task_from_pb(message: pb.Task) -> Task:
    return Task(
        ref=task_ref_from_pb(message.ref, "task.ref"),
        goal=message.goal,
        complexity=message.complexity,
        step_limit=message.step_limit,
        apps=tuple(message.apps),
        main_app=message.main_app,
        kind=message.kind,
        wants_answer=message.wants_answer,
    )


def template_to_pb(template: TaskTemplate) -> pb.TaskTemplate:
    return pb.TaskTemplate(
        name=template.name,
        main_app=template.main_app,
        apps=template.apps,
        kind=template.kind,
        example_goal=template.example_goal,
    )


def template_from_pb(message: pb.TaskTemplate) -> TaskTemplate:
    return TaskTemplate(
        name=message.name,
        main_app=message.main_app,
        apps=tuple(message.apps),
        kind=message.kind,
        example_goal=message.example_goal,
    )


def action_log_to_pb(actions: Sequence[Action]) -> pb.ActionLog:
    """Raises InvalidAction for answer and finish: how an episode ended is said elsewhere."""
    return pb.ActionLog(actions=[action_to_pb(action) for action in actions])


def action_log_from_pb(message: pb.ActionLog, field: str = "actions") -> tuple[Action, ...]:
    """Raises InvalidAction, as `action_from_pb` does."""
    return tuple(
        action_from_pb(action, f"{field}.actions[{i}]") for i, action in enumerate(message.actions)
    )


def judgement_to_pb(judgement: Judgement) -> pb.JudgeResponse:
    return pb.JudgeResponse(
        verdict=VERDICT.to_pb(judgement.verdict), reason=judgement.reason, judge=judgement.judge
    )


def judgement_from_pb(message: pb.JudgeResponse) -> Judgement:
    verdict = VERDICT.from_pb(message.verdict, "verdict")
    return Judgement(verdict=verdict, reason=message.reason, judge=message.judge)


def backend_to_pb(backend: Backend) -> pb.Backend:
    return pb.Backend(
        name=backend.name,
        revision=backend.revision,
        deterministic=backend.deterministic,
        default=backend.default,
    )


def backend_from_pb(message: pb.Backend) -> Backend:
    return Backend(message.name, message.revision, message.deterministic, message.default)


def state_to_pb(state: State) -> pb.State:
    return pb.State(
        state_id=state.state_id,
        screen_id=state.screen_id,
        backend=state.backend,
        revision=state.revision,
        screen=screen_to_pb(state.screen),
        payload_digest=state.payload_digest,
    )


def state_from_pb(message: pb.State, field: str = "state") -> State:
    if not message.state_id:
        raise InvalidRequest(f"{field}.state_id is not set", f"{field}.state_id")
    return State(
        state_id=message.state_id,
        screen_id=message.screen_id,
        backend=message.backend,
        revision=message.revision,
        screen=screen_from_pb(message.screen, f"{field}.screen"),
        payload_digest=message.payload_digest,
    )


def source_to_pb(source: StateSource) -> pb.CreateStateRequest:
    """A request with its `source` set and nothing else."""
    match source:
        case TaskRef():
            return pb.CreateStateRequest(task=task_ref_to_pb(source))
        case FromHtml(html, screen):
            message = pb.HtmlSource(html=html, screen=screen_to_pb(screen))
            return pb.CreateStateRequest(html=message)
        case FromScreenshot(data):
            return pb.CreateStateRequest(screenshot=pb.ScreenshotSource(data=data))
        case FromPayload(payload_digest, state_id):
            payload = pb.PayloadSource(payload_digest=payload_digest, state_id=state_id)
            return pb.CreateStateRequest(payload=payload)


def source_from_pb(message: pb.CreateStateRequest) -> StateSource:
    match message.WhichOneof("source"):
        case "task":
            return task_ref_from_pb(message.task)
        case "html":
            if not message.html.HasField("screen"):
                return FromHtml(message.html.html, Screen())
            return FromHtml(message.html.html, screen_from_pb(message.html.screen, "html.screen"))
        case "screenshot":
            return FromScreenshot(message.screenshot.data)
        case "payload":
            return FromPayload(message.payload.payload_digest, message.payload.state_id)
        case _:
            raise InvalidRequest(
                "a state is created from a task, html, a screenshot or a payload; "
                "task is not set, nor is another source",
                "task",
            )


def created_to_pb(created: Created) -> pb.CreateStateResponse:
    message = pb.CreateStateResponse(
        state=state_to_pb(created.state),
        elements=[element_to_pb(element) for element in created.elements],
    )
    if created.task is not None:
        message.task.CopyFrom(task_to_pb(created.task))
    if created.image is not None:
        message.image.CopyFrom(image_to_pb(created.image))
    return message


def created_from_pb(message: pb.CreateStateResponse) -> Created:
    return Created(
        state=state_from_pb(message.state),
        task=task_from_pb(message.task) if message.HasField("task") else None,
        image=image_from_pb(message.image) if message.HasField("image") else None,
        elements=elements_from_pb(message.elements),
    )


def transition_to_pb(transition: Transition) -> pb.StepResponse:
    origin = transition.provenance
    message = pb.StepResponse(
        outcome=OUTCOME.to_pb(transition.outcome),
        reason=reason_to_pb(transition.reason),
        elements=[element_to_pb(element) for element in transition.elements],
        provenance=pb.Provenance(
            backend=origin.backend,
            revision=origin.revision,
            cache_hit=origin.cache_hit,
            tokens=origin.tokens,
            finish_reason=origin.finish_reason,
            step_ms=origin.step_ms,
            render_ms=origin.render_ms,
            warnings=origin.warnings,
        ),
    )
    if transition.state is not None:
        message.state.CopyFrom(state_to_pb(transition.state))
    if transition.image is not None:
        message.image.CopyFrom(image_to_pb(transition.image))
    return message


def transition_from_pb(message: pb.StepResponse) -> Transition:
    """Raises InvalidRequest when FAILED comes without a reason or another without a state."""
    outcome = OUTCOME.from_pb(message.outcome, "outcome")
    failed = outcome is Outcome.FAILED
    origin = message.provenance
    return Transition(
        outcome=outcome,
        provenance=Provenance(
            backend=origin.backend,
            revision=origin.revision,
            cache_hit=origin.cache_hit,
            tokens=origin.tokens,
            finish_reason=origin.finish_reason,
            step_ms=origin.step_ms,
            render_ms=origin.render_ms,
            warnings=tuple(origin.warnings),
        ),
        state=None if failed else state_from_pb(message.state),
        reason=FAILURE.from_pb(message.reason, "reason") if failed else None,
        image=image_from_pb(message.image) if message.HasField("image") else None,
        elements=elements_from_pb(message.elements),
    )


def screenshot_to_pb(rendering: Rendering) -> pb.GetScreenshotResponse:
    message = pb.GetScreenshotResponse(
        reason=reason_to_pb(rendering.reason),
        elements=[element_to_pb(element) for element in rendering.elements],
        warnings=rendering.warnings,
    )
    if rendering.image is not None:
        message.image.CopyFrom(image_to_pb(rendering.image))
    return message


def screenshot_from_pb(message: pb.GetScreenshotResponse) -> Rendering:
    return Rendering(
        image=image_from_pb(message.image) if message.HasField("image") else None,
        reason=reason_from_pb(message.reason),
        elements=elements_from_pb(message.elements),
        warnings=tuple(message.warnings),
    )
