"""The world model itself: the port `wmkit.ports.WorldModel` over states, transitions, pictures.

Knows domain types only; protobuf is the servicer's, Redis and Chromium are further down.
Imagining and committing take the same path: `purpose` is counted and has no other effect.
"""

import time
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from services.worldmodel.backends import Registry, WorldBackend
from services.worldmodel.creation import Creation
from services.worldmodel.judge import ModelJudge
from services.worldmodel.judging import Judging, look
from services.worldmodel.metrics import PICTURES, steps
from services.worldmodel.pictures import Pictures
from services.worldmodel.states import Live, States
from services.worldmodel.transitions import Source, Transitions
from services.worldmodel.verdicts import Verdicts
from wmkit.domain.actions import TERMINAL, Action, to_dict
from wmkit.domain.errors import BadHtml, InvalidAction, Unavailable
from wmkit.domain.sources import FromHtml, StateSource
from wmkit.domain.tasks import Judgement, TaskRef, TaskTemplate
from wmkit.domain.transition import (
    Backend,
    Element,
    FailureReason,
    ImageRequest,
    Outcome,
    Provenance,
    Purpose,
    Rendering,
    State,
    Transition,
)
from wmkit.ports import BlobStore, Created


class World:
    """One server's world model. Errors are those of `wmkit.domain.errors`.

    Without a `model_judge` only predicates judge; without `verdicts` request ids are not
    remembered.
    """

    def __init__(
        self,
        registry: Registry,
        states: States,
        transitions: Transitions,
        pictures: Pictures,
        blobs: BlobStore,
        model_judge: ModelJudge | None = None,
        verdicts: Verdicts | None = None,
    ) -> None:
        self._registry = registry
        self._states = states
        self._transitions = transitions
        self._pictures = pictures
        self._blobs = blobs
        self._creation = Creation(registry, blobs)
        self._judging = Judging(registry, states, pictures, model_judge)
        self._verdicts = verdicts

    async def create_state(
        self,
        source: StateSource,
        /,
        *,
        backend: str = "",
        image: ImageRequest | None = None,
        pin: bool = False,
    ) -> Created:
        """The state that a task starts from, that a caller's screen is, or that was before.

        Raises UnknownBackend, UnknownTask, InvalidRequest and PayloadTooLarge for a screen
        that is none, StateNotFound for a payload that gives no such state; BadHtml (of the
        caller's HTML) or Unavailable when a picture is asked for and cannot be made: an
        episode without a first screen cannot begin.
        """
        model = self._registry.get(backend)
        made, value = await self._creation.start(model, source)
        state = await self._states.put(model, value)
        if pin:
            await self._states.pin(state)
        if image is None:
            return Created(state, made, None)
        live = Live(state, value)
        drawn = await self._draw(model, live, image)
        if drawn.reason is not None:
            if isinstance(source, FromHtml):
                raise BadHtml(f"the HTML cannot be drawn: {drawn.reason}", field="html.html")
            what = source if isinstance(source, TaskRef) else f"state {state.state_id}"
            raise Unavailable(f"the first screen of {what} could not be drawn: {drawn.reason}")
        return Created(state, made, drawn.image, drawn.elements)

    async def step(
        self,
        state_id: str,
        action: Action,
        *,
        purpose: Purpose,
        seed: int = 0,
        image: ImageRequest | None = None,
        pin: bool = False,
        goal: str = "",
    ) -> Transition:
        """What an action leads to; a fault of the simulated world is outcome FAILED.

        `goal` is for backends that read it; to all others it makes no difference. Raises
        StateNotFound, InvalidAction for an action that ends an episode or that the backend
        has no word for, Unavailable, Overloaded.
        """
        if isinstance(action, TERMINAL):
            raise InvalidAction(
                f"{action.name} ends an episode and changes no world; it is not stepped",
                field="action",
            )
        begin = time.perf_counter()
        before = await self._states.get(state_id)
        model = self._registry.get(before.state.backend)
        try:
            found, source = await self._transitions.step(
                model, before, action, seed, goal=goal, look=lambda: self._look(model, before)
            )
        except _UnseenError as unseen:
            steps(purpose, Outcome.FAILED, Source.COMPUTED).inc()
            provenance = Provenance(model.name, model.revision, step_ms=_ms_since(begin))
            return Transition(Outcome.FAILED, provenance, reason=unseen.reason)
        if pin:
            await self._transitions.pin(found)
        step_ms = _ms_since(begin)
        outcome, state, reason = found.outcome, found.state, found.reason
        drawn = Rendering(None)
        if state is not None and image is not None:
            drawn = await self._draw(model, await self._states.get(state.state_id), image)
            if drawn.reason is not None:
                outcome, state, reason = Outcome.FAILED, None, drawn.reason
        steps(purpose, outcome, source).inc()
        return Transition(
            outcome=outcome,
            provenance=Provenance(
                backend=model.name,
                revision=model.revision,
                cache_hit=source is not Source.COMPUTED,
                tokens=found.tokens,
                finish_reason=found.finish_reason,
                step_ms=step_ms,
                render_ms=drawn.render_ms,
                warnings=found.warnings,
            ),
            state=state,
            reason=reason,
            image=drawn.image,
            elements=drawn.elements,
        )

    async def get_state(self, state_id: str) -> State:
        return (await self._states.get(state_id)).state

    async def html(self, state_id: str) -> str:
        """The state's screen as a document; empty where it is a picture."""
        live = await self._states.get(state_id)
        return self._registry.get(live.state.backend).html(await self._states.value(live))

    async def payload(self, state_id: str) -> bytes:
        """The bytes from which the state can be rebuilt."""
        live = await self._states.get(state_id)
        await self._states.value(live)
        return await self._blobs.get(live.state.payload_digest)

    async def elements(self, state_id: str) -> tuple[Element, ...]:
        """What is drawn, from the backend's own layout; no picture is made."""
        live = await self._states.get(state_id)
        return self._registry.get(live.state.backend).elements(await self._states.value(live))

    async def get_screenshot(self, state_id: str, image: ImageRequest) -> Rendering:
        live = await self._states.get(state_id)
        return await self._draw(self._registry.get(live.state.backend), live, image)

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
        """The verdict of the task's predicate or of the model judge; see `judging`.

        Calls of one `request_id` get one verdict; see `verdicts`. Raises UnknownTask,
        StateNotFound, InvalidRequest, Unavailable.
        """

        async def judge() -> Judgement:
            return await self._judging.judge(
                task,
                final_state_id,
                answer=answer,
                finish_status=finish_status,
                goal=goal,
                first_state_id=first_state_id,
                actions=actions,
            )

        if not request_id or self._verdicts is None:
            return await judge()
        question = {
            "task": None if task is None else [task.template, task.seed],
            "screens": [first_state_id, final_state_id],
            "ended": [answer, finish_status],
            "goal": goal,
            "actions": None if actions is None else [to_dict(action) for action in actions],
        }
        return await self._verdicts.once(request_id, question, judge)

    async def list_backends(self) -> Sequence[Backend]:
        return [
            Backend(
                name=model.name,
                revision=model.revision,
                deterministic=model.deterministic,
                default=model is self._registry.default,
            )
            for model in self._registry
        ]

    async def list_tasks(self) -> Sequence[TaskTemplate]:
        """The task templates of all backends; what several offer is listed once."""
        every = [template for model in self._registry for template in model.templates()]
        return list({template.name: template for template in reversed(every)}.values())[::-1]

    async def _look(self, model: WorldBackend[Any], live: Live) -> bytes:
        seen = await look(self._pictures, model, live)
        if isinstance(seen, FailureReason):
            raise _UnseenError(seen)
        return seen

    async def _draw(self, model: WorldBackend[Any], live: Live, request: ImageRequest) -> Rendering:
        drawn = await self._pictures.get(model, live, request)
        result = "failed" if drawn.image is None else "cached" if drawn.cached else "drawn"
        PICTURES.labels(result).inc()
        if request.with_elements and drawn.image is not None:
            value = await self._states.value(live)
            drawn = replace(drawn, elements=model.elements(value))
        return drawn


class _UnseenError(Exception):
    """The screen before the step cannot be drawn, so a model cannot look at it.

    Never remembered as the transition's answer: the screen may be drawn another time.
    """

    def __init__(self, reason: FailureReason) -> None:
        super().__init__(reason)
        self.reason = reason


def _ms_since(begin: float) -> float:
    return (time.perf_counter() - begin) * 1000
