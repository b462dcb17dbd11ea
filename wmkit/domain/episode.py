"""Jobs, episodes and trajectories: what is asked of a rollout worker and what it stores.

A trajectory holds everything needed to train on, replay and branch from, and no reward:
rewards are relative to a group and belong to the trainer.
"""

from enum import StrEnum
from typing import Any, Literal

from pydantic import BaseModel, ConfigDict, Field, model_validator

from wmkit.domain.tasks import Judgement, Task, TaskRef
from wmkit.domain.transition import FailureReason, Outcome

FORMAT_VERSION: Literal[1] = 1
Priority = Literal["high", "normal", "low"]
PRIORITIES: tuple[Priority, ...] = ("high", "normal", "low")
"""In the order in which jobs are handed out: a lower one waits while a higher one has any."""


class EpisodeSpec(BaseModel):
    """How an episode is played; part of the recipe, equal for all jobs of a phase."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    dialect: str = "wmr1_android"
    """How the agent writes actions; see `wmkit.domain.dialects`."""
    prompt: Literal["full", "compact"] = "full"
    """`full` documents actions and the tool; `compact` is for the tiny policy."""
    backend: str = ""
    """World-model backend; empty takes the server's default."""
    image_scale: float = Field(1.0, gt=0, le=4)
    """Screenshot pixels per CSS pixel."""
    history: int = Field(3, ge=1)
    """Real screens kept in the prompt, the current one included."""
    temperature: float = Field(1.0, ge=0)
    max_new_tokens: int = Field(512, ge=1)
    """Limit for one stretch of generation between two world-model calls."""
    max_calls_per_thought: int = Field(5, ge=0)
    """World-model calls answered within one step; 0 takes the tool away."""
    max_calls: int = Field(5, ge=0)
    """World-model calls answered within one episode: n_max of the reward."""
    retry_unparsable: bool = False
    """Once per step, tell the agent why its action could not be read and let it write again;
    False ends the episode there."""
    timeout_s: float = Field(300.0, gt=0)
    """Deadline of one episode."""
    mixed_versions: bool = False
    """Whether an episode may go on under a newer policy version; else it is played again."""


class Branch(BaseModel):
    """Where a branch begins: before step `root` of the trajectory in the blob `trajectory`.

    It is played on for at most `horizon` steps.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    trajectory: str
    root: int = Field(ge=0)
    horizon: int = Field(ge=1)


class Job(BaseModel):
    """One episode to play. `group` and `member` place it among its siblings."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    job_id: str
    run_id: str
    phase: str
    """Free label such as "train-3" or "evaluate-before"; results are counted per phase."""
    task: TaskRef
    group: int
    member: int
    seed: int
    """Sampling seed of this episode."""
    transition_seed: int = 0
    """Seed of sampled world models; equal for all members of a group."""
    policy_id: str = ""
    min_version: int = 0
    """The policy that plays it must be at least this version."""
    spec: EpisodeSpec
    branch: Branch | None = None
    """None plays the task from its start."""
    priority: Priority = "normal"
    recipe: str = ""
    """Digest of the resolved recipe that asks for it."""
    attempt: int = 0


class ImageRef(BaseModel):
    """A picture inside a segment, in the order of its placeholders."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    digest: str
    grid_thw: tuple[int, int, int]


class Segment(BaseModel):
    """The unit of training: one committed step's prompt, thought, imagined turns and action.

    The four lists have equal length: token ids as the model saw them, mask 1 where the
    policy sampled the token, the log-probability it was sampled with (0 elsewhere) and the
    policy version (-1 elsewhere).
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    token_ids: tuple[int, ...]
    mask: tuple[int, ...]
    logprobs: tuple[float, ...]
    versions: tuple[int, ...]
    images: tuple[ImageRef, ...]
    processor: str

    @model_validator(mode="after")
    def _lengths_agree(self) -> "Segment":
        if not len(self.token_ids) == len(self.mask) == len(self.logprobs) == len(self.versions):
            raise ValueError("token_ids, mask, logprobs and versions must have equal length")
        return self


class Imagined(BaseModel):
    """One world-model call inside a thought. `parent` 0 is the real screen, k an imagined one.

    `k` numbers the answered calls of the thought from 1; it is 0 for a call without a screen.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    k: int
    parent: int = 0
    text: str
    action: dict[str, Any] | None = None
    outcome: Outcome | None = None
    reason: FailureReason | None = None
    state_id: str = ""
    screenshot: str = ""
    answered: bool = False
    """Counts towards n: a screen came back."""
    cache_hit: bool = False
    note: str = ""
    """The sentence that the agent got instead of a screen."""


class Step(BaseModel):
    """One committed step, from the screen it was decided on to the state it led to."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    index: int
    state_id: str
    screen_id: str
    screenshot: str
    """Digest of the picture that the agent was shown."""
    seen_px: tuple[int, int] = (0, 0)
    """Width and height to which the policy's image processor brought it."""
    thought: str
    text: str
    """Everything the agent wrote in this step, imagined calls included."""
    imagined: tuple[Imagined, ...] = ()
    action: dict[str, Any] | None = None
    """Canonical action; None when it could not be read, then `parse_error` says why."""
    parse_error: str = ""
    retried: str = ""
    """Why the first answer could not be read, where the agent was given a second try."""
    outcome: Outcome | None = None
    """None for finish, answer and unparsable actions."""
    next_state_id: str = ""
    cache_hit: bool = False
    segment: Segment


class Ending(StrEnum):
    FINISH = "finish"
    ANSWER = "answer"
    STEP_LIMIT = "step_limit"
    UNPARSABLE = "unparsable"


class Trajectory(BaseModel):
    """A whole episode. `payloads` maps state ids to the blobs that rebuild them."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    format_version: Literal[1] = FORMAT_VERSION
    job: Job
    task: Task
    backend: str
    revision: str
    screen: dict[str, Any]
    steps: tuple[Step, ...]
    final_state_id: str
    final_screenshot: str
    ending: Ending
    answer: str | None = None
    finish_status: str | None = None
    judgement: Judgement
    payloads: dict[str, str]
    wall_s: float
    worker: str = ""
    trace: str = ""
    """Trace id of the attempt that was stored; the logs of all services carry it."""

    def canonical(self) -> dict[str, Any]:
        """All that follows from job, versions and seeds: no timings, worker, trace, cache marks."""
        data = self.model_dump(mode="json", exclude={"wall_s", "worker", "trace"})
        del data["job"]["attempt"]
        for step in data["steps"]:
            for marked in (step, *step["imagined"]):
                del marked["cache_hit"]
        return data

    @property
    def length(self) -> int:
        """L: accepted actions other than finish and answer; unparsable ones count."""
        return sum(
            1
            for step in self.steps
            if step.action is None or step.action["action"] not in ("finish", "answer")
        )

    @property
    def calls(self) -> int:
        """n: answered world-model calls."""
        return sum(call.answered for step in self.steps for call in step.imagined)

    @property
    def useful_calls(self) -> int:
        """u: answered calls in steps whose committed action differs from the first imagined one."""
        return sum(
            sum(call.answered for call in step.imagined)
            for step in self.steps
            if step.imagined and step.action != step.imagined[0].action
        )


class ResultStatus(StrEnum):
    """How a job ended; each job ends exactly once."""

    ACCEPTED = "accepted"
    MASKED = "masked"
    DEAD = "dead"


class Result(BaseModel):
    """The end of a job. ACCEPTED names the trajectory's blob, the others give a reason."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    job_id: str
    run_id: str
    phase: str
    group: int
    member: int
    status: ResultStatus
    trajectory: str = ""
    reason: str = ""


class DeadLetter(BaseModel):
    """A job that ended without an episode: for people, who may play it again.

    `traceback` is that of its last attempt; empty where no worker lived to tell.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    job: Job
    status: ResultStatus
    reason: str
    traceback: str = ""
