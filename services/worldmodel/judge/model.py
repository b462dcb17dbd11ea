"""A model as judge: it sees goal, first and last screen, actions and ending, and votes k times.

It has no part in making the world: an engine that is also the world model is refused when
the service starts. A predicate, where a task has one, is asked instead of it.
"""

import asyncio
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import structlog

from services.worldmodel.engine import Ask, Identity, ModelClient
from services.worldmodel.engine.wire import Refused
from services.worldmodel.judge.verdict import SCHEMA, Vote, count, read_vote
from services.worldmodel.learned import prompts, shots
from wmkit.domain.actions import Action
from wmkit.domain.dialects.canonical import describe
from wmkit.domain.errors import EngineDown, InvalidRequest
from wmkit.domain.resize import ResizeRule
from wmkit.domain.tasks import Judgement, Verdict

log = structlog.get_logger(__name__)

MAX_TOKENS = 1024
PICTURE = ResizeRule(factor=32, min_pixels=3136, max_pixels=2_000_000)
_PROMPT = Path(__file__).parent / "prompt.toml"
_NEEDS = ("goal", "actions", "ending")


@dataclass(frozen=True, slots=True)
class Case:
    """What is judged. Pictures are encoded; `first` is empty where it is not known.

    `actions` is None where nobody kept a log. `answer` and `finish_status` are how the agent
    ended the episode itself.
    """

    goal: str
    first: bytes
    last: bytes
    actions: Sequence[Action] | None = None
    answer: str | None = None
    finish_status: str | None = None


class ModelJudge:
    """`votes` is odd. Raises InvalidRequest where the judge is also one of the world models."""

    def __init__(
        self,
        engine: ModelClient,
        *,
        votes: int = 3,
        worlds: Sequence[Identity] = (),
        prompt_file: str = "",
    ) -> None:
        if votes < 1 or votes % 2 == 0:
            raise InvalidRequest(f"a judge has an odd number of votes, not {votes}", "judge_votes")
        for world in worlds:
            if world.same(engine.endpoint):
                raise InvalidRequest(
                    f"the judge is the world model itself ({world.place}): it would judge "
                    "screens that it made up; set WMR1_JUDGE_URL or WMR1_JUDGE_MODEL to another",
                    field="judge_model",
                )
        self._engine = engine
        self._votes = votes
        self._forced = True
        self._prompt = prompts.read(
            prompt_file or _PROMPT, needs=_NEEDS, setting="WMR1_JUDGE_PROMPT_FILE"
        )
        self.name = f"model:{engine.endpoint.model}"

    async def judge(self, case: Case) -> Judgement:
        """The verdict of more than half of the votes, else UNSURE.

        Raises EngineDown, Overloaded, DeadlineExpired: a judge that is down says nothing
        about an episode.
        """
        messages = await asyncio.to_thread(self.messages, case)
        # A greedy model would vote k times the same.
        temperature = 0.0 if self._votes == 1 else None
        ask = Ask(messages, MAX_TOKENS, temperature=temperature, schema=SCHEMA)
        try:
            async with asyncio.TaskGroup() as group:
                asked = [
                    group.create_task(self._vote(replace(ask, seed=seed)))
                    for seed in range(self._votes)
                ]
        except* Exception as faults:
            raise _first(faults) from None
        return count([task.result() for task in asked], self.name)

    def messages(self, case: Case) -> list[Mapping[str, Any]]:
        """System text, then the screens before the words."""
        prompt = self._prompt.fill(
            {"goal": case.goal, "actions": _log(case.actions), "ending": _ending(case)}
        )
        content: list[Mapping[str, Any]] = []
        for title, picture in (("First screen:", case.first), ("Last screen:", case.last)):
            if picture:
                shown = shots.fit(shots.decode(picture), PICTURE)
                content += [{"type": "text", "text": title}, shots.image_part(shown)]
        content.append({"type": "text", "text": prompt.user})
        user = {"role": "user", "content": content}
        return [{"role": "system", "content": prompt.system}, user] if prompt.system else [user]

    async def close(self) -> None:
        await self._engine.close()

    async def _vote(self, ask: Ask) -> Vote:
        if not self._forced:
            ask = replace(ask, schema=None)
        try:
            answer = await self._engine.complete(ask)
        except Refused as refused:
            if ask.schema is None:
                raise EngineDown(f"{self._engine.endpoint.place} refuses: {refused}") from None
            log.warning("the judge's server cannot force a schema", said=str(refused))
            self._forced = False
            answer = await self._engine.complete(replace(ask, schema=None))
        if answer.finish_reason != "stop":
            return Vote(Verdict.UNSURE, f"the judge's answer ended with {answer.finish_reason}")
        return read_vote(answer.text)


def _first(faults: BaseExceptionGroup[Any]) -> BaseException:
    fault: BaseException = faults
    while isinstance(fault, BaseExceptionGroup):
        fault = fault.exceptions[0]
    return fault


def _log(actions: Sequence[Action] | None) -> str:
    if actions is None:
        return "(not known)"
    if not actions:
        return "(none)"
    return "\n".join(f"{i}. {describe(action)}" for i, action in enumerate(actions, 1))


def _ending(case: Case) -> str:
    if case.answer is not None:
        return f"it was answered: {case.answer!r}"
    match case.finish_status:
        case "success":
            return "the goal was declared to be reached"
        case "infeasible":
            return "the goal was declared to be impossible"
        case None:
            return "nothing was declared"
    return f"{case.finish_status} was declared"
