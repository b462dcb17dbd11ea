"""Many runs and several trainers: created, queued, cancelled, resumed, listed."""

import asyncio
import json
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from services.trainer.rundir import RunDir
from services.trainer.runs import Runs
from tests import tiny_checkpoints
from tests.trainer_cases import Bandit
from tests.trainer_service import Setting, service
from wmkit.domain.episode import Job, Trajectory
from wmkit.domain.errors import BadCheckpoint, InvalidRequest, RunNotFound, UnknownTask
from wmkit.domain.runs import RunStatus
from wmkit.modeling import checkpoint


@pytest.fixture
async def here(tmp_path: Path) -> AsyncIterator[Setting]:
    bandit = Bandit(tiny_checkpoints.make(tmp_path / "tiny"))
    async with service(bandit, tmp_path / "runs") as setting:
        yield setting


async def test_bad_input_is_one_sentence_with_the_right_error(
    here: Setting, tmp_path: Path
) -> None:
    good = here.recipe()
    (tmp_path / "empty").mkdir()
    for text, error, words in (
        (good.replace("turn_on", "turn_no"), UnknownTask, "did you mean 'settings_turn_on'?"),
        (
            good.replace(str(here.bandit.folder), str(tmp_path / "nowhere")),
            BadCheckpoint,
            "no checkpoint folder",
        ),
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


async def test_another_process_lists_past_runs_and_fails_the_interrupted(
    here: Setting, tmp_path: Path
) -> None:
    folder, _ = await here.train(here.recipe(iterations=1))
    (here.folder / "broken").mkdir()
    (here.folder / "broken" / "run.json").write_text('{"status": "runn')
    (here.folder / "cut").mkdir()
    (here.folder / "cut" / "run.json").write_text(
        '{"run_id": "cut", "status": "running", "error": "", "created": "2020-01-01T00:00:00"}'
    )
    async with service(here.bandit, here.folder) as later:
        listed = await later.client.list_runs()
        assert [run.run_id for run in listed] == [folder.name, "cut"]  # the newest first
        runs = {run.run_id: run for run in listed}
        assert (runs[folder.name].status, runs[folder.name].iteration) == (RunStatus.SUCCEEDED, 1)
        assert runs["cut"].status == RunStatus.FAILED
        assert "the trainer died" in runs["cut"].error
        events = [event async for event in later.client.watch_run(folder.name)]
        assert [event.status for event in events] == [RunStatus.SUCCEEDED]


async def test_another_trainer_on_the_same_folder_leaves_a_living_run_alone(here: Setting) -> None:
    """The lock ends with the process that holds it; here, when it is let go."""
    record = await here.runs.create(here.recipe(iterations=0))
    other = Runs(here.folder, here.runs._ports, thread=here.thread)
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


async def test_a_run_whose_trainer_died_has_failed_for_the_others(here: Setting) -> None:
    folder = RunDir(here.folder / "died-1")
    folder.create("")
    state = {"run_id": "died-1", "status": "running", "error": "", "created": "2026"}
    folder.write_json("run.json", state)
    assert folder.claim()
    other = Runs(here.folder, here.runs._ports, thread=here.thread)
    other.restore()
    assert other.get("died-1").status is RunStatus.RUNNING
    folder.release()
    assert other.get("died-1").status is RunStatus.FAILED
    assert "the trainer died" in folder.read_json("run.json")["error"]


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
