"""One run over real gRPC, with a bandit for world, policy and worker (see trainer_cases)."""

import json
import re
import tomllib
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from tests import tiny_checkpoints
from tests.trainer_cases import Bandit
from tests.trainer_service import Setting, service
from wmkit.domain.episode import Job, ResultStatus, Trajectory
from wmkit.domain.runs import RunStatus
from wmkit.domain.tasks import Judgement, Verdict
from wmkit.modeling import checkpoint
from wmkit.modeling.weights import load_weights


@pytest.fixture
async def here(tmp_path: Path) -> AsyncIterator[Setting]:
    bandit = Bandit(tiny_checkpoints.make(tmp_path / "tiny"))
    async with service(bandit, tmp_path / "runs") as setting:
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
