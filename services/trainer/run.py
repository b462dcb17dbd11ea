"""One training run from the base weights to the report.

    publish version 0 -> evaluate -> (play, reward, update, publish) * n -> evaluate -> report

Strictly on-policy: an iteration's episodes are all sampled from the weights that it then
updates. Runs on the event loop; whatever needs torch goes to one worker thread.
"""

import asyncio
import time
from collections import Counter
from collections.abc import Callable, Sequence
from concurrent.futures import Executor
from dataclasses import dataclass
from pathlib import Path
from typing import TypeVar

import structlog

from services.trainer.batches import Sample
from services.trainer.branching import branch_jobs, choose, harvest_branches
from services.trainer.evaluation import Row, describe, row
from services.trainer.events import EventLog
from services.trainer.gather import Collector, Episode, patiently
from services.trainer.groups import Harvest, harvest
from services.trainer.jobs import Sender, TaskSampler, eval_jobs, stable_seed, train_jobs
from services.trainer.learner import Learner
from services.trainer.learner_state import load_learner, save_learner
from services.trainer.progress import Progress
from services.trainer.recipe import Recipe
from services.trainer.replay import SuccessReplay
from services.trainer.rundir import RunDir
from services.trainer.summary import Findings
from wmkit.domain.episode import ResultStatus
from wmkit.domain.errors import InvalidRequest, NotFound, WMError
from wmkit.domain.runs import RunEvent, RunStatus
from wmkit.ports import BlobStore, JobQueue, Policy, WorldModel

log = structlog.get_logger(__name__)
T = TypeVar("T")

PATIENCE_S = 60.0
"""How long a peer may be away before the run fails."""
FETCHES = 32
LOST_ALARM = 0.1
"""Fraction of a phase's episodes without a verdict above which watchers are warned."""


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
        attempt: int = 0,
    ) -> None:
        self.run_id = run_id
        self.policy_id = run_id
        self._attempt = attempt
        self._began = time.monotonic()
        self._sampler = TaskSampler(recipe.tasks, recipe.seed)
        self._replay = SuccessReplay(recipe.replay)
        self.recipe = recipe
        self.findings = Findings()
        self.version = -1
        self.learner: Learner | None = None
        self._ports = ports
        self._folder = folder
        self._events = events
        self._thread = thread
        self._device = device
        self._collector = Collector(
            run_id,
            ports.queue,
            ports.blobs,
            stall_s=recipe.schedule.stall_s,
            member_wait_s=recipe.schedule.member_wait_s,
            on_episode=self._record,
        )

    async def execute(self, *, resume: bool = False) -> None:
        """Train, or go on from the last saved state.

        Raises WMError with the one sentence why the run cannot go on.
        """
        learner = await self._in_thread(lambda: Learner(self.recipe, device=self._device))
        self.learner = learner
        await self._check_processor(learner)
        if resume:
            await self._restore(learner)
        await self._publish(learner, max(0, self.version))
        if not self.findings.before:
            self.findings.before = await self._evaluate("evaluate-before")
            await self._save_state(learner)
        if self.recipe.schedule.iterations:
            await self._train(learner)
            self.findings.after = await self._evaluate("evaluate-after")

    async def save_checkpoint(self) -> None:
        """Write the weights as they are now."""
        if (learner := self.learner) is not None:
            await self._in_thread(lambda: self._folder.save_checkpoint(learner.save))

    async def abandon(self, reason: str) -> None:
        """End the jobs that are still out, when the run ends early."""
        await self._collector.abandon(reason)

    async def _restore(self, learner: Learner) -> None:
        """Stand where the last saved state stood; without one, at the very beginning."""
        folder = self._folder.latest_state()
        saved = None
        if folder is not None:
            await self._in_thread(lambda: load_learner(learner, folder))
            text = (folder / "run.json").read_text("utf-8")
            saved = Progress.model_validate_json(text)
        self._folder.cut_logs(saved.files if saved else {})
        found = self.findings
        if saved is not None:
            self.version, self.policy_id = saved.version, saved.policy_id
            self._collector.go_to(saved.cursor)
            self._sampler.restore(saved.sampler)
            self._replay.restore(saved.replay)
            found.before, found.transitions = saved.before, saved.transitions
            found.iterations, found.train_s = saved.iteration, saved.train_s
            found.earlier_s = saved.wall_s
        ledger = await patiently(lambda: self._ports.queue.ledger(self.run_id), PATIENCE_S)
        if not ledger.requested:  # another queue: it begins at its own beginning
            self._collector.go_to("0")
            found.earlier = self._folder.ended()
        info = await patiently(self._ports.policy.info, PATIENCE_S)
        if info.policy_id == self.policy_id and info.version > self.version:
            # What is loaded comes from updates that will be made again, and no policy goes
            # back to an older version; so it is another policy from here on.
            self.policy_id = _renamed(self.policy_id)
        self._milestone("train", f"resumed after iteration {found.iterations}")

    async def _save_state(self, learner: Learner) -> None:
        """Everything that `_restore` needs. Called when no job is out."""
        found, schedule = self.findings, self.recipe.schedule
        progress = Progress(
            iteration=found.iterations,
            version=self.version,
            policy_id=self.policy_id,
            cursor=self._collector.position,
            sampler=self._sampler.state(),
            replay=self._replay.state(),
            before=found.before,
            transitions=found.transitions,
            train_s=found.train_s,
            wall_s=found.earlier_s + time.monotonic() - self._began,
            files=self._folder.log_sizes(),
        )

        def write(folder: Path) -> None:
            save_learner(learner, folder)
            (folder / "run.json").write_text(progress.model_dump_json(), "utf-8")

        await self._in_thread(
            lambda: self._folder.save_state(found.iterations, write, schedule.keep_states)
        )

    async def _train(self, learner: Learner) -> None:
        schedule = self.recipe.schedule
        started = time.monotonic() - self.findings.train_s
        self._milestone("train", "training")
        for iteration in range(self.findings.iterations + 1, schedule.iterations + 1):
            elapsed = time.monotonic() - started
            if schedule.max_train_s and elapsed >= schedule.max_train_s:
                break
            line = await self._iterate(learner, iteration)
            line["elapsed_s"] = time.monotonic() - started
            self.findings.iterations = iteration
            self.findings.train_s = line["elapsed_s"]
            self._folder.append_metrics(line)
            self._milestone(
                "train",
                f"iteration {iteration}: success {line['success']:.2f}, reward "
                f"{line['reward']:.2f}, {line['groups_used']:.0f} of {line['groups']:.0f} groups "
                "taught something",
                metrics=line,
            )
            if iteration % schedule.save_every == 0:
                await self._save_state(learner)

    async def _iterate(self, learner: Learner, iteration: int) -> dict[str, float]:
        """Play, learn, publish; returns the metrics of docs/metrics.md."""
        clock = [time.perf_counter()]

        def lap() -> float:
            clock.append(time.perf_counter())
            return clock[-1] - clock[-2]

        moved = self.findings.transitions
        before = (moved.commit, moved.imagine, moved.cache_hits)
        episodes, found, refills = await self._gather(iteration)
        line: dict[str, float] = {"iteration": iteration, "version": self.version}
        line |= _ends(episodes)
        line["commits"] = moved.commit - before[0]
        line["imagines"] = moved.imagine - before[1]
        line["cache_hits"] = moved.cache_hits - before[2]
        line["rollout_s"] = lap()
        line["refills"] = refills
        self._watch_losses(f"iteration {iteration}", [e.lost for e in episodes])
        self.findings.imagining += [r for r in map(row, episodes) if r.success and r.calls]
        self._sampler.put_back(found.again)
        images = await self._fetch(found.samples)
        line |= found.metrics
        line["samples"] = len(found.samples)
        line["prepare_s"] = lap()
        if found.samples:
            line |= await self._in_thread(lambda: learner.update(found.samples, images))
            self._watch_gap(line["logprob_gap"], iteration)
            line["update_s"] = lap()
            await self._publish(learner, self.version + 1)
            line["publish_s"] = lap()
        return line

    async def _gather(self, iteration: int) -> tuple[list[Episode], Harvest, int]:
        """The iteration's episodes, what they teach, and how often the batch was refilled.

        With `dynamic_sampling`, further tasks are played in place of groups that teach
        nothing, for at most `max_refills` rounds.
        """
        schedule = self.recipe.schedule
        seed = stable_seed(self.recipe.seed, "shuffle", iteration)
        episodes: list[Episode] = []
        groups, missing, refills = 0, schedule.groups, 0
        while True:
            tasks = self._sampler.draw(missing)
            jobs = train_jobs(self.recipe, self._sender, iteration, tasks, groups)
            groups += missing
            episodes += await self._collector.play(
                jobs, lambda e: e, lambda n, of: self._progress("train", n, of)
            )
            played = {episode.job.task for episode in episodes}
            replayed = await self._replay.fetch(played, self.version, self._ports.blobs)
            found = harvest(episodes, self.recipe, self.version, seed, replayed)
            missing = schedule.groups - int(found.metrics["groups_used"])
            if not (schedule.dynamic_sampling and missing and refills < schedule.max_refills):
                break
            refills += 1
        self._replay.add(episodes, self.version)
        if self.recipe.branching.groups:
            points = choose(episodes, self.recipe.branching.groups, self.version, seed)
            branches = await self._collector.play(
                branch_jobs(self.recipe, self._sender, iteration, points),
                lambda e: e,
                lambda n, of: self._progress("train", n, of),
            )
            samples, metrics = harvest_branches(branches, self.recipe, self.version, seed)
            found.samples += samples
            found.metrics |= metrics
            episodes += branches
        return episodes, found, refills

    async def _evaluate(self, phase: str) -> list[Row]:
        self._milestone(phase, f"evaluating {self.recipe.tasks.eval_n} held-out instances")
        jobs = eval_jobs(self.recipe, self._sender, phase)
        rows = await self._collector.play(jobs, row, lambda n, of: self._progress(phase, n, of))
        self._watch_losses(phase, [r.reason for r in rows])
        metrics = describe(rows)
        self._milestone(
            phase,
            f"held-out success {metrics['success']:.3f} "
            f"[{metrics['ci95_low']:.3f}, {metrics['ci95_high']:.3f}], n = {metrics['n']:.0f}",
            metrics=metrics,
        )
        return rows

    @property
    def _sender(self) -> Sender:
        return Sender(self.run_id, self.policy_id, self.version, self._attempt)

    async def _publish(self, learner: Learner, version: int) -> None:
        """Hand the current weights to the policy service as that version."""
        weights = await self._in_thread(learner.weights)
        policy, blobs = self._ports.policy, self._ports.blobs
        digest = await patiently(lambda: blobs.put(weights), PATIENCE_S)
        await patiently(lambda: policy.update_weights(self.policy_id, version, digest), PATIENCE_S)
        if version != self.version:  # a resumed run publishes its version once more
            self._folder.append_version(version, digest)
        self.version = version

    async def _check_processor(self, learner: Learner) -> None:
        info = await patiently(self._ports.policy.info, PATIENCE_S)
        if info.processor != learner.processor:
            raise InvalidRequest(
                f"the policy service encodes text and pictures in another way than "
                f"{self.recipe.checkpoint} (processor {info.processor[:12]}, here "
                f"{learner.processor[:12]}): start it with the same checkpoint"
            )

    async def _fetch(self, samples: Sequence[Sample]) -> dict[str, bytes]:
        """The encoded pictures of all samples, by digest."""
        gate = asyncio.Semaphore(FETCHES)

        async def get(digest: str, sample: str) -> bytes:
            async with gate:
                try:
                    return await patiently(lambda: self._ports.blobs.get(digest), PATIENCE_S)
                except NotFound:
                    raise WMError(
                        f"{sample}: its picture {digest[:12]} is not in the blob store"
                    ) from None

        needed = {ref.digest: sample.name for sample in samples for ref in sample.images}
        data = await asyncio.gather(*(get(digest, name) for digest, name in needed.items()))
        return dict(zip(needed, data, strict=True))

    async def _in_thread(self, work: Callable[[], T]) -> T:
        """Run `work` in the torch thread; a cancelled run waits until the thread is idle."""
        future = asyncio.get_running_loop().run_in_executor(self._thread, work)
        try:
            return await asyncio.shield(future)
        except asyncio.CancelledError:
            if self.learner is not None:
                self.learner.stop.set()
            await asyncio.wait([future])
            raise

    def _record(self, episode: Episode) -> None:
        self._folder.append_episode(episode)
        if episode.trajectory is not None:
            self.findings.transitions.add(episode.trajectory)

    def _watch_losses(self, where: str, reasons: Sequence[str]) -> None:
        """Warn about episodes without a verdict. `reasons`: one per episode, "" for a valid
        one. Raises WMError when not one is valid: something is broken for all of them."""
        lost = [reason for reason in reasons if reason]
        if len(lost) <= LOST_ALARM * len(reasons):
            return
        reason, count = Counter(lost).most_common(1)[0]
        message = f"{where}: {len(lost)} of {len(reasons)} episodes were lost, {count} to: {reason}"
        if len(lost) == len(reasons):
            raise WMError(message)
        self._milestone("train" if where.startswith("iter") else where, f"warning: {message}")

    def _watch_gap(self, gap: float, iteration: int) -> None:
        if gap > self.recipe.loss.gap_alarm:
            message = (
                f"warning: iteration {iteration}: sampler and trainer disagree by {gap:.4f} nats "
                f"a token (alarm at {self.recipe.loss.gap_alarm:g})"
            )
            log.warning("log-probability gap", run_id=self.run_id, gap=gap, iteration=iteration)
            self._milestone("train", message)

    def _milestone(self, phase: str, message: str, metrics: dict[str, float] | None = None) -> None:
        log.info(message, run_id=self.run_id, phase=phase)
        self._events.milestone(
            RunEvent(
                RunStatus.RUNNING,
                phase,
                self.findings.iterations,
                metrics=metrics or {},
                message=message,
            )
        )

    def _progress(self, phase: str, done: int, total: int) -> None:
        iteration = self.findings.iterations + (phase == "train")
        self._events.progress(RunEvent(RunStatus.RUNNING, phase, iteration, done, total))


def _renamed(policy_id: str) -> str:
    """ "run" becomes "run~1", that becomes "run~2"."""
    name, _, life = policy_id.partition("~")
    return f"{name}~{int(life or 0) + 1}"


def _ends(episodes: Sequence[Episode]) -> dict[str, float]:
    ends = [episode.result.status for episode in episodes]
    return {
        "requested": len(ends),
        "accepted": ends.count(ResultStatus.ACCEPTED),
        "masked": ends.count(ResultStatus.MASKED),
        "dead": ends.count(ResultStatus.DEAD),
    }
