"""One step's thought: generation, world-model calls inside it, the action at its end.

A call steps the world model from the real state (or from a screen imagined earlier in the
same thought) and its answer goes into the conversation, nowhere else: the real state is an
input here and cannot be changed. Committing the action is `episode.py`'s work.
"""

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass

from services.rollout.failures import EpisodeFailed, infrastructure, patiently
from services.rollout.segments import BrokenSegment, SegmentBuilder
from wmkit.domain import dialects, prompts
from wmkit.domain.actions import TERMINAL, Action, to_dict
from wmkit.domain.dialects import ParseError
from wmkit.domain.episode import Imagined, Job, Segment
from wmkit.domain.errors import InvalidAction
from wmkit.domain.generation import (
    FinishReason,
    Generation,
    Picture,
    Sampling,
    Tokens,
    Turn,
)
from wmkit.domain.screen import Screen, View
from wmkit.domain.transcript import CALL_END, Call, Transcript, parse_thought
from wmkit.domain.transition import ImageRequest, Outcome, Purpose, State, Transition
from wmkit.ports import Policy, WorldModel

MAX_REFUSALS = 3
"""Calls refused in one thought before its author counts as unreadable: a bound for loops."""

MAX_FAILED = 3
"""Imaginations that may fail in one thought before further calls in it are refused."""


@dataclass(frozen=True, slots=True)
class Thought:
    """What the agent wrote in one step. `action` is None exactly when `parse_error` says why."""

    text: str
    thought: str
    imagined: tuple[Imagined, ...]
    action: Action | None
    parse_error: str
    segment: Segment
    view: View
    payloads: dict[str, str]
    """Payload blobs of the imagined states, by state id."""
    retried: str = ""
    """Why the first answer could not be read, where the agent was asked again."""


@dataclass(frozen=True, slots=True)
class Players:
    """Who an episode is played against, and for how long an absent one is waited for."""

    world: WorldModel
    policy: Policy
    patience_s: float


class Thinker:
    """Writes one step of an episode; used once. `calls_left` = calls that the episode has left.

    `play_id` names this attempt at the job, so that a repeated call to the policy is known as
    the same one and a second attempt's is not.
    """

    def __init__(
        self,
        players: Players,
        job: Job,
        goal: str,
        play_id: str,
        step: int,
        state: State,
        calls_left: int,
    ) -> None:
        self._players = players
        self._job = job
        self._goal = goal
        self._spec = job.spec
        self._play_id = play_id
        self._step = step
        self._state = state
        self._dialect = dialects.get(job.spec.dialect)
        self._budget = min(calls_left, job.spec.max_calls_per_thought)
        self._budget_of = (
            job.spec.max_calls_per_thought if self._budget < calls_left else job.spec.max_calls
        )
        self._segment = SegmentBuilder()
        self._imagined: list[Imagined] = []
        self._screens: list[State] = []  # imagined ones, the k-th at index k - 1
        self._payloads: dict[str, str] = {}
        self._refused = 0
        self._failed = 0
        self._retried = ""
        self._before = ("", "")  # text and thought of the answer that could not be read

    async def think(self, prompt: Sequence[Turn], real_screens: int) -> Thought:
        """Let the agent write the step that `prompt` asks for.

        `real_screens` = how many pictures the prompt holds; the last one is the current screen.
        Raises EpisodeFailed.
        """
        turns, text, stretch = list(prompt), "", 0
        while True:
            stretch += 1
            answer = await self._generate(turns, stretch)
            text += answer.text
            view = _view(self._state.screen, answer, real_screens)
            transcript = parse_thought(text)
            if answer.finish_reason is FinishReason.LENGTH:
                error = f"the answer was cut at {self._spec.max_new_tokens} tokens"
                return self._thought(text, transcript, view, None, error)
            if transcript.pending is not None:
                shown = await self._answer(transcript.pending, view)
                if self._refused > MAX_REFUSALS:
                    error = f"{self._refused} calls to the world model were refused in one thought"
                    return self._thought(text, transcript, view, None, error)
            else:
                action, error = self._read(transcript, view)
                if not error or self._retried or not self._spec.retry_unparsable:
                    return self._thought(text, transcript, view, action, error)
                # What is written from here on is read on its own: the failed answer would
                # count as a second action.
                self._retried = error
                self._before = (text, transcript.thought)
                shown, text = prompts.retry_turn(self._spec, error), ""
            turns += [Turn("assistant", (Tokens(answer.token_ids),)), shown]

    async def _generate(self, turns: Sequence[Turn], stretch: int) -> Generation:
        job = self._job
        sampling = Sampling(
            temperature=self._spec.temperature,
            max_new_tokens=self._spec.max_new_tokens,
            stop=(CALL_END,),
            seed=stretch_seed(job.seed, self._step, stretch),
        )
        with infrastructure(f"generating step {self._step}"):
            answer = await patiently(
                lambda: self._players.policy.generate(
                    turns,
                    sampling,
                    policy_id=job.policy_id,
                    min_version=job.min_version,
                    request_id=f"{self._play_id}/{self._step}/{stretch}",
                ),
                self._players.patience_s,
            )
        pictures = [p.digest for turn in turns for p in turn.parts if isinstance(p, Picture)]
        try:
            self._segment.add(answer, pictures)
        except BrokenSegment as error:
            raise EpisodeFailed(f"step {self._step}: {error}", retryable=False) from error
        return answer

    def _read(self, transcript: Transcript, view: View) -> tuple[Action | None, str]:
        if transcript.answer_start is None:
            return None, transcript.problems[-1].rstrip(".")
        parsed = self._dialect.parse(transcript.answer_text, view)
        if isinstance(parsed, ParseError):
            return None, parsed.reason
        return parsed.action, ""

    async def _answer(self, call: Call, view: View) -> Turn:
        """The turn that answers a call: an imagined screen, or one sentence."""
        if len(self._screens) >= self._budget:
            return self._refuse(call, prompts.over_budget(self._budget_of))
        if self._failed >= MAX_FAILED:
            return self._refuse(call, prompts.FAILED_IMAGINATION)
        if call.problem:
            return self._refuse(call, prompts.unparsable_call(call.problem))
        if call.parent > len(self._screens):
            problem = f"there is no imagined screen {call.parent}"
            return self._refuse(call, prompts.unparsable_call(problem))
        parsed = self._dialect.parse(call.text, view)
        if isinstance(parsed, ParseError):
            return self._refuse(call, prompts.unparsable_call(parsed.reason))
        action = parsed.action
        if isinstance(action, TERMINAL):
            problem = "this action ends the task and changes no screen"
            return self._refuse(call, prompts.unparsable_call(problem), action)
        start = self._screens[call.parent - 1] if call.parent else self._state
        try:
            where = f"in step {self._step}"
            found = await step(
                self._players, self._job, self._goal, start, action, Purpose.IMAGINE, where
            )
        except InvalidAction as error:
            return self._refuse(call, prompts.unparsable_call(error.message), action)
        return self._show(call, action, found)

    def _show(self, call: Call, action: Action, found: Transition) -> Turn:
        seen = Imagined(
            k=0,
            parent=call.parent,
            text=call.text,
            action=to_dict(action),
            outcome=found.outcome,
            reason=found.reason,
            cache_hit=found.provenance.cache_hit,
        )
        if found.state is None or found.image is None:
            self._failed += 1
            note = prompts.FAILED_IMAGINATION
            self._imagined.append(seen.model_copy(update={"note": note}))
            return prompts.refused_turn(self._spec, note)
        self._screens.append(found.state)
        self._payloads[found.state.state_id] = found.state.payload_digest
        known = {
            "k": len(self._screens),
            "state_id": found.state.state_id,
            "screenshot": found.image.digest,
            "answered": True,
        }
        self._imagined.append(seen.model_copy(update=known))
        return prompts.imagined_turn(
            self._spec, len(self._screens), self._budget, call.text, found.image.digest
        )

    def _refuse(self, call: Call, note: str, action: Action | None = None) -> Turn:
        self._refused += 1
        refused = Imagined(
            k=0,
            parent=call.parent,
            text=call.text,
            action=to_dict(action) if action is not None else None,
            note=note,
        )
        self._imagined.append(refused)
        return prompts.refused_turn(self._spec, note)

    def _thought(
        self, text: str, transcript: Transcript, view: View, action: Action | None, error: str
    ) -> Thought:
        text_before, thought_before = self._before
        return Thought(
            text=text_before + text,
            thought=f"{thought_before}\n{transcript.thought}".strip(),
            imagined=tuple(self._imagined),
            action=action,
            parse_error=error,
            segment=self._segment.build(),
            view=view,
            payloads=self._payloads,
            retried=self._retried,
        )


async def step(
    players: Players,
    job: Job,
    goal: str,
    start: State,
    action: Action,
    purpose: Purpose,
    where: str,
) -> Transition:
    """Step the world model, with a picture; `goal` is for models that read it.

    Raises InvalidAction and EpisodeFailed.
    """
    picture = ImageRequest(deliver="digest", scale=job.spec.image_scale)
    with infrastructure(f"stepping the world model {where}"):
        found = await patiently(
            lambda: players.world.step(
                start.state_id,
                action,
                purpose=purpose,
                seed=job.transition_seed,
                image=picture,
                goal=goal,
            ),
            players.patience_s,
        )
    if found.outcome is not Outcome.FAILED and (found.state is None or found.image is None):
        raise EpisodeFailed(f"a step without a screen came back {where}", retryable=True)
    return found


def stretch_seed(seed: int, step: int, stretch: int) -> int:
    """The sampling seed of one stretch of generation: in [0, 2^63), the same everywhere."""
    name = f"{seed}/{step}/{stretch}".encode()
    return int.from_bytes(hashlib.blake2b(name, digest_size=8).digest(), "big") >> 1


def _view(screen: Screen, answer: Generation, real_screens: int) -> View:
    shown = answer.images[real_screens - 1]
    return View((screen.width_px, screen.height_px), (shown.width_px, shown.height_px))
