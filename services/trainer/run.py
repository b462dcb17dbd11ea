"""One training run from the base weights to the report.

    publish version 0 -> evaluate -> (play, reward, update, publish) * n -> evaluate -> report

Strictly on-policy by default: an iteration's episodes are all sampled from the weights that it
then updates; `services.trainer.ahead` is for those who allow more. Runs on the event loop;
whatever needs torch goes to one worker thread.
"""

import asyncio
import time
from collections.abc import Callable, Sequence
from concurrent.futures import Executor
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import TypeVar

from services.trainer.ahead import Ahead, Draws, Mark
from services.trainer.branching import add_branches, branch_jobs
from services.trainer.evaluation import Row, describe, row
from services.trainer.events import EventLog
from services.trainer.gather import Collector, Episode, patiently
from services.trainer.groups import Harvest, harvest, staleness
from services.trainer.jobs import (
    Sender,
    TaskSampler,
    eval_jobs,
    stable_seed,
    train_jobs,
    validation,
)
from services.trainer.pictures import fetch_pictures
from services.trainer.progress import Progress
from services.trainer.recipe import Recipe
from services.trainer.replay import SuccessReplay
from services.trainer.rundir import RunDir
from services.trainer.summary import Findings, Transitions
from services.trainer.team import Team
from services.trainer.telling import Teller
from services.trainer.tracking import Nothing, Tracker, open_tracker
from services.trainer.world import World
from wmkit.domain.episode import ResultStatus
from wmkit.domain.errors import InvalidRequest
from wmkit.domain.generation import PolicyInfo
from wmkit.ports import BlobStore, JobQueue, Policy, WorldModel

T = TypeVar("T")

PATIENCE_S = 60.0
"""How long a peer may be away before the run fails."""


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
        self.run_id = run_id
        self.policy_id = run_id
        self._attempt = attempt
        self._began = time.monotonic()
        self._sampler = TaskSampler(recipe.tasks, recipe.seed)
        self._draws = Draws(self._sampler)
        self._ahead = Ahead(
            self._gather, self._mark, recipe.schedule.max_staleness, recipe.schedule.iterations
        )
        self._replay = SuccessReplay(recipe.replay)
        self.recipe = recipe
        self.findings = Findings()
        self.version = -1
        self._tracker: Tracker = Nothing()
        self.learner: Team | None = None
        self._ports = ports
        self._folder = folder
        self._tell = Teller(run_id, recipe, events, self.findings)
        self._thread = thread
        self._device = device
        self._world = world
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
        self._tracker = open_tracker(
            self.recipe.tracker, self.run_id, self._folder.path, self.recipe.model_dump()
        )
        info = await patiently(self._ports.policy.info, PATIENCE_S)
        if not info.logprobs:
            await self._evaluate_hosted(info)
            return
        learner = await self._in_thread(
            lambda: Team(self.recipe, device=self._device, world=self._world)
        )
        self.learner = learner
        await self._check_processor(learner)
        if resume:
            await self._restore(learner)
        await self._publish(learner, max(0, self.version))
        if not self.findings.before:
            self.findings.before = await self._evaluate("evaluate-before")
            await self._save_state(learner)
        if self.recipe.schedule.iterations:
            try:
                await self._train(learner)
            finally:
                await self._ahead.stop()
            if self.recipe.schedule.max_staleness:
                # Played ahead of an iteration that does not come.
                await self._collector.abandon("training ended before it was needed")
            self.findings.after = await self._evaluate("evaluate-after")

    async def _evaluate_hosted(self, info: PolicyInfo) -> None:
        """Play the held-out tasks with a model that has no weights here, and nothing else."""
        if self.recipe.schedule.iterations:
            raise InvalidRequest(
                f"the policy service serves {info.model}, which gives no log-probabilities: it "
                "can be evaluated (schedule.iterations = 0), not trained"
            )
        self.policy_id, self.version = info.policy_id, info.version
        if not self.findings.before:
            self.findings.before = await self._evaluate("evaluate-before")

    async def save_checkpoint(self) -> None:
        """Write the weights as they are now."""
        if (learner := self.learner) is not None:
            await self._in_thread(lambda: self._folder.save_checkpoint(learner.save))

    async def abandon(self, reason: str) -> None:
        """End the jobs that are still out, when the run ends early; nothing is told any more."""
        self._tracker.close()
        await self._collector.abandon(reason)

    async def _restore(self, learner: Team) -> None:
        """Stand where the last saved state stood; without one, at the very beginning."""
        folder = self._folder.latest_state()
        saved = None
        if folder is not None:
            await self._in_thread(lambda: learner.load_state(folder))
            text = (folder / "run.json").read_text("utf-8")
            saved = Progress.model_validate_json(text)
        self._folder.cut_logs(saved.files if saved else {})
        found = self.findings
        if saved is not None:
            self.version, self.policy_id = saved.version, saved.policy_id
            self._collector.go_to(saved.cursor)
            self._sampler.restore(saved.sampler)
            self._draws.recall(saved.ahead)
            self._replay.restore(saved.replay)
            found.before, found.transitions = saved.before, saved.transitions
            found.iterations, found.train_s = saved.iteration, saved.train_s
            found.earlier_s = saved.wall_s
            found.best = saved.best
        ledger = await patiently(lambda: self._ports.queue.ledger(self.run_id), PATIENCE_S)
        if not ledger.requested:  # another queue: it begins at its own beginning
            self._collector.go_to("0")
            found.earlier = self._folder.ended()
        info = await patiently(self._ports.policy.info, PATIENCE_S)
        if info.policy_id == self.policy_id and info.version > self.version:
            # What is loaded comes from updates that will be made again, and no policy goes
            # back to an older version; so it is another policy from here on.
            self.policy_id = _renamed(self.policy_id)
        self._tell.milestone("train", f"resumed after iteration {found.iterations}")

    async def _save_state(self, learner: Team) -> None:
        """Everything that `_restore` needs. Jobs of coming iterations may be out: the resumed
        run stands where the first of them began."""
        found, schedule = self.findings, self.recipe.schedule
        mark = self._ahead.begun(found.iterations + 1) or self._mark()
        sizes = self._folder.log_sizes()
        sizes["trajectories.jsonl"] = mark.trajectories_bytes
        progress = Progress(
            iteration=found.iterations,
            version=self.version,
            policy_id=self.policy_id,
            cursor=mark.cursor,
            sampler=self._sampler.state(),
            ahead=self._draws.after(found.iterations),
            replay=self._replay.state(),
            before=found.before,
            best=found.best,
            transitions=mark.transitions,
            train_s=found.train_s,
            wall_s=found.earlier_s + time.monotonic() - self._began,
            files=sizes,
        )

        def write(folder: Path) -> None:
            learner.save_state(folder)
            (folder / "run.json").write_text(progress.model_dump_json(), "utf-8")

        await self._in_thread(
            lambda: self._folder.save_state(found.iterations, write, schedule.keep_states)
        )

    async def _train(self, learner: Team) -> None:
        schedule = self.recipe.schedule
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
            self._tracker.log(iteration, line)
            self._tell.milestone(
                "train",
                f"iteration {iteration}: success {line['success']:.2f}, reward "
                f"{line['reward']:.2f}, {line['groups_used']:.0f} of {line['groups']:.0f} groups "
                "taught something",
                metrics=line,
            )
            if self.recipe.tasks.validation_n and iteration % schedule.validate_every == 0:
                await self._validate(learner, iteration)
            if iteration % schedule.save_every == 0:
                await self._save_state(learner)

    async def _iterate(self, learner: Team, iteration: int) -> dict[str, float]:
        """Play, learn, publish; returns the metrics of docs/metrics.md."""
        clock = [time.perf_counter()]

        def lap() -> float:
            clock.append(time.perf_counter())
            return clock[-1] - clock[-2]

        episodes, found, refills = await self._ahead.get(iteration)
        line: dict[str, float] = {"iteration": iteration, "version": self.version}
        line |= _ends(episodes)
        trajectories = [e.trajectory for e in episodes if e.trajectory is not None]
        moved = Transitions()
        for trajectory in trajectories:
            moved.add(trajectory)
        line["commits"], line["imagines"] = moved.commit, moved.imagine
        line["cache_hits"] = moved.cache_hits
        line |= staleness(trajectories, self.version)
        line["rollout_s"] = lap()
        line["refills"] = refills
        self._tell.losses(f"iteration {iteration}", [e.lost for e in episodes])
        self.findings.imagining += [r for r in map(row, episodes) if r.success and r.calls]
        self._sampler.put_back(found.again)
        images = await fetch_pictures(self._ports.blobs, found.samples, PATIENCE_S)
        line |= found.metrics
        line["samples"] = len(found.samples)
        line["prepare_s"] = lap()
        if found.samples:
            line |= await self._in_thread(lambda: learner.update(found.samples, images))
            if not line["staleness_max"]:  # else the updates in between are part of it
                self._tell.gap(line["logprob_gap"], iteration)
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
            tasks = self._draws.take(iteration, missing)
            jobs = train_jobs(self.recipe, self._sender, iteration, tasks, groups)
            groups += missing
            episodes += await self._collector.play(
                jobs, lambda e: e, partial(self._tell.progress, "train")
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
            jobs = branch_jobs(self.recipe, self._sender, iteration, episodes)
            branches = await self._collector.play(
                jobs, lambda e: e, partial(self._tell.progress, "train")
            )
            add_branches(found, branches, self.recipe, self.version, seed)
            episodes += branches
        return episodes, found, refills

    async def _evaluate(self, phase: str) -> list[Row]:
        self._tell.milestone(phase, f"evaluating {self.recipe.tasks.eval_n} held-out instances")
        jobs = eval_jobs(self.recipe, self._sender, phase)
        rows = await self._collector.play(jobs, row, partial(self._tell.progress, phase))
        self._tell.losses(phase, [r.reason for r in rows])
        metrics = describe(rows)
        held_out = {f"held_out_{name}": value for name, value in metrics.items()}
        self._tracker.log(self.findings.iterations, held_out)
        self._tell.milestone(
            phase,
            f"held-out success {metrics['success']:.3f} "
            f"[{metrics['ci95_low']:.3f}, {metrics['ci95_high']:.3f}], n = {metrics['n']:.0f}",
            metrics=metrics,
        )
        return rows

    async def _validate(self, learner: Team, iteration: int) -> None:
        """Play the validation instances, and keep the weights that do best on them so far."""
        await self._ahead.settle()  # one phase is played at a time
        phase = f"validate-{iteration}"
        jobs = eval_jobs(self.recipe, self._sender, phase, validation(self.recipe.tasks))
        rows = await self._collector.play(jobs, row, partial(self._tell.progress, phase))
        success = describe(rows)["success"]
        self._tracker.log(iteration, {"validation_success": success})
        best = self.findings.best
        if best is None or success > best["success"]:
            best = {"iteration": iteration, "version": self.version, "success": success}
            self.findings.best = best
            await self._in_thread(lambda: self._folder.save_checkpoint(learner.save, "best"))
        self._tell.milestone(
            "train",
            f"validation after iteration {iteration}: success {success:.3f}, best "
            f"{best['success']:.3f} after iteration {best['iteration']:.0f}",
        )

    def _mark(self) -> Mark:
        sizes = self._folder.log_sizes()
        return Mark(
            self._collector.position,
            sizes["trajectories.jsonl"],
            replace(self.findings.transitions),
        )

    @property
    def _sender(self) -> Sender:
        return Sender(self.run_id, self.policy_id, self.version, self._attempt)

    async def _publish(self, learner: Team, version: int) -> None:
        """Hand the current weights to the policy service as that version."""
        weights, probe = await self._in_thread(lambda: (learner.weights(), learner.probe()))
        policy, blobs = self._ports.policy, self._ports.blobs
        digest = await patiently(lambda: blobs.put(weights), PATIENCE_S)
        await patiently(
            lambda: policy.update_weights(self.policy_id, version, digest, probe=probe), PATIENCE_S
        )
        if version != self.version:  # a resumed run publishes its version once more
            self._folder.append_version(version, digest)
        self.version = version

    async def _check_processor(self, learner: Team) -> None:
        info = await patiently(self._ports.policy.info, PATIENCE_S)
        if info.processor != learner.processor:
            raise InvalidRequest(
                f"the policy service encodes text and pictures in another way than "
                f"{self.recipe.checkpoint} (processor {info.processor[:12]}, here "
                f"{learner.processor[:12]}): start it with the same checkpoint"
            )

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
