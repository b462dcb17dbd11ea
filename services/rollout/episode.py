"""Plays one episode: a task, step by step, until it ends. Pure orchestration over ports.

Knows no queue, no wire and no clock but the deadline; gives no reward. The committed path is
the only state: imagined screens stay inside `thinking.py`. The rules are those of
`docs/rollout.md`.
"""

import asyncio
import time
import uuid
from dataclasses import asdict

from services.rollout.branching import find_root
from services.rollout.failures import EpisodeFailed, infrastructure, patiently
from services.rollout.thinking import Players, Thinker, Thought, step
from wmkit.domain import dialects, prompts
from wmkit.domain.actions import Action, Answer, Finish, to_dict
from wmkit.domain.episode import Ending, Job, Segment, Step, Trajectory
from wmkit.domain.errors import InvalidAction
from wmkit.domain.screen import View
from wmkit.domain.sources import StateSource
from wmkit.domain.tasks import Judgement, Task
from wmkit.domain.transition import FailureReason, ImageRequest, Outcome, Purpose, State, Transition
from wmkit.ports import BlobStore, Created, Policy, WorldModel


async def play(
    job: Job,
    *,
    world: WorldModel,
    policy: Policy,
    blobs: BlobStore | None = None,
    worker: str = "",
    trace: str = "",
    patience_s: float = 60.0,
) -> Trajectory:
    """Play the job's episode to its end and have it judged.

    `blobs` holds the trajectories that branches begin in. `patience_s`: how long a service
    that does not answer is waited for, per call.
    Raises EpisodeFailed when infrastructure, not the agent, ends it.
    """
    limit_s = job.spec.timeout_s
    try:
        async with asyncio.timeout(limit_s):
            episode = _Episode(job, Players(world, policy, patience_s))
            await (episode.start() if job.branch is None else episode.start_at_root(blobs))
            played = await episode.play()
            return played.model_copy(update={"worker": worker, "trace": trace})
    except TimeoutError as error:
        raise EpisodeFailed(f"not finished after {limit_s:g} s", retryable=True) from error


class _Episode:
    """The committed path so far."""

    def __init__(self, job: Job, players: Players) -> None:
        self._job = job
        self._players = players
        self._play_id = f"{job.job_id}/{uuid.uuid4().hex}"
        self._begin = time.monotonic()
        self._log: list[Action] = []
        self._steps: list[Step] = []
        self._screens: list[str] = []  # real ones, as digests, the current one last
        self._payloads: dict[str, str] = {}
        self._calls = 0  # answered world-model calls
        self._view: View | None = None
        self._first_state_id = ""
        self._version: int | None = None  # of the tokens sampled so far

    async def play(self) -> Trajectory:
        """From the state that it was started in to the verdict."""
        task, ending = self._task, None
        while ending is None:
            ending = await self._step(task)
        answer, status = self._said(ending)
        judgement = await self._judge(task, answer, status)
        screen = self._state.screen
        return Trajectory(
            job=self._job,
            task=task,
            backend=self._state.backend,
            revision=self._state.revision,
            screen=asdict(screen) | {"orientation": screen.orientation},
            steps=tuple(self._steps),
            final_state_id=self._state.state_id,
            final_screenshot=self._screens[-1],
            ending=ending,
            answer=answer,
            finish_status=status,
            judgement=judgement,
            payloads=self._payloads,
            wall_s=time.monotonic() - self._begin,
        )

    async def start(self) -> None:
        """Stand on the first screen of the job's task."""
        job = self._job
        created = await self._create(job.task, job.spec.backend, f"starting task {job.task}")
        if created.task is None or created.image is None:
            raise EpisodeFailed(f"task {job.task} came without a first screen", retryable=True)
        self._task, self._limit = created.task, created.task.step_limit
        self._arrive(created.state, created.image.digest)
        self._first_state_id = created.state.state_id

    async def start_at_root(self, blobs: BlobStore | None) -> None:
        """Stand where the job's branch begins, with the path of its trajectory behind."""
        branch = self._job.branch
        assert branch is not None and blobs is not None
        with infrastructure(f"reading trajectory {branch.trajectory}"):
            root = await patiently(lambda: find_root(branch, blobs), self._players.patience_s)
        # The judge may look at the first screen, and the world model may have forgotten it.
        first = await self._create(root.first, root.backend, "bringing a first state back")
        created = await self._create(root.state, root.backend, "bringing a root state back")
        if created.image is None:
            raise EpisodeFailed("the root of the branch came without a screen", retryable=True)
        self._task, self._limit = root.task, len(root.log) + branch.horizon
        self._steps, self._log = list(root.steps), list(root.log)
        self._screens = list(root.screens[:-1])
        self._payloads, self._calls, self._view = dict(root.payloads), root.calls, root.view
        self._first_state_id = first.state.state_id
        self._arrive(created.state, created.image.digest)

    async def _create(self, source: StateSource, backend: str, doing: str) -> Created:
        picture = ImageRequest(deliver="digest", scale=self._job.spec.image_scale)
        with infrastructure(doing):
            dialects.get(self._job.spec.dialect)
            return await patiently(
                lambda: self._players.world.create_state(source, backend=backend, image=picture),
                self._players.patience_s,
            )

    async def _step(self, task: Task) -> Ending | None:
        spec, index = self._job.spec, len(self._steps)
        left = spec.max_calls - self._calls if spec.max_calls_per_thought else 0
        shown = self._screens[-spec.history :]
        prompt = prompts.step_turns(spec, task, self._log, shown, left, view=self._view)
        thinker = Thinker(
            self._players, self._job, task.goal, self._play_id, index, self._state, left
        )
        thought = await thinker.think(prompt, len(shown))
        self._note_version(thought.segment)
        self._view = thought.view
        self._calls += sum(call.answered for call in thought.imagined)
        self._payloads |= thought.payloads
        action = thought.action
        if action is None:
            return self._end(thought, Ending.UNPARSABLE)
        if isinstance(action, Finish):
            return self._end(thought, Ending.FINISH)
        if isinstance(action, Answer):
            return self._end(thought, Ending.ANSWER)
        try:
            found = await self._commit(task, action, index)
        except InvalidAction as error:
            return self._end(thought, Ending.UNPARSABLE, error.message)
        self._record(thought, action=action, found=found)
        self._log.append(action)
        assert found.state is not None and found.image is not None
        self._arrive(found.state, found.image.digest)
        return Ending.STEP_LIMIT if len(self._log) >= self._limit else None

    def _note_version(self, segment: Segment) -> None:
        """Raises EpisodeFailed where the policy became another one and the recipe minds."""
        for version, sampled in zip(segment.versions, segment.mask, strict=True):
            if sampled and version != self._version:
                if self._version is not None and not self._job.spec.mixed_versions:
                    raise EpisodeFailed(
                        f"the policy went from version {self._version} to {version} meanwhile",
                        retryable=True,
                    )
                self._version = version

    async def _commit(self, task: Task, action: Action, index: int) -> Transition:
        where = f"at step {index}"
        found = await step(
            self._players, self._job, task.goal, self._state, action, Purpose.COMMIT, where
        )
        if found.outcome is Outcome.FAILED:
            # A fault of content comes back the same; only a slow renderer may do better.
            raise EpisodeFailed(
                f"the world model failed at step {index}: {found.reason}",
                retryable=found.reason is FailureReason.RENDER_TIMEOUT,
            )
        assert found.state is not None
        if found.state.revision != self._state.revision:
            raise EpisodeFailed("the world model changed its revision meanwhile", retryable=True)
        return found

    async def _judge(self, task: Task, answer: str | None, status: str | None) -> Judgement:
        with infrastructure("judging the end"):
            return await patiently(
                lambda: self._players.world.judge(
                    task.ref,
                    self._state.state_id,
                    answer=answer,
                    finish_status=status,
                    first_state_id=self._first_state_id,
                    actions=self._log,
                    request_id=f"{self._play_id}/judge",
                ),
                self._players.patience_s,
            )

    def _said(self, ending: Ending) -> tuple[str | None, str | None]:
        """What the agent answered and declared, where it ended the episode itself."""
        action = self._steps[-1].action
        if ending is Ending.ANSWER and action is not None:
            return action["text"], None
        if ending is Ending.FINISH and action is not None:
            return None, action["status"]
        return None, None

    def _arrive(self, state: State, screenshot: str) -> None:
        self._state = state
        self._screens.append(screenshot)
        self._payloads[state.state_id] = state.payload_digest

    def _end(self, thought: Thought, ending: Ending, refused: str = "") -> Ending:
        self._record(thought, action=None if refused else thought.action, refused=refused)
        return ending

    def _record(
        self,
        thought: Thought,
        *,
        action: Action | None,
        found: Transition | None = None,
        refused: str = "",
    ) -> None:
        after = found.state if found is not None else None
        self._steps.append(
            Step(
                index=len(self._steps),
                state_id=self._state.state_id,
                screen_id=self._state.screen_id,
                screenshot=self._screens[-1],
                seen_px=thought.view.model_px,
                thought=thought.thought,
                text=thought.text,
                imagined=thought.imagined,
                action=to_dict(action) if action is not None else None,
                parse_error=thought.parse_error or refused,
                retried=thought.retried,
                outcome=found.outcome if found is not None else None,
                next_state_id=after.state_id if after is not None else "",
                cache_hit=found is not None and found.provenance.cache_hit,
                segment=thought.segment,
            )
        )
