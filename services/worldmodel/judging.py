"""Who judges an episode: the task's predicate where there is one, else the model judge.

A predicate sees hidden state and is the truth, so it always goes first. Pages of learned
world models have no hidden state; their episodes, and goals that are no task, are judged by
their screens.
"""

from collections.abc import Sequence
from typing import Any

from services.worldmodel.backends import Registry, WorldBackend
from services.worldmodel.backends.base import Seeing
from services.worldmodel.judge import Case, ModelJudge
from services.worldmodel.pictures import Pictures
from services.worldmodel.states import Live, States
from wmkit.domain.actions import Action
from wmkit.domain.errors import InvalidRequest
from wmkit.domain.tasks import Judgement, TaskRef, Verdict
from wmkit.domain.transition import FailureReason, ImageRequest

_STATUSES = ("success", "infeasible")


class Judging:
    """`model_judge` is None where the server has none."""

    def __init__(
        self,
        registry: Registry,
        states: States,
        pictures: Pictures,
        model_judge: ModelJudge | None,
    ) -> None:
        self._registry = registry
        self._states = states
        self._pictures = pictures
        self._model_judge = model_judge

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
    ) -> Judgement:
        """See `wmkit.ports.WorldModel.judge`."""
        if finish_status is not None and finish_status not in _STATUSES:
            raise InvalidRequest(
                f"finish_status is one of {', '.join(_STATUSES)}, not {finish_status!r}",
                field="finish_status",
            )
        if task is None and not goal.strip():
            raise InvalidRequest("name a task or a goal to judge by", field="goal")
        last = await self._states.get(final_state_id)
        model = self._registry.get(last.state.backend)
        if task is not None and not isinstance(model, Seeing):
            value = await self._states.value(last)
            return model.judge(task, value, answer, finish_status)
        if self._model_judge is None:
            raise InvalidRequest(
                "this server has no model judge; set WMR1_JUDGE_URL and WMR1_JUDGE_MODEL",
                field="task" if goal == "" else "goal",
            )
        first = await self._states.get(first_state_id) if first_state_id else None
        if task is not None:
            made, value = model.start(task)
            goal = goal or made.goal
            first = first or Live(await self._states.put(model, value), value)
        pictures = [b"" if live is None else await self._show(live) for live in (first, last)]
        for which, picture in zip(("first", "last"), pictures, strict=True):
            if isinstance(picture, FailureReason):
                return Judgement(
                    verdict=Verdict.UNSURE,
                    reason=f"the {which} screen cannot be drawn: {picture}",
                    judge=self._model_judge.name,
                )
        shown = [picture for picture in pictures if isinstance(picture, bytes)]
        return await self._model_judge.judge(
            Case(goal, shown[0], shown[1], actions, answer, finish_status)
        )

    async def _show(self, live: Live) -> bytes | FailureReason:
        return await look(self._pictures, self._registry.get(live.state.backend), live)


async def look(pictures: Pictures, model: WorldBackend[Any], live: Live) -> bytes | FailureReason:
    """A state's screen at the size of the device, as a PNG; or why it cannot be drawn."""
    drawn = await pictures.get(model, live, ImageRequest("bytes", "png", 1.0))
    if drawn.image is None:
        assert drawn.reason is not None, "a rendering has a picture or a reason"
        return drawn.reason
    return drawn.image.data
