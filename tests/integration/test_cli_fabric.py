"""`wmr1 queue`, `wmr1 trajectories`, `sft` and `gc` on a real Redis and a real folder of blobs."""

import json
import os
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from services.rollout.episode import play
from tests import tiny_checkpoints
from tests.redis_server import RedisServer
from tests.rollout_cases import FINISH, R, a_job, a_world, acts, an_agent
from tests.trainer_cases import Bandit, job
from wmkit.blobs import digest, open_blobs
from wmkit.cli import main
from wmkit.domain.episode import Result, ResultStatus, Trajectory
from wmkit.ports import Ledger
from wmkit.queue.redis import RedisJobQueue

Wmr1 = Callable[..., tuple[int, str, str]]


@pytest.fixture
def server(tmp_path: Path) -> Iterator[RedisServer]:
    server = RedisServer(tmp_path).start()
    yield server
    server.kill()


@pytest.fixture
def wmr1(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> Wmr1:
    """Runs a command and gives exit code, output and errors."""
    monkeypatch.setenv("WMR1_BLOBS", str(tmp_path / "blobs"))
    monkeypatch.setenv("WMR1_RUNS", str(tmp_path / "runs"))

    def run(*arguments: str) -> tuple[int, str, str]:
        monkeypatch.setattr(sys, "argv", ["wmr1", *arguments])
        capsys.readouterr()
        code = 0
        try:
            main()
        except SystemExit as stop:
            code = int(stop.code or 0)
        return code, *capsys.readouterr()

    return run


async def fill(url: str) -> None:
    """Six jobs of r1: one accepted, one dead, one masked, one held, one pausing, one waiting."""
    async with RedisJobQueue(url) as queue:
        await queue.submit([a_job(job_id=f"j{n}", member=n) for n in range(6)])
        held = await queue.take("w1", 5, 0)
        for delivery, status in zip(held, ResultStatus, strict=False):
            named = delivery.job.model_dump(
                include={"job_id", "run_id", "phase", "group", "member"}
            )
            end = Result(**named, status=status, reason="" if status == "accepted" else "broken")
            await queue.finish(delivery, end, traceback="Traceback\nZeroDivisionError: x\n")
        await queue.retry(held[3], delay_s=600.0)


async def ledger(url: str, run: str) -> Ledger:
    async with RedisJobQueue(url) as queue:
        return await queue.ledger(run)


# The commands run an event loop of their own, so these tests have none.
def run(coroutine: Any) -> Any:
    import asyncio

    return asyncio.run(coroutine)


def test_stats_tell_where_every_job_is(server: RedisServer, wmr1: Wmr1) -> None:
    run(fill(server.url))
    code, output, _ = wmr1("queue", "stats", "--json", "--redis", server.url)
    found = json.loads(output)
    assert code == 0
    (normal,) = [s for s in found["streams"] if s["priority"] == "normal"]
    assert (normal["waiting"], normal["held"], normal["workers"]) == (1, 1, {"w1": 1})
    assert (found["pausing"], found["letters"]) == (1, 2)
    assert found["runs"] == {"r1": {"requested": 6, "accepted": 1, "masked": 1, "dead": 1}}
    _, table, _ = wmr1("queue", "stats", "--redis", server.url)
    assert "1 pause before a retry, 2 dead letters" in table


def test_dead_jobs_are_listed_and_played_again_in_a_run_of_their_own(
    server: RedisServer, wmr1: Wmr1
) -> None:
    run(fill(server.url))
    _, text, _ = wmr1("queue", "dead", "list", "--redis", server.url)
    assert "masked j1" in text and "dead j2" in text and "ZeroDivisionError: x" in text
    _, output, _ = wmr1("queue", "dead", "list", "--json", "--redis", server.url)
    letters = json.loads(output)
    assert [x["job"]["job_id"] for x in letters] == ["j1", "j2"]
    code, text, _ = wmr1("queue", "dead", "retry", letters[0]["id"], "--redis", server.url)
    assert code == 0 and "r1~again" in text
    assert run(ledger(server.url, "r1")) == Ledger(requested=6, accepted=1, masked=1, dead=1)
    assert run(ledger(server.url, "r1~again")) == Ledger(requested=1)
    code, _, error = wmr1("queue", "dead", "retry", letters[0]["id"], "--redis", server.url)
    assert code == 1 and "there is no dead letter" in error
    wmr1("queue", "dead", "retry", "--run", "r1", "--redis", server.url)
    assert run(ledger(server.url, "r1~again")) == Ledger(requested=2)
    assert "no dead letters" in wmr1("queue", "dead", "list", "--redis", server.url)[1]


def test_a_drained_queue_is_empty_and_its_ledger_balances(server: RedisServer, wmr1: Wmr1) -> None:
    run(fill(server.url))
    other = [a_job(job_id="other", run_id="r2", priority="low")]

    async def submit() -> None:
        async with RedisJobQueue(server.url) as queue:
            await queue.submit(other)

    run(submit())
    code, text, _ = wmr1("queue", "drain", "--run", "r1", "--yes", "--redis", server.url)
    assert (code, text) == (0, "3 jobs ended as dead\n")
    assert run(ledger(server.url, "r1")) == Ledger(requested=6, accepted=1, masked=1, dead=4)
    assert run(ledger(server.url, "r2")) == Ledger(requested=1)
    wmr1("queue", "drain", "--yes", "--redis", server.url)
    assert run(ledger(server.url, "r2")) == Ledger(requested=1, dead=1)

    async def left() -> Any:
        async with RedisJobQueue(server.url) as queue:
            return await queue.take("w2", 9, 0)

    assert run(left()) == []


@pytest.fixture
def stored(tmp_path: Path) -> tuple[Trajectory, str]:
    """An episode in the blob store and in the files of a run `r1`."""

    async def make() -> tuple[Trajectory, str]:
        blobs = open_blobs(str(tmp_path / "blobs"))
        world = a_world()
        world.blobs = blobs
        played = await play(a_job(), world=world, policy=an_agent(acts(R), FINISH))
        name = await blobs.put(played.model_dump_json().encode())
        folder = tmp_path / "runs" / "r1"
        folder.mkdir(parents=True)
        (folder / "run.json").write_text("{}")
        weights = [await blobs.put(b"weights %d" % n) for n in range(3)]
        versions = [{"version": n, "weights": w} for n, w in enumerate(weights)]
        lines = [
            {"phase": "train-0", "status": "accepted", "trajectory": name},
            {"phase": "train-0", "status": "dead", "trajectory": ""},
        ]
        (folder / "versions.jsonl").write_text("".join(json.dumps(v) + "\n" for v in versions))
        (folder / "trajectories.jsonl").write_text("".join(json.dumps(x) + "\n" for x in lines))
        return played, name

    made: tuple[Trajectory, str] = run(make())
    return made


def test_episodes_go_out_as_files_and_come_in_with_the_same_digest(
    stored: tuple[Trajectory, str], tmp_path: Path, wmr1: Wmr1, monkeypatch: pytest.MonkeyPatch
) -> None:
    out = tmp_path / "out"
    code, text, error = wmr1("trajectories", "export", "r1", "--to", str(out))
    assert (code, error) == (0, "") and "1 files in" in text
    (path,) = out.iterdir()
    assert path.name == "r1-train-0-1-2.safetensors"
    monkeypatch.setenv("WMR1_BLOBS", str(tmp_path / "elsewhere"))
    code, text, _ = wmr1("trajectories", "import", str(path))
    assert (code, text) == (0, stored[1] + "\n")
    for name in (str(path), stored[1], "imported"):
        code, text, _ = wmr1("trajectories", "validate", name)
        assert (code, text) == (0, "1 trajectories, 0 with problems\n")
    code, text, _ = wmr1("trajectories", "show", stored[1])
    assert code == 0 and "success: the phone is at startR" in text
    page = tmp_path / "film.html"
    assert wmr1("trajectories", "show", str(path), "--html", str(page))[0] == 0
    assert page.read_text().count("data:image/png") == 3


def test_exported_files_are_what_another_machine_learns_from(
    tmp_path: Path, wmr1: Wmr1, monkeypatch: pytest.MonkeyPatch
) -> None:
    base = tiny_checkpoints.make(tmp_path / "tiny")
    bandit = Bandit(base, rewarded=lambda token: token < 300)
    bandit.blobs = open_blobs(str(tmp_path / "blobs"))
    bandit.policy_id, bandit.version = "r1", 0
    episodes = []
    lines = []
    for member in range(12):
        of = job(job_id=f"r1/train-1/0/{member}", member=member, seed=member, policy_id="r1")
        episodes.append(run(bandit.play(of)))
        name = run(bandit.blobs.put(episodes[-1].model_dump_json().encode()))
        lines.append({"job_id": of.job_id, "phase": of.phase, "trajectory": name})
    folder = tmp_path / "runs" / "r1"
    folder.mkdir(parents=True)
    (folder / "trajectories.jsonl").write_text("".join(json.dumps(x) + "\n" for x in lines))
    assert wmr1("trajectories", "export", "r1", "--to", str(tmp_path / "out"))[0] == 0

    monkeypatch.setenv("WMR1_BLOBS", str(tmp_path / "other" / "blobs"))
    monkeypatch.setenv("WMR1_RUNS", str(tmp_path / "other" / "runs"))
    files = sorted(map(str, (tmp_path / "out").iterdir()))
    for _ in range(2):  # the second time changes nothing
        code, text, _ = wmr1("trajectories", "import", *files)
        assert (code, len(text.splitlines())) == (0, 12)
    recipe = tmp_path / "sft.toml"
    recipe.write_text(
        f'checkpoint = "{base}"\ndata = ["{tmp_path}/other/runs/imported"]\nepochs = 10\n'
        "[optimizer]\nlr = 3e-3\nwarmup = 0\n"
    )
    code, _, error = wmr1("sft", str(recipe))
    assert (code, error) == (0, "")
    (learned,) = (tmp_path / "other" / "runs").glob("sft-*")
    metrics = [json.loads(line) for line in (learned / "metrics.jsonl").read_text().splitlines()]
    segments = [e.steps[0].segment for e in episodes]
    good = [s for s in segments if s.token_ids[-2] < 300]
    assert 0 < len(good) < 12
    assert [line["samples"] for line in metrics] == [len(good)] * 10
    sampled = [p for s in good for p in s.logprobs[-2:]]
    assert metrics[0]["loss"] == pytest.approx(-sum(sampled) / len(sampled), rel=1e-4)
    assert metrics[-1]["loss"] < metrics[0]["loss"] * 0.9
    assert (learned / "checkpoint" / "model.safetensors").is_file()


def test_a_damaged_file_and_a_missing_blob_fail_validation(
    stored: tuple[Trajectory, str], tmp_path: Path, wmr1: Wmr1
) -> None:
    wmr1("trajectories", "export", "r1", "--to", str(tmp_path / "out"))
    (path,) = (tmp_path / "out").iterdir()
    path.write_bytes(path.read_bytes()[:-1] + b"?")
    picture = stored[0].final_screenshot
    (tmp_path / "blobs" / picture[:2] / picture[2:]).unlink()
    code, text, _ = wmr1("trajectories", "validate", str(path), "r1")
    assert code == 1
    assert "is damaged" in text and f"blob {picture} is not in the store" in text
    assert "2 trajectories, 2 with problems" in text


def test_garbage_is_what_no_run_names_and_is_old_enough(
    stored: tuple[Trajectory, str], tmp_path: Path, wmr1: Wmr1
) -> None:
    blobs = tmp_path / "blobs"

    def names() -> set[str]:
        return {path.parent.name + path.name for path in blobs.glob("??/*")}

    orphan, young = (run(open_blobs(str(blobs)).put(x)) for x in (b"orphan", b"young"))
    (blobs / "notes.txt").write_text("not a blob")
    before = names()
    for path in blobs.glob("??/*"):
        if path.parent.name + path.name != young:
            os.utime(path, (0, 0))
    code, text, error = wmr1("gc", "--dry-run")
    assert (code, error) == (0, "") and text.startswith("2 blobs, ") and names() == before
    assert wmr1("gc")[0] == 0
    assert before - names() == {orphan, digest(b"weights 0")}
    assert (blobs / "notes.txt").exists()
    assert wmr1("trajectories", "validate", "r1")[0] == 0
    code, _, error = wmr1("gc", "--folder", str(tmp_path / "nowhere"))
    assert code == 1 and "there is no folder of runs" in error
