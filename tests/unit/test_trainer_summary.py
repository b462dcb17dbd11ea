"""Evaluation rows to rates, differences and the summary."""

import json

import pytest

from services.trainer.evaluation import Row, compare, compare_by, describe, row
from services.trainer.gather import Episode
from services.trainer.recipe import Recipe
from services.trainer.summary import Findings, Transitions, check_books, summarize
from tests.trainer_cases import imagined, job, step, trajectory
from wmkit.domain.episode import Result, ResultStatus
from wmkit.domain.tasks import TaskRef
from wmkit.domain.transition import FailureReason, Outcome
from wmkit.ports import Ledger

RECIPE = Recipe.model_validate({"checkpoint": "x", "seed": 5, "tasks": {"templates": ["a"]}})


def rows(successes: str, app: str = "Clock") -> list[Row]:
    """One row per letter: `y`es, `n`o or `-` for lost."""
    return [
        Row(f"{app}:{i}", app.lower(), {"y": True, "n": False, "-": None}[letter], app,
            complexity=3, trajectory="" if letter == "-" else "digest")
        for i, letter in enumerate(successes)
    ]  # fmt: skip


def test_only_instances_valid_both_times_are_paired() -> None:
    #          won  won  kept lost gone gone both fail
    result = compare("all", rows("nnyy-ny-"), rows("yyyny-n-"))
    assert result.improvement is not None
    assert (result.improvement.n, result.improvement.wins, result.improvement.losses) == (5, 2, 2)
    assert result.improvement.mean == 0
    assert (result.before.success, result.before.n) == (3 / 6, 6)
    assert (result.after.success, result.after.n) == (4 / 6, 6)


def test_without_any_pair_there_is_no_difference() -> None:
    result = compare("all", rows("y-"), rows("-y"))
    assert result.improvement is None
    assert result.before.n == result.after.n == 1


def test_by_app_every_instance_is_counted_once_under_its_app() -> None:
    before = [*rows("nny"), *rows("yn", "Notes")]
    after = [*rows("yyn"), *rows("yy", "Notes")]
    # an instance that was lost before it was played has no app of its own
    lost = Row("Clock:2", "clock", None)
    found = compare_by("app", [*before[:2], lost, *before[3:]], after)
    assert [(c.name, c.before.n, c.after.n) for c in found] == [("Clock", 2, 3), ("Notes", 2, 2)]
    assert found[0].improvement is not None
    assert found[0].improvement.mean == 1


def test_a_row_of_each_kind_of_end() -> None:
    of = job(task=TaskRef(template="notes_pin", seed=9))

    def result(status: ResultStatus) -> Result:
        return Result(
            job_id=of.job_id, run_id="run", phase="e", group=0, member=0, status=status,
            trajectory="digest" if status == ResultStatus.ACCEPTED else "",
        )  # fmt: skip

    played = trajectory(of, steps=[step(0, imagined=(imagined(),)), step(1)])
    accepted = row(Episode(of, result(ResultStatus.ACCEPTED), played))
    assert accepted == Row("notes_pin:9", "notes_pin", True, "Notes", 3, 2, 1, "digest")
    dead = row(Episode(of, result(ResultStatus.DEAD)))
    assert (dead.success, dead.reason) == (None, "dead")
    unsure = trajectory(of, success=None)
    assert row(Episode(of, result(ResultStatus.ACCEPTED), unsure)).success is None


def test_transitions_are_world_model_answers_by_purpose() -> None:
    counted = Transitions()
    failed = {"outcome": Outcome.FAILED, "reason": FailureReason.BLANK, "answered": False}
    calls = (imagined(1, cache_hit=True), imagined(2, **failed), imagined(3, outcome=None))
    finish = {"action": {"action": "finish"}, "outcome": None, "next_state_id": ""}
    counted.add(trajectory(steps=[step(0, imagined=calls, cache_hit=True), step(1, **finish)]))
    assert (counted.commit, counted.imagine, counted.cache_hits) == (1, 2, 2)


def test_the_summary_has_the_agreed_shape_and_is_json() -> None:
    findings = Findings(rows("nnny"), rows("yyny"), Transitions(10, 4, 3), iterations=7)
    summary = summarize(
        findings,
        run_id="r1",
        status="succeeded",
        error="",
        recipe=RECIPE,
        ledger=Ledger(20, 17, 2, 1),
        wall_s=12.5,
    )
    assert json.loads(json.dumps(summary, allow_nan=False)) == summary
    assert summary["run_id"] == "r1"
    assert summary["before"]["success"] == 0.25
    assert summary["after"] == {
        "success": 0.75, "n": 4, "ci95": pytest.approx([0.3006, 0.9544], abs=1e-4),
    }  # fmt: skip
    assert summary["improvement"]["mean"] == 0.5
    assert len(summary["improvement"]["ci95"]) == 2
    assert summary["iterations"] == 7
    assert summary["episodes"] == {"requested": 20, "accepted": 17, "masked": 2, "dead": 1}
    assert summary["transitions"] == {"commit": 10, "imagine": 4, "cache_hits": 3}
    assert summary["wall_s"] == 12.5
    assert summary["by_app"]["Clock"]["improvement"]["wins"] == 2


def test_a_run_that_ended_early_has_nulls_instead_of_claims() -> None:
    summary = summarize(
        Findings(rows("ny")),
        run_id="r",
        status="cancelled",
        error="the run was cancelled",
        recipe=RECIPE,
        ledger=Ledger(2, 2),
        wall_s=1.0,
    )
    assert summary["after"] is None
    assert summary["improvement"] is None
    assert summary["before"]["n"] == 2


def test_books_must_balance() -> None:
    check_books(Ledger(5, 3, 1, 1))
    with pytest.raises(AssertionError, match="are not 6 requested"):
        check_books(Ledger(6, 3, 1, 1))


def test_what_a_watcher_sees_of_an_evaluation() -> None:
    seen = describe(rows("yyn-"))
    assert seen["success"] == pytest.approx(2 / 3)
    assert seen["n"] == 3
    assert seen["complexity"] == 3
