"""All runs of a trainer: validated, queued, trained one after the other, remembered.

One run trains at a time because the policy service holds one set of weights. This module
decides how a run *ends*; what it does is `services.trainer.run`.
"""

import asyncio
import difflib
import hashlib
import secrets
import time
from collections import deque
from collections.abc import AsyncIterator
from concurrent.futures import Executor
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path

import structlog

from services.trainer.events import EventLog
from services.trainer.recipe import Recipe
from services.trainer.recipe_toml import dumps, parse
from services.trainer.report import build_report
from services.trainer.run import Ports, Run
from services.trainer.rundir import RunDir
from services.trainer.summary import check_books, summarize
from services.trainer.world import World
from wmkit.domain.errors import (
    BadCheckpoint,
    InvalidRequest,
    RunNotFound,
    Unavailable,
    UnknownTask,
    WMError,
)
from wmkit.domain.runs import Run as RunView
from wmkit.domain.runs import RunEvent, RunStatus

log = structlog.get_logger(__name__)

REQUEST_ID_TTL_S = 600.0
LIST_LIMIT = 200


@dataclass(slots=True)
class Record:
    """A run as callers see it."""

    folder: RunDir
    status: RunStatus
    created: str
    """UTC, ISO 8601."""
    error: str = ""
    iteration: int = 0
    recipe: Recipe | None = None
    """None for runs of an earlier process."""
    events: EventLog = field(default_factory=EventLog)
    task: "asyncio.Task[None] | None" = None
    concluding: bool = False
    resume: bool = False
    elsewhere: bool = False
    """Another trainer that lives has it: this one only reads what stands on disk."""
    attempt: int = 0
    """How often it was brought to an early end, its outstanding jobs with it."""

    @property
    def run_id(self) -> str:
        return self.folder.run_id

    def view(self, *, with_summary: bool = True) -> RunView:
        path = self.folder.summary
        told = with_summary and self.status.ended and path.exists()
        return RunView(
            self.run_id,
            self.status,
            str(self.folder.path.resolve()),
            self.iteration,
            self.error,
            path.read_text("utf-8") if told else "",
        )

    def store(self) -> None:
        state = {
            "run_id": self.run_id,
            "status": self.status.value,
            "error": self.error,
            "created": self.created,
            "attempt": self.attempt,
        }
        self.folder.write_json("run.json", state)

    def set(self, status: RunStatus, error: str = "") -> None:
        """Change the status, on disk first; watchers of an ended run are told last."""
        self.status, self.error = status, error
        self.store()
        if status.ended:
            self.folder.release()
        message = error or {RunStatus.SUCCEEDED: "the run has ended"}.get(status, status.value)
        self.events.milestone(RunEvent(status, iteration=self.iteration, message=message))


class Runs:
    """Call `restore` once, keep `work` running, `close` at the end."""

    def __init__(
        self,
        folder: Path,
        ports: Ports,
        *,
        thread: Executor,
        device: str = "cpu",
        world: World | None = None,
    ) -> None:
        self._folder = folder
        self._ports = ports
        self._thread = thread
        self._device = device
        self._world = world
        self._records: dict[str, Record] = {}
        self._waiting: deque[Record] = deque()
        self._news = asyncio.Event()
        self._answered: dict[str, tuple[str, str, float]] = {}

    def restore(self) -> None:
        """List the runs of other processes; one that was not over and whose process is gone
        has failed."""
        for path in sorted(self._folder.glob("*/run.json")):
            folder = RunDir(path.parent)
            try:
                data = folder.read_json("run.json")
                status, created = RunStatus(data["status"]), str(data["created"])
                record = Record(folder, status, created, str(data["error"]))
                record.attempt = int(data.get("attempt", 0))
            except (ValueError, KeyError) as error:
                log.warning("skipped a damaged run folder", folder=str(path.parent), error=error)
                continue
            record.iteration = len(folder.metrics())
            if not record.status.ended and not folder.claim():
                record.elsewhere = True
            elif record.status.ended:
                record.events.milestone(
                    RunEvent(record.status, iteration=record.iteration, message=record.error)
                )
            else:
                record.set(RunStatus.FAILED, "the trainer died while the run was not over")
            self._records[record.run_id] = record

    async def create(self, recipe_toml: str, request_id: str = "") -> Record:
        """Validate a recipe and queue its run.

        The same `request_id` within ten minutes answers with the same run. Raises
        InvalidRequest (recipe, or a request id with another recipe), UnknownTask,
        BadCheckpoint, and Unavailable when the world model does not answer.
        """
        body = hashlib.sha256(recipe_toml.encode()).hexdigest()
        if request_id and (known := self._repeated(request_id, body)):
            return known
        recipe = parse(recipe_toml)
        check_checkpoint(Path(recipe.checkpoint))
        await self._check_templates(recipe)
        now = datetime.now(UTC)
        run_id = f"{recipe.name}-{now:%Y%m%d-%H%M%S}-{secrets.token_hex(2)}"
        folder = RunDir(self._folder / run_id)
        folder.create(dumps(recipe))
        folder.claim()
        record = Record(folder, RunStatus.QUEUED, now.isoformat(), recipe=recipe)
        record.set(RunStatus.QUEUED)
        self._records[run_id] = record
        self._waiting.append(record)
        self._news.set()
        if request_id:
            self._answered[request_id] = (body, run_id, time.monotonic())
        return record

    async def resume(self, run_id: str) -> Record:
        """Queue a run again that ended early, to go on from its last saved state.

        One that is queued or running stays as it is. Raises RunNotFound, InvalidRequest for a
        run that has succeeded or whose recipe cannot be read any more, BadCheckpoint.
        """
        record = self._own(run_id)
        if not record.status.ended:
            return record
        if record.status is RunStatus.SUCCEEDED:
            raise InvalidRequest(f"{run_id} has succeeded: there is nothing to resume", "run_id")
        if not record.folder.claim():
            raise InvalidRequest(f"{run_id} has been resumed by another trainer", "run_id")
        recipe = parse(record.folder.config())
        check_checkpoint(Path(recipe.checkpoint))
        record.recipe, record.resume, record.events = recipe, True, EventLog()
        record.task, record.concluding = None, False
        record.set(RunStatus.QUEUED)
        self._waiting.append(record)
        self._news.set()
        return record

    def get(self, run_id: str) -> Record:
        """Raises RunNotFound."""
        record = self._records.get(run_id)
        if record is None:
            near = difflib.get_close_matches(run_id, self._records, n=1)
            hint = f"; did you mean {near[0]}?" if near else ""
            raise RunNotFound(f"there is no run {run_id!r}{hint}", run_id)
        if record.elsewhere:
            self._look_again(record)
        return record

    def _own(self, run_id: str) -> Record:
        """`get`, of a run that no other trainer has. Raises InvalidRequest besides."""
        record = self.get(run_id)
        if record.elsewhere:
            raise InvalidRequest(f"{run_id} belongs to another trainer that is running", "run_id")
        return record

    def _look_again(self, record: Record) -> None:
        """Bring the record of another trainer's run up to date; it may have ended or died."""
        data = record.folder.read_json("run.json")
        record.status, record.error = RunStatus(data["status"]), str(data["error"])
        record.attempt = int(data.get("attempt", 0))
        record.iteration = len(record.folder.metrics())
        if record.status.ended:
            record.elsewhere = False
            record.events.milestone(
                RunEvent(record.status, iteration=record.iteration, message=record.error)
            )
        elif record.folder.claim():
            record.elsewhere = False
            record.set(RunStatus.FAILED, "the trainer died while the run was not over")

    def list(self) -> list[Record]:
        """The newest runs first, at most 200."""
        for record in self._records.values():
            if record.elsewhere:
                self._look_again(record)
        newest = sorted(self._records.values(), key=lambda r: r.created, reverse=True)
        return newest[:LIST_LIMIT]

    async def cancel(self, run_id: str) -> Record:
        """End a run that is queued or running; an ended one stays as it is."""
        record = self._own(run_id)
        if record in self._waiting:
            self._waiting.remove(record)
            record.set(RunStatus.CANCELLED, "cancelled before it began")
        elif record.task is not None and not record.task.done():
            # Once, and not while the run writes its summary: that must complete.
            if not record.concluding and not record.task.cancelling():
                record.task.cancel()
            await asyncio.wait([record.task])
            if not record.status.ended:  # cancelled before its first instruction
                record.set(RunStatus.CANCELLED, "cancelled before it began")
        return record

    def watch(self, run_id: str) -> AsyncIterator[RunEvent]:
        return self._own(run_id).events.watch()

    async def work(self) -> None:
        """Train queued runs, one at a time, for as long as the service lives."""
        while True:
            while self._waiting:
                record = self._waiting.popleft()
                record.task = asyncio.create_task(self._train(record))
                await asyncio.wait([record.task])
            self._news.clear()
            await self._news.wait()

    async def close(self) -> None:
        """End what is running or queued, with its summary written."""
        for record in [*self._waiting, *self._records.values()]:
            if not record.elsewhere:
                await self.cancel(record.run_id)

    async def _train(self, record: Record) -> None:
        assert record.recipe is not None
        started = time.monotonic()
        run = Run(
            record.run_id,
            record.recipe,
            self._ports,
            record.folder,
            record.events,
            thread=self._thread,
            device=self._device,
            world=self._world,
            attempt=record.attempt,
        )
        record.set(RunStatus.RUNNING)
        status, error = RunStatus.SUCCEEDED, ""
        try:
            await run.execute(resume=record.resume)
        except asyncio.CancelledError:
            status, error = RunStatus.CANCELLED, "the run was cancelled"
        except WMError as failure:
            status, error = RunStatus.FAILED, failure.message
            log.error("the run failed", run_id=record.run_id, error=error)
        except Exception:
            status, error = (
                RunStatus.FAILED,
                "an internal error; the trainer's log has the traceback",
            )
            log.exception("the run failed", run_id=record.run_id)
        record.iteration = run.findings.iterations
        record.concluding = True
        if status is RunStatus.SUCCEEDED:
            record.folder.drop_states()
        else:  # on disk before its jobs are ended, for a resumed run must not wait for them
            record.attempt += 1
            record.store()
        try:
            await self._conclude(record, run, status, error, started)
        except Exception as failure:
            log.exception("the run could not be concluded", run_id=record.run_id)
            status = RunStatus.FAILED
            error = error or (
                failure.message if isinstance(failure, WMError) else f"no report: {failure}"
            )
        record.set(status, error)

    async def _conclude(
        self, record: Record, run: Run, status: RunStatus, error: str, started: float
    ) -> None:
        """Checkpoint, balanced books, summary and report: for a run that ended early too."""
        assert record.recipe is not None
        record.events.milestone(
            RunEvent(RunStatus.RUNNING, "report", record.iteration, message="writing the report")
        )
        await run.save_checkpoint()
        await run.abandon(f"the run {status.value}")
        ledger = run.findings.earlier + await self._ports.queue.ledger(record.run_id)
        summary = summarize(
            run.findings,
            run_id=record.run_id,
            status=status.value,
            error=error,
            recipe=record.recipe,
            ledger=ledger,
            wall_s=run.findings.earlier_s + time.monotonic() - started,
        )
        record.folder.write_json("summary.json", summary)
        check_books(ledger)
        html = await build_report(
            record.folder,
            record.recipe,
            run.findings,
            summary,
            self._ports.blobs,
            self._ports.world,
        )
        record.folder.write_report(html)

    def _repeated(self, request_id: str, body: str) -> Record | None:
        oldest = time.monotonic() - REQUEST_ID_TTL_S
        self._answered = {k: v for k, v in self._answered.items() if v[2] > oldest}
        if request_id not in self._answered:
            return None
        known_body, run_id, _ = self._answered[request_id]
        if known_body != body:
            raise InvalidRequest(
                f"request id {request_id!r} was used for another recipe", field="request_id"
            )
        return self._records[run_id]

    async def _check_templates(self, recipe: Recipe) -> None:
        try:
            known = [template.name for template in await self._ports.world.list_tasks()]
        except Unavailable as error:
            raise Unavailable(f"the world model does not answer: {error.message}") from error
        for name in recipe.tasks.templates:
            if name not in known:
                near = difflib.get_close_matches(name, known, n=1)
                hint = f"did you mean {near[0]!r}?" if near else f"known: {', '.join(known)}"
                raise UnknownTask(
                    f"there is no task template {name!r}; {hint}", field="tasks.templates"
                )


def check_checkpoint(folder: Path) -> None:
    """Quick look, so that a wrong folder is refused at once; loading checks the rest.

    Raises BadCheckpoint.
    """
    if not folder.is_dir():
        raise BadCheckpoint(f"there is no checkpoint folder {folder}", field="checkpoint")
    if not (folder / "config.json").is_file() or not any(folder.glob("*.safetensors")):
        raise BadCheckpoint(
            f"{folder} is no checkpoint: it lacks config.json or *.safetensors",
            field="checkpoint",
        )
