"""Tasks as clients see them: a name, a goal sentence and limits. Predicates live elsewhere."""

from enum import StrEnum

from pydantic import BaseModel, ConfigDict


class TaskRef(BaseModel):
    """A task is named by its template and a seed."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    template: str
    seed: int

    def __str__(self) -> str:
        return f"{self.template}:{self.seed}"


class Task(BaseModel):
    """`complexity` = optimal number of actions, finish and answer not counted.

    `step_limit` = max(20, 2 * complexity), the L_max of the reward.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    ref: TaskRef
    goal: str
    complexity: int
    step_limit: int
    apps: tuple[str, ...]
    main_app: str
    kind: str
    wants_answer: bool = False


class TaskTemplate(BaseModel):
    """One family of tasks that a world model offers."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    name: str
    main_app: str
    apps: tuple[str, ...]
    kind: str
    example_goal: str


class Verdict(StrEnum):
    """UNSURE is masked out of training, never counted as a failure."""

    SUCCESS = "success"
    FAILURE = "failure"
    UNSURE = "unsure"


class Judgement(BaseModel):
    """A verdict with its evidence and the judge that spoke."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    verdict: Verdict
    reason: str
    judge: str
