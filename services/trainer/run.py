"""One training run from the base weights to the report.

    publish version 0 -> evaluate -> (play, reward, update, publish) * n -> evaluate -> report

What it plays is in `services.trainer.playing`, what the policy gets in
`services.trainer.publishing`, what is saved in `services.trainer.progress`. Runs on the event
loop; whatever needs torch goes to one worker thread.
"""

import asyncio
import time
from collections.abc import Callable
from concurrent.futures import Executor
from dataclasses import dataclass
from pathlib import Path
from typing import TypeVar

from services.trainer.evaluation import row
from services.trainer.events import EventLog
from services.trainer.gather import PATIENCE_S, ends, patiently
from services.trainer.groups import staleness
from services.trainer.pictures import fetch_pictures
from services.trainer.playing import Player
from services.trainer.progress import Progress, go_on, progress_of
from services.trainer.publishing import Publisher
from services.trainer.recipe import Recipe
from services.trainer.rundir import RunDir
from services.trainer.summary import Findings, Transitions
from services.trainer.team import Team
from services.trainer.telling import Teller
from services.trainer.tracking import open_tracker
from services.trainer.world import World
from wmkit.domain.errors import InvalidRequest
from wmkit.domain.generation import PolicyInfo
from wmkit.ports import BlobStore, JobQueue, Policy, WorldModel

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Ports:
    """The rest of the system, as a run sees it."""

    queue: JobQueue
    blobs: BlobStore
    policy: Policy
    world: WorldModel


class Run:
    """`execute` once; `findings` and the run folder hold what has been found so far."""

    def __init__(
        self,
        run_id: str,
        recipe: Recipe,
        ports: Ports,
        folder: RunDir,
        events: EventLog,
        *,
        thread: Executor,
        device: str = "cpu",
        world: World | None = None,
        attempt: int = 0,
    ) -> None:
        self.findings = Findings()
        self._began = time.monotonic()
        self._run_id = run_id
        self._recipe = recipe
        self._ports = ports
        self._folder = folder
        self._thread = thread
        self._device = device
        self._world = world
        self._learner: Team | None = None
        self._tell = Teller(run_id, recipe, events, self.findings)
        self._publisher = Publisher(run_id, ports.policy, ports.blobs, folder, attempt)
        self._player = Player(
            run_id,
            recipe,
            ports.queue,
            ports.blobs,
            folder=folder,
            findings=self.findings,
            tell=self._tell,
            publisher=self._publisher,
        )

    async def execute(self, *, resume: bool = False) -> None:
        """Train, or go on from the last saved state.

        Raises WMError with the one sentence why the run cannot go on.
        """
        recipe, player = self._recipe, self._player
        self._tell.tracker = open_tracker(
            recipe.tracker, self._run_id, self._folder.path, recipe.model_dump()
        )
        info = await self._publisher.info()
        if not info.logprobs:
            await self._evaluate_hosted(info)
            return
        learner = await self._in_thread(
            lambda: Team(recipe, device=self._device, world=self._world)
        )
        self._learner = learner
        await self._publisher.check_processor(learner.processor, recipe.checkpoint)
        if resume:
            await self._restore(learner)
        await self._publish(learner, max(0, self._publisher.version))
        if not self.findings.before:
            self.findings.before = await player.held_out("evaluate-before")
            await self._save_state(learner)
        if recipe.schedule.iterations:
            try:
                await self._train(learner)
            finally:
                await player.ahead.stop()
            if recipe.schedule.max_staleness:
                # Played ahead of an iteration that does not come.
                await player.collector.abandon("training ended before it was needed")
            self.findings.after = await player.held_out("evaluate-after")

    async def save_checkpoint(self) -> None:
        """Write the weights as they are now."""
        if (learner := self._learner) is not None:
            await self._in_thread(lambda: self._folder.save_checkpoint(learner.save))

    async def abandon(self, reason: str) -> None:
        """End the jobs that are still out, when the run ends early; nothing is told any more."""
        self._tell.tracker.close()
        await self._player.collector.abandon(reason)

    async def _evaluate_hosted(self, info: PolicyInfo) -> None:
        """Play the held-out tasks with a model that has no weights here, and nothing else."""
        if self._recipe.schedule.iterations:
            raise InvalidRequest(
                f"the policy service serves {info.model}, which gives no log-probabilities: it "
                "can be evaluated (schedule.iterations = 0), not trained"
            )
        self._publisher.policy_id, self._publisher.version = info.policy_id, info.version
        if not self.findings.before:
            self.findings.before = await self._player.held_out("evaluate-before")

    async def _train(self, learner: Team) -> None:
        recipe, schedule = self._recipe, self._recipe.schedule
        started = time.monotonic() - self.findings.train_s
        self._tell.milestone("train", "training")
        for iteration in range(self.findings.iterations + 1, schedule.iterations + 1):
            elapsed = time.monotonic() - started
            if schedule.max_train_s and elapsed >= schedule.max_train_s:
                break
            line = await self._iterate(learner, iteration)
            line["elapsed_s"] = time.monotonic() - started
            self.findings.iterations = iteration
            self.findings.train_s = line["elapsed_s"]
            self._folder.append_metrics(line)
            self._tell.tracker.log(iteration, line)
            self._tell.milestone(
                "train",
                f"iteration {iteration}: success {line['success']:.2f}, reward "
                f"{line['reward']:.2f}, {line['groups_used']:.0f} of {line['groups']:.0f} groups "
                "taught something",
                metrics=line,
            )
            if recipe.tasks.validation_n and iteration % schedule.validate_every == 0:
                await self._validate(learner, iteration)
            if iteration % schedule.save_every == 0:
                await self._save_state(learner)

    async def _iterate(self, learner: Team, iteration: int) -> dict[str, float]:
        """Play, learn, publish; returns the metrics of docs/metrics.md."""
        clock = [time.perf_counter()]

        def lap() -> float:
            clock.append(time.perf_counter())
            return clock[-1] - clock[-2]

        episodes, found, refills = await self._player.iteration(iteration)
        version = self._publisher.version
        line: dict[str, float] = {"iteration": iteration, "version": version}
        line |= ends(episodes)
        trajectories = [e.trajectory for e in episodes if e.trajectory is not None]
        moved = Transitions()
        for trajectory in trajectories:
            moved.add(trajectory)
        line["commits"], line["imagines"] = moved.commit, moved.imagine
        line["cache_hits"] = moved.cache_hits
        line |= staleness(trajectories, version)
        line["rollout_s"] = lap()
        line["refills"] = refills
        self.findings.imagining += [r for r in map(row, episodes) if r.success and r.calls]
        images = await fetch_pictures(self._ports.blobs, found.samples, PATIENCE_S)
        line |= found.metrics
        line["samples"] = len(found.samples)
        line["prepare_s"] = lap()
        if found.samples:
            line |= await self._in_thread(lambda: learner.update(found.samples, images))
            if not line["staleness_max"]:  # else the updates in between are part of it
                self._tell.gap(line["logprob_gap"], iteration)
            line["update_s"] = lap()
            await self._publish(learner, version + 1)
            line["publish_s"] = lap()
        return line

    async def _publish(self, learner: Team, version: int) -> None:
        weights, probe = await self._in_thread(lambda: (learner.weights(), learner.probe()))
        await self._publisher.publish(version, weights, probe)

    async def _validate(self, learner: Team, iteration: int) -> None:
        """Play the validation instances, and keep the weights that do best on them so far."""
        success = await self._player.validation(iteration)
        best = self.findings.best
        if best is None or success > best["success"]:
            version = self._publisher.version
            best = {"iteration": iteration, "version": version, "success": success}
            self.findings.best = best
            await self._in_thread(lambda: self._folder.save_checkpoint(learner.save, "best"))
        self._tell.milestone(
            "train",
            f"validation after iteration {iteration}: success {success:.3f}, best "
            f"{best['success']:.3f} after iteration {best['iteration']:.0f}",
        )

    async def _save_state(self, learner: Team) -> None:
        """Everything that `_restore` needs."""
        found = self.findings
        wall_s = found.earlier_s + time.monotonic() - self._began
        progress = progress_of(found, self._player, self._publisher, self._folder, wall_s)

        def write(folder: Path) -> None:
            learner.save_state(folder)
            (folder / "run.json").write_text(progress.model_dump_json(), "utf-8")

        keep = self._recipe.schedule.keep_states
        await self._in_thread(lambda: self._folder.save_state(found.iterations, write, keep))

    async def _restore(self, learner: Team) -> None:
        """Stand where the last saved state stood; without one, at the very beginning."""
        folder = self._folder.latest_state()
        saved = None
        if folder is not None:
            await self._in_thread(lambda: learner.load_state(folder))
            text = (folder / "run.json").read_text("utf-8")
            saved = Progress.model_validate_json(text)
        self._folder.cut_logs(saved.files if saved else {})
        if saved is not None:
            go_on(saved, self.findings, self._player, self._publisher)
        ledger = await patiently(lambda: self._ports.queue.ledger(self._run_id), PATIENCE_S)
        if not ledger.requested:  # another queue: it begins at its own beginning
            self._player.collector.go_to("0")
            self.findings.earlier = self._folder.ended()
        await self._publisher.step_aside()
        self._tell.milestone("train", f"resumed after iteration {self.findings.iterations}")

    async def _in_thread(self, work: Callable[[], T]) -> T:
        """Run `work` in the torch thread; a cancelled run waits until the thread is idle."""
        future = asyncio.get_running_loop().run_in_executor(self._thread, work)
        try:
            return await asyncio.shield(future)
        except asyncio.CancelledError:
            if self._learner is not None:
                self._learner.stop.set()
            await asyncio.wait([future])
            raise
