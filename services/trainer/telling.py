"""What a run tells: milestones and progress to its watchers and the log, curves to a tracker,
and alarms.

It decides nothing but when something is worth a warning.
"""

from collections import Counter
from collections.abc import Sequence

import structlog

from services.trainer.events import EventLog
from services.trainer.recipe import Recipe
from services.trainer.summary import Findings
from services.trainer.tracking import Nothing, Tracker
from wmkit.domain.errors import WMError
from wmkit.domain.runs import RunEvent, RunStatus

log = structlog.get_logger(__name__)

LOST_ALARM = 0.1
"""Fraction of a phase's episodes without a verdict above which watchers are warned."""


class Teller:
    """`findings` says how far the run is; `tracker` is none until one is opened."""

    def __init__(self, run_id: str, recipe: Recipe, events: EventLog, findings: Findings) -> None:
        self._run_id = run_id
        self._recipe = recipe
        self._events = events
        self._findings = findings
        self.tracker: Tracker = Nothing()

    def milestone(self, phase: str, message: str, metrics: dict[str, float] | None = None) -> None:
        log.info(message, run_id=self._run_id, phase=phase)
        self._events.milestone(
            RunEvent(
                RunStatus.RUNNING,
                phase,
                self._findings.iterations,
                metrics=metrics or {},
                message=message,
            )
        )

    def progress(self, phase: str, done: int, total: int) -> None:
        iteration = self._findings.iterations + (phase == "train")
        self._events.progress(RunEvent(RunStatus.RUNNING, phase, iteration, done, total))

    def losses(self, where: str, reasons: Sequence[str]) -> None:
        """Warn about episodes without a verdict. `reasons`: one per episode, "" for a valid
        one. Raises WMError when not one is valid: something is broken for all of them."""
        lost = [reason for reason in reasons if reason]
        if len(lost) <= LOST_ALARM * len(reasons):
            return
        reason, count = Counter(lost).most_common(1)[0]
        message = f"{where}: {len(lost)} of {len(reasons)} episodes were lost, {count} to: {reason}"
        if len(lost) == len(reasons):
            raise WMError(message)
        self.milestone("train" if where.startswith("iter") else where, f"warning: {message}")

    def gap(self, gap: float, iteration: int) -> None:
        """Warn when sampler and trainer compute different log-probabilities."""
        alarm = self._recipe.loss.gap_alarm
        if gap > alarm:
            log.warning("log-probability gap", run_id=self._run_id, gap=gap, iteration=iteration)
            self.milestone(
                "train",
                f"warning: iteration {iteration}: sampler and trainer disagree by {gap:.4f} nats "
                f"a token (alarm at {alarm:g})",
            )
