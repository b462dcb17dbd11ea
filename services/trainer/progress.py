"""Where a run stands between two iterations: everything but the learner, as one JSON document.

A resumed run that starts from it asks for the same jobs with the same seeds as the one that
was interrupted, and reads the results of those that have ended meanwhile.
"""

from typing import Any

from pydantic import BaseModel, ConfigDict

from services.trainer.evaluation import Row
from services.trainer.playing import Player
from services.trainer.publishing import Publisher
from services.trainer.rundir import RunDir
from services.trainer.summary import Findings, Transitions
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


def progress_of(
    findings: Findings, player: Player, publisher: Publisher, folder: RunDir, wall_s: float
) -> Progress:
    """Everything that `go_on` needs; `wall_s`, in seconds, is the run's age.

    Jobs of coming iterations may be out: the resumed run stands where the first of them began.
    """
    mark = player.standing(findings.iterations + 1)
    return Progress(
        iteration=findings.iterations,
        version=publisher.version,
        policy_id=publisher.policy_id,
        cursor=mark.cursor,
        sampler=player.sampler.state(),
        ahead=player.draws.after(findings.iterations),
        replay=player.replay.state(),
        before=findings.before,
        best=findings.best,
        transitions=mark.transitions,
        train_s=findings.train_s,
        wall_s=wall_s,
        files=folder.log_sizes() | {"trajectories.jsonl": mark.trajectories_bytes},
    )


def go_on(saved: Progress, findings: Findings, player: Player, publisher: Publisher) -> None:
    """Stand where `saved` stood."""
    publisher.version, publisher.policy_id = saved.version, saved.policy_id
    player.collector.go_to(saved.cursor)
    player.sampler.restore(saved.sampler)
    player.draws.recall(saved.ahead)
    player.replay.restore(saved.replay)
    findings.before, findings.transitions = saved.before, saved.transitions
    findings.iterations, findings.train_s = saved.iteration, saved.train_s
    findings.earlier_s = saved.wall_s
    findings.best = saved.best
