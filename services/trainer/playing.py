"""What a run plays: the episodes of its iterations, and held-out instances.

Strictly on-policy by default: an iteration's episodes are all sampled from the weights that it
then updates; `services.trainer.ahead` is for those who allow more. One phase is played at a time.
"""

from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from typing import NamedTuple

from services.trainer.ahead import Ahead, Draws, Mark
from services.trainer.branching import add_branches, branch_jobs
from services.trainer.evaluation import Row, describe, row
from services.trainer.gather import Collector, Episode
from services.trainer.groups import Harvest, harvest
from services.trainer.jobs import (
    TaskSampler,
    eval_jobs,
    stable_seed,
    train_jobs,
    validation,
)
from services.trainer.publishing import Publisher
from services.trainer.recipe import Recipe
from services.trainer.replay import SuccessReplay
from services.trainer.rundir import RunDir
from services.trainer.summary import Findings
from services.trainer.telling import Teller
from wmkit.domain.episode import Job
from wmkit.ports import BlobStore, JobQueue


class Played(NamedTuple):
    """An iteration's episodes, what they teach, and how often the batch was refilled."""

    episodes: list[Episode]
    found: Harvest
    refills: int


class Player:
    """Every episode that has ended is in the run folder and in `findings.transitions`."""

    def __init__(
        self,
        run_id: str,
        recipe: Recipe,
        queue: JobQueue,
        blobs: BlobStore,
        *,
        folder: RunDir,
        findings: Findings,
        tell: Teller,
        publisher: Publisher,
    ) -> None:
        self._recipe = recipe
        self._blobs = blobs
        self._folder = folder
        self._findings = findings
        self._tell = tell
        self._publisher = publisher
        schedule = recipe.schedule
        self.sampler = TaskSampler(recipe.tasks, recipe.seed)
        self.draws = Draws(self.sampler)
        self.replay = SuccessReplay(recipe.replay)
        self.ahead = Ahead(self._gather, self._mark, schedule.max_staleness, schedule.iterations)
        self.collector = Collector(
            run_id,
            queue,
            blobs,
            stall_s=schedule.stall_s,
            member_wait_s=schedule.member_wait_s,
            on_episode=self._record,
        )

    async def iteration(self, iteration: int) -> Played:
        """Its episodes; tasks whose groups were lost to infrastructure will be drawn again.

        Raises WMError when all were lost.
        """
        played = await self.ahead.get(iteration)
        self._tell.losses(f"iteration {iteration}", [e.lost for e in played.episodes])
        self.sampler.put_back(played.found.again)
        return played

    async def held_out(self, phase: str) -> list[Row]:
        """Play the held-out instances and tell what came out. Raises WMError when all were lost."""
        self._tell.milestone(phase, f"evaluating {self._recipe.tasks.eval_n} held-out instances")
        jobs = eval_jobs(self._recipe, self._publisher.sender, phase)
        rows = await self.collector.play(jobs, row, partial(self._tell.progress, phase))
        self._tell.losses(phase, [r.reason for r in rows])
        metrics = describe(rows)
        held_out = {f"held_out_{name}": value for name, value in metrics.items()}
        self._tell.tracker.log(self._findings.iterations, held_out)
        self._tell.milestone(
            phase,
            f"held-out success {metrics['success']:.3f} "
            f"[{metrics['ci95_low']:.3f}, {metrics['ci95_high']:.3f}], n = {metrics['n']:.0f}",
            metrics=metrics,
        )
        return rows

    async def validation(self, iteration: int) -> float:
        """The success rate on the validation instances."""
        await self.ahead.settle()
        phase = f"validate-{iteration}"
        instances = validation(self._recipe.tasks)
        jobs = eval_jobs(self._recipe, self._publisher.sender, phase, instances)
        rows = await self.collector.play(jobs, row, partial(self._tell.progress, phase))
        success = describe(rows)["success"]
        self._tell.tracker.log(iteration, {"validation_success": success})
        return success

    def standing(self, iteration: int) -> Mark:
        """Where a run goes on that has yet to train on `iteration`, whose jobs may be out."""
        return self.ahead.begun(iteration) or self._mark()

    async def _gather(self, iteration: int) -> Played:
        """With `dynamic_sampling`, further tasks are played in place of groups that teach
        nothing, for at most `max_refills` rounds."""
        recipe, schedule = self._recipe, self._recipe.schedule
        seed = stable_seed(recipe.seed, "shuffle", iteration)
        episodes: list[Episode] = []
        groups, missing, refills = 0, schedule.groups, 0
        while True:
            tasks = self.draws.take(iteration, missing)
            jobs = train_jobs(recipe, self._publisher.sender, iteration, tasks, groups)
            groups += missing
            episodes += await self._train_episodes(jobs)
            played = {episode.job.task for episode in episodes}
            replayed = await self.replay.fetch(played, self._publisher.version, self._blobs)
            found = harvest(episodes, recipe, self._publisher.version, seed, replayed)
            missing = schedule.groups - int(found.metrics["groups_used"])
            if not (schedule.dynamic_sampling and missing and refills < schedule.max_refills):
                break
            refills += 1
        self.replay.add(episodes, self._publisher.version)
        if recipe.branching.groups:
            jobs = branch_jobs(recipe, self._publisher.sender, iteration, episodes)
            branches = await self._train_episodes(jobs)
            add_branches(found, branches, recipe, self._publisher.version, seed)
            episodes += branches
        return Played(episodes, found, refills)

    async def _train_episodes(self, jobs: Sequence[Job]) -> list[Episode]:
        return await self.collector.play(jobs, lambda e: e, partial(self._tell.progress, "train"))

    def _mark(self) -> Mark:
        sizes = self._folder.log_sizes()
        return Mark(
            self.collector.position,
            sizes["trajectories.jsonl"],
            replace(self._findings.transitions),
        )

    def _record(self, episode: Episode) -> None:
        self._folder.append_episode(episode)
        if episode.trajectory is not None:
            self._findings.transitions.add(episode.trajectory)
