"""Whole runs over real gRPC, with a bandit for world, policy and worker (see trainer_cases)."""

import asyncio
import json
import re
import tomllib
from collections.abc import AsyncIterator, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

import pytest
from wmr1.trainer.v1 import trainer_pb2_grpc as rpc

from services.trainer.app import SERVICE
from services.trainer.run import Ports
from services.trainer.rundir import RunDir
from services.trainer.runs import Runs
from services.trainer.servicer import TrainerServicer
from services.trainer.settings import TrainerSettings
from tests import tiny_checkpoints
from tests.trainer_cases import Bandit
from wmkit.clients.trainer import TrainerClient
from wmkit.domain.episode import Job, ResultStatus, Trajectory
from wmkit.domain.errors import BadCheckpoint, InvalidRequest, RunNotFound, UnknownTask
from wmkit.domain.runs import RunEvent, RunStatus
from wmkit.domain.tasks import Judgement, Verdict
from wmkit.modeling import checkpoint
from wmkit.modeling.weights import load_weights
from wmkit.rpc.server import running

RECIPE = """
name = "bandit"
seed = {seed}
checkpoint = "{checkpoint}"
[tasks]
templates = ["settings_turn_on"]
train_seeds = [0, 1000]
eval_seeds = [1000, 2000]
eval_n = {eval_n}
[schedule]
iterations = {iterations}
groups = 4
group_size = 8
stall_s = 20
[reward]
beta = 0.0
[optimizer]
lr = {lr}
weight_decay = 0.0
warmup = 1
"""


@dataclass
class Setting:
    """A trainer service with its client, a bandit, and the folder of runs."""

    client: TrainerClient
    runs: Runs
    bandit: Bandit
    folder: Path

    def recipe(
        self, *, iterations: int = 2, lr: float = 2e-3, eval_n: int = 12, seed: int = 1
    ) -> str:
        return RECIPE.format(
            checkpoint=self.bandit.folder,
            iterations=iterations,
            lr=lr,
            eval_n=eval_n,
            seed=seed,
        )

    async def train(self, recipe: str) -> tuple[Path, list[RunEvent]]:
        run = await self.client.create_run(recipe)
        events = [event async for event in self.client.watch_run(run.run_id)]
        return self.folder / run.run_id, events


@pytest.fixture(scope="module")
def tiny(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tiny_checkpoints.make(tmp_path_factory.mktemp("tiny"))


@pytest.fixture
def thread() -> Iterator[ThreadPoolExecutor]:
    with ThreadPoolExecutor(1) as executor:
        yield executor


@asynccontextmanager
async def service(
    bandit: Bandit, folder: Path, thread: ThreadPoolExecutor
) -> AsyncIterator[Setting]:
    ports = Ports(bandit.queue, bandit.blobs, bandit, bandit.world)
    runs = Runs(folder, ports, thread=thread)
    runs.restore()
    worker = asyncio.create_task(runs.work())

    def register(server: object) -> list[str]:
        rpc.add_TrainerServiceServicer_to_server(TrainerServicer(runs), server)
        return [SERVICE]

    settings = TrainerSettings(port=0, drain_pause_s=0, drain_grace_s=0)
    async with (
        running(settings, "trainer", register) as server,
        TrainerClient(server.address) as client,
        bandit.working(),
    ):
        yield Setting(client, runs, bandit, folder)
        worker.cancel()
        with suppress(asyncio.CancelledError):
            await worker
        await runs.close()


@pytest.fixture
async def here(tiny: Path, tmp_path: Path, thread: ThreadPoolExecutor) -> AsyncIterator[Setting]:
    async with service(Bandit(tiny), tmp_path / "runs", thread) as setting:
        yield setting


async def test_a_run_learns_and_leaves_everything_behind(here: Setting) -> None:
    # rewarded: an odd first token; some members of the first group are lost on the way
    fates = {"/train-1/0/0": ResultStatus.MASKED, "/train-1/0/1": ResultStatus.DEAD}
    here.bandit.fate = lambda job: next(
        (fate for end, fate in fates.items() if job.job_id.endswith(end)), ResultStatus.ACCEPTED
    )
    folder, events = await here.train(here.recipe(iterations=6, eval_n=24))

    assert events[-1].status == RunStatus.SUCCEEDED
    phases = [event.phase for event in events if event.phase]
    assert list(dict.fromkeys(phases)) == ["evaluate-before", "train", "evaluate-after", "report"]
    curve = [event for event in events if event.phase == "train" and event.metrics]
    assert [event.iteration for event in curve] == [1, 2, 3, 4, 5, 6]

    summary = json.loads((folder / "summary.json").read_text())
    run = await here.client.get_run(folder.name)
    assert json.loads(run.summary_json) == summary
    assert summary["before"]["n"] == summary["after"]["n"] == 24
    assert summary["improvement"]["ci95"][0] > 0.05
    episodes = summary["episodes"]
    assert episodes == {"requested": 24 + 6 * 32 + 24, "accepted": 238, "masked": 1, "dead": 1}
    assert summary["transitions"] == {"commit": 238, "imagine": 0, "cache_hits": 0}

    config = tomllib.loads((folder / "config.toml").read_text())
    assert config["loss"]["clip_high"] == 0.28
    lines = [json.loads(line) for line in (folder / "metrics.jsonl").read_text().splitlines()]
    assert [line["iteration"] for line in lines] == [1, 2, 3, 4, 5, 6]
    assert all(line["logprob_gap"] < 1e-4 for line in lines if "logprob_gap" in line)
    assert here.bandit.published == [(folder.name, v) for v in range(len(here.bandit.published))]

    last = json.loads((folder / "versions.jsonl").read_text().splitlines()[-1])
    assert last["version"] == here.bandit.version
    again = checkpoint.load(here.bandit.folder)
    load_weights(again.model, await here.bandit.blobs.get(last["weights"]))
    mine, theirs = again.model.state_dict(), here.bandit.loaded.model.state_dict()
    assert all(mine[name].equal(theirs[name]) for name in mine)

    jobs = [json.loads(line) for line in (folder / "trajectories.jsonl").read_text().splitlines()]
    assert len(jobs) == len({job["job_id"] for job in jobs}) == 240
    for job in (jobs[0], jobs[-1]):
        stored = Trajectory.model_validate_json(await here.bandit.blobs.get(job["trajectory"]))
        assert stored.job.job_id == job["job_id"]

    saved = checkpoint.load(folder / "checkpoint")
    for name, tensor in saved.model.state_dict().items():
        assert tensor.equal(here.bandit.loaded.model.state_dict()[name])
    html = (folder / "report.html").read_text()
    assert html.count('<article class="film"') >= 3
    assert "http" not in html.replace("http-equiv", "")


async def test_shuffled_rewards_carry_no_signal(here: Setting) -> None:
    """The same bandit that is learned above, with the control's shuffle."""
    text = 'control = "shuffle_rewards"\n' + here.recipe(iterations=6, eval_n=24)
    folder, _ = await here.train(text)
    summary = json.loads((folder / "summary.json").read_text())
    assert summary["control"] == "shuffle_rewards"
    assert summary["improvement"]["ci95"][0] <= 0.05


async def test_bad_input_is_one_sentence_with_the_right_error(
    here: Setting, tmp_path: Path
) -> None:
    good = here.recipe()
    (tmp_path / "empty").mkdir()
    for text, error, words in (
        (good.replace("turn_on", "turn_no"), UnknownTask, "did you mean 'settings_turn_on'?"),
        (good.replace(str(here.bandit.folder), "/nowhere"), BadCheckpoint, "no checkpoint folder"),
        (
            good.replace(str(here.bandit.folder), str(tmp_path / "empty")),
            BadCheckpoint,
            "is no checkpoint",
        ),
        (good.replace("groups", "gruops"), InvalidRequest, "did you mean 'groups'?"),
    ):
        with pytest.raises(error, match=words.replace("?", r"\?")):
            await here.client.create_run(text)
    for call in (here.client.get_run, here.client.cancel_run, here.client.resume_run):
        with pytest.raises(RunNotFound, match="there is no run 'r-1'"):
            await call("r-1")
    with pytest.raises(RunNotFound):
        await anext(here.client.watch_run("r-1"))
    assert await here.client.list_runs() == []


async def test_a_request_id_creates_one_run(here: Setting) -> None:
    text = here.recipe(iterations=0)
    first = await here.client.create_run(text, request_id="a")
    again = await here.client.create_run(text, request_id="a")
    other = await here.client.create_run(text, request_id="b")
    assert first.run_id == again.run_id != other.run_id
    with pytest.raises(InvalidRequest, match="another recipe"):
        await here.client.create_run(here.recipe(seed=9), request_id="a")


async def test_runs_train_one_after_the_other(here: Setting) -> None:
    runs = [await here.client.create_run(here.recipe(iterations=1)) for _ in range(2)]
    for run in runs:
        events = [event async for event in here.client.watch_run(run.run_id)]
        assert events[-1].status == RunStatus.SUCCEEDED
    owners = [policy_id for policy_id, _ in here.bandit.published]
    assert list(dict.fromkeys(owners)) == [run.run_id for run in runs]
    assert owners == sorted(owners, key=[run.run_id for run in runs].index)
    assert {run.run_id for run in await here.client.list_runs()} == {r.run_id for r in runs}


async def test_a_cancelled_run_balances_its_books_and_keeps_its_weights(here: Setting) -> None:
    holding = asyncio.Event()
    honest = here.bandit.play

    async def play(job: Job) -> Trajectory:
        if job.phase == "train-2":
            holding.set()
            await asyncio.Event().wait()
        return await honest(job)

    here.bandit.play = play  # type: ignore[method-assign,assignment]
    run = await here.client.create_run(here.recipe(iterations=50))
    waiting = await here.client.create_run(here.recipe())
    await asyncio.wait_for(holding.wait(), 60)
    assert (await here.client.cancel_run(waiting.run_id)).status == RunStatus.CANCELLED
    ended = await here.client.cancel_run(run.run_id)
    assert (ended.status, ended.error) == (RunStatus.CANCELLED, "the run was cancelled")
    summary = json.loads(ended.summary_json)
    assert summary["after"] is None
    episodes = summary["episodes"]
    assert episodes == {"requested": 12 + 32 + 32, "accepted": 44, "masked": 0, "dead": 32}
    checkpoint.load(here.folder / run.run_id / "checkpoint")
    assert (here.folder / run.run_id / "report.html").exists()
    # a second cancel, and a watcher that comes too late, find it ended
    assert (await here.client.cancel_run(run.run_id)).status == RunStatus.CANCELLED
    last = [event async for event in here.client.watch_run(run.run_id)][-1]
    assert (last.status, last.message) == (RunStatus.CANCELLED, "the run was cancelled")


async def test_losses_are_told_and_losing_everything_ends_the_run(here: Setting) -> None:
    lost = {"train-1": 8, "train-2": 32}
    here.bandit.fate = lambda job: (
        ResultStatus.MASKED
        if job.group * 8 + job.member < lost.get(job.phase, 0)
        else ResultStatus.ACCEPTED
    )
    _, events = await here.train(here.recipe(iterations=3))
    warnings = [event.message for event in events if event.message.startswith("warning")]
    assert warnings == ["warning: iteration 1: 8 of 32 episodes were lost, 8 to: fate"]
    assert events[-1].status == RunStatus.FAILED
    assert events[-1].message == "iteration 2: 32 of 32 episodes were lost, 32 to: fate"


async def test_a_policy_with_another_processor_is_refused(here: Setting) -> None:
    object.__setattr__(here.bandit.loaded, "processor_digest", "f" * 64)
    folder, events = await here.train(here.recipe())
    assert events[-1].status == RunStatus.FAILED
    assert "start it with the same checkpoint" in events[-1].message
    summary = json.loads((folder / "summary.json").read_text())
    assert summary["error"] == events[-1].message


async def test_a_policy_without_log_probabilities_is_evaluated_and_never_trained(
    here: Setting,
) -> None:
    here.bandit.logprobs = False
    _, events = await here.train(here.recipe())
    assert events[-1].status is RunStatus.FAILED
    assert "gives no log-probabilities: it can be evaluated" in events[-1].message
    here.bandit.policy_id, here.bandit.version = "", 0
    folder, events = await here.train(here.recipe(iterations=0))
    assert events[-1].status is RunStatus.SUCCEEDED
    assert here.bandit.published == []
    assert json.loads((folder / "summary.json").read_text())["before"]["n"] == 12


async def test_episodes_that_cannot_be_trained_on_end_the_run_with_their_name(
    here: Setting,
) -> None:
    honest = here.bandit.play

    async def play(job: Job) -> Trajectory:
        episode = await honest(job)
        if not job.phase.startswith("train"):
            return episode
        step = episode.steps[0]
        segment = step.segment.model_copy(update={"processor": "0" * 64})
        steps = (step.model_copy(update={"segment": segment}),)
        return episode.model_copy(update={"steps": steps})

    here.bandit.play = play  # type: ignore[method-assign,assignment]
    _, events = await here.train(here.recipe())
    assert events[-1].status == RunStatus.FAILED
    assert "/train-1/" in events[-1].message
    assert "was sampled with processor 000000000000" in events[-1].message


async def test_another_process_lists_past_runs_and_fails_the_interrupted(
    here: Setting, tmp_path: Path, thread: ThreadPoolExecutor
) -> None:
    folder, _ = await here.train(here.recipe(iterations=1))
    (here.folder / "broken").mkdir()
    (here.folder / "broken" / "run.json").write_text('{"status": "runn')
    (here.folder / "cut").mkdir()
    (here.folder / "cut" / "run.json").write_text(
        '{"run_id": "cut", "status": "running", "error": "", "created": "2020-01-01T00:00:00"}'
    )
    async with service(here.bandit, here.folder, thread) as later:
        listed = await later.client.list_runs()
        assert [run.run_id for run in listed] == [folder.name, "cut"]  # the newest first
        runs = {run.run_id: run for run in listed}
        assert (runs[folder.name].status, runs[folder.name].iteration) == (RunStatus.SUCCEEDED, 1)
        assert runs["cut"].status == RunStatus.FAILED
        assert "the trainer died" in runs["cut"].error
        events = [event async for event in later.client.watch_run(folder.name)]
        assert [event.status for event in events] == [RunStatus.SUCCEEDED]


async def test_another_trainer_on_the_same_folder_leaves_a_living_run_alone(
    here: Setting, thread: ThreadPoolExecutor
) -> None:
    """The lock ends with the process that holds it; here, when it is let go."""
    record = await here.runs.create(here.recipe(iterations=0))
    other = Runs(here.folder, here.runs._ports, thread=thread)
    other.restore()
    assert record.folder.read_json("run.json")["status"] in ("queued", "running")
    assert not other.get(record.run_id).status.ended
    for refused in (other.cancel, other.resume):
        with pytest.raises(InvalidRequest, match="belongs to another trainer"):
            await refused(record.run_id)
    await other.close()
    assert not record.status.ended
    async for _ in here.runs.watch(record.run_id):
        pass
    assert record.status is RunStatus.SUCCEEDED
    assert [r.status for r in other.list()] == [RunStatus.SUCCEEDED]


async def test_a_run_whose_trainer_died_has_failed_for_the_others(
    here: Setting, thread: ThreadPoolExecutor
) -> None:
    folder = RunDir(here.folder / "died-1")
    folder.create("")
    state = {"run_id": "died-1", "status": "running", "error": "", "created": "2026"}
    folder.write_json("run.json", state)
    assert folder.claim()
    other = Runs(here.folder, here.runs._ports, thread=thread)
    other.restore()
    assert other.get("died-1").status is RunStatus.RUNNING
    folder.release()
    assert other.get("died-1").status is RunStatus.FAILED
    assert "the trainer died" in folder.read_json("run.json")["error"]


async def test_every_metric_is_documented(here: Setting) -> None:
    folder, events = await here.train(here.recipe(iterations=2))
    text = (Path(__file__).parents[2] / "docs" / "metrics.md").read_text()
    written: set[str] = set()
    for line in (folder / "metrics.jsonl").read_text().splitlines():
        written |= set(json.loads(line))
    sent = {name for event in events for name in event.metrics}
    assert len(written) > 40
    assert [name for name in sorted(written | sent) if f"`{name}`" not in text] == []
    # And nothing is described that no run tells; two options that are off here tell more.
    rows = re.findall(r"^\| (`[^|]+) \|", text, re.MULTILINE)
    described = {name for row in rows for name in re.findall(r"`(\w+)`", row)}
    optional = {name for name in described if name.startswith("branch_")} | {"groups_replayed"}
    assert described - written - optional == set()


async def test_episodes_played_ahead_are_trained_on_within_the_bound(here: Setting) -> None:
    text = here.recipe(iterations=5).replace("stall_s = 20", "stall_s = 20\nmax_staleness = 1")
    folder, events = await here.train(text)
    assert events[-1].status == RunStatus.SUCCEEDED
    lines = [json.loads(line) for line in (folder / "metrics.jsonl").read_text().splitlines()]
    assert len(lines) == 5
    # The first iteration has nothing to be behind of; later ones begin while one trains.
    assert lines[0]["staleness_max"] == 0
    assert max(line["staleness_max"] for line in lines) == 1
    assert all(line["episodes_stale"] == 0 for line in lines)
    assert all(line["requested"] == 32 for line in lines)
    jobs = [json.loads(line) for line in (folder / "trajectories.jsonl").read_text().splitlines()]
    assert len({job["job_id"] for job in jobs}) == len(jobs) == 12 + 5 * 32 + 12


async def test_the_best_weights_by_validation_are_kept(here: Setting) -> None:
    text = here.recipe(iterations=3).replace(
        "eval_n = 12", "eval_n = 12\nvalidation_seeds = [2000, 3000]\nvalidation_n = 8"
    )
    text = text.replace("stall_s = 20", "stall_s = 20\nvalidate_every = 1")
    folder, events = await here.train(text)
    assert events[-1].status == RunStatus.SUCCEEDED
    jobs = [json.loads(line) for line in (folder / "trajectories.jsonl").read_text().splitlines()]
    rates = {
        i: [job["success"] for job in jobs if job["phase"] == f"validate-{i}"] for i in (1, 2, 3)
    }
    assert [len(found) for found in rates.values()] == [8, 8, 8]
    best = json.loads((folder / "summary.json").read_text())["best"]
    first = max(rates, key=lambda i: (sum(rates[i]), -i))
    assert (best["iteration"], best["success"]) == (first, sum(rates[first]) / 8)
    published = (folder / "versions.jsonl").read_text().splitlines()
    version = next(
        line for line in map(json.loads, published) if line["version"] == best["version"]
    )
    kept = checkpoint.load(folder / "best")
    again = checkpoint.load(here.bandit.folder)
    load_weights(again.model, await here.bandit.blobs.get(version["weights"]))
    theirs = again.model.state_dict()
    assert all(t.equal(theirs[name]) for name, t in kept.model.state_dict().items())


async def test_a_run_of_no_iteration_evaluates_once(here: Setting) -> None:
    folder, events = await here.train(here.recipe(iterations=0))
    summary = json.loads((folder / "summary.json").read_text())
    assert events[-1].status == RunStatus.SUCCEEDED
    assert summary["before"]["n"] == summary["episodes"]["requested"] == 12
    assert summary["after"] is None
    assert "nothing was trained" in (folder / "report.html").read_text()


async def test_a_cancelled_run_goes_on_from_its_saved_state(here: Setting) -> None:
    holding, release = asyncio.Event(), asyncio.Event()
    honest = here.bandit.play

    async def play(job: Job) -> Trajectory:
        if job.phase == "train-2" and not release.is_set():
            holding.set()
            await release.wait()
        return await honest(job)

    here.bandit.play = play  # type: ignore[method-assign,assignment]
    run = await here.client.create_run(here.recipe(iterations=3))
    assert (await here.client.resume_run(run.run_id)).status != RunStatus.FAILED  # it is going on
    await holding.wait()
    assert (await here.client.cancel_run(run.run_id)).status == RunStatus.CANCELLED
    release.set()
    assert not (await here.client.resume_run(run.run_id)).status.ended
    events = [event async for event in here.client.watch_run(run.run_id)]
    assert events[-1].status == RunStatus.SUCCEEDED
    assert "resumed after iteration 1" in [event.message for event in events]
    folder = here.folder / run.run_id
    lines = [json.loads(line) for line in (folder / "metrics.jsonl").read_text().splitlines()]
    assert [line["iteration"] for line in lines] == [1, 2, 3]
    summary = json.loads((folder / "summary.json").read_text())
    # the 32 jobs of the iteration that was cut off ended as dead; they were asked for again
    requested = 12 + 32 + 32 + 2 * 32 + 12
    assert summary["episodes"]["requested"] == requested
    assert summary["episodes"]["dead"] == 32
    assert summary["before"]["n"] == summary["after"]["n"] == 12
    with pytest.raises(InvalidRequest, match="has succeeded"):
        await here.client.resume_run(run.run_id)


async def test_groups_that_teach_nothing_are_replaced_within_bounds(here: Setting) -> None:
    honest = here.bandit.play
    flat = 2

    async def play(job: Job) -> Trajectory:
        """The first `flat` groups of an iteration succeed as one, the others in turns."""
        episode = await honest(job)
        success = job.group < flat or job.member % 2 == 0
        verdict = Verdict.SUCCESS if success else Verdict.FAILURE
        judgement = Judgement(verdict=verdict, reason="by its number", judge="test")
        return episode.model_copy(update={"judgement": judgement})

    here.bandit.play = play  # type: ignore[method-assign,assignment]
    text = here.recipe(iterations=1).replace(
        "stall_s = 20", "stall_s = 20\ndynamic_sampling = true\nmax_refills = 2"
    )

    async def counts() -> list[float]:
        folder, events = await here.train(text)
        assert events[-1].status == RunStatus.SUCCEEDED
        line = json.loads((folder / "metrics.jsonl").read_text())
        return [line[key] for key in ("groups", "groups_used", "refills", "requested")]

    assert await counts() == [6, 4, 1, 48]
    flat = 1000
    assert await counts() == [12, 0, 2, 96]
