"""Where a run stands between two iterations: everything but the learner, as one JSON document.

A resumed run that starts from it asks for the same jobs with the same seeds as the one that
was interrupted, and reads the results of those that have ended meanwhile.
"""

from typing import Any

from pydantic import BaseModel, ConfigDict

from services.trainer.evaluation import Row
from services.trainer.summary import Transitions
from wmkit.domain.tasks import TaskRef


class Progress(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid", allow_inf_nan=False)

    iteration: int
    """Iterations that are done."""
    version: int
    """Policy version of the weights beside this document, published already."""
    policy_id: str
    cursor: str
    """Place in the queue's results up to which everything was read."""
    sampler: dict[str, Any]
    """`TaskSampler.state`."""
    ahead: dict[int, list[TaskRef]] = {}
    """Tasks drawn already for iterations to come, whose episodes may be out."""
    best: dict[str, float] | None = None
    """`Findings.best`."""
    replay: dict[str, Any] = {}
    """`SuccessReplay.state`."""
    before: list[Row]
    transitions: Transitions
    train_s: float
    wall_s: float
    files: dict[str, int]
    """Bytes of the run folder's logs at that time; what was appended later will come again."""
