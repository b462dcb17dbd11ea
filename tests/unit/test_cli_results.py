"""How a run is told: lines while it goes on, a table and a verdict at its end."""

import io
import json
from pathlib import Path
from typing import Any

import pytest
from rich.console import Console

from wmkit.cli.results import comparison, print_results, verdict
from wmkit.cli.runs import local_run, local_runs
from wmkit.cli.watching import Watcher, describe
from wmkit.domain.runs import Run, RunEvent, RunStatus


def rate(success: float, n: int, low: float, high: float) -> dict[str, Any]:
    return {"success": success, "n": n, "ci95": [low, high]}


def change(mean: float, low: float, high: float) -> dict[str, Any]:
    return {"mean": mean, "ci95": [low, high], "n": 256, "wins": 61, "losses": 12, "p_value": 0.01}


def summary(low: float = 0.1, high: float = 0.3) -> dict[str, Any]:
    row = {
        "before": rate(0.5, 256, 0.44, 0.56),
        "after": rate(0.695, 256, 0.636, 0.748),
        "improvement": change(0.195, low, high),
    }
    return {
        **row,
        "by_app": {"Clock": {**row, "before": None, "improvement": None}},
        "iterations": 41,
        "episodes": {"requested": 3136, "accepted": 3130, "masked": 5, "dead": 1},
        "transitions": {"commit": 9000, "imagine": 1200, "cache_hits": 8000},
        "wall_s": 241.7,
    }


def printed(what: object) -> str:
    console = Console(file=io.StringIO(), width=100)
    console.print(what)
    assert isinstance(console.file, io.StringIO)
    return console.file.getvalue()


def test_the_table_has_a_row_per_app_and_one_for_all() -> None:
    lines = printed(comparison(summary())).splitlines()
    clock = next(line for line in lines if "Clock" in line)
    total = next(line for line in lines if " all " in line)
    assert [cell.strip() for cell in clock.strip("│ ").split("│")] == [
        "Clock", "256", "-", "69.5 % [63.6, 74.8]", "-",
    ]  # fmt: skip
    assert [cell.strip() for cell in total.strip("│ ").split("│")] == [
        "all", "256", "50.0 % [44.0, 56.0]", "69.5 % [63.6, 74.8]", "+19.5 [10.0, 30.0]",
    ]  # fmt: skip


def test_an_evaluation_is_not_compared_with_nothing() -> None:
    rated = {"before": rate(0.5, 8, 0.2, 0.8), "after": None, "improvement": None}
    never = {**rated, "after": rate(0.0, 0, 0.0, 1.0)}
    text = printed(comparison({**rated, "by_app": {"Clock": never}, "iterations": 0}))
    assert "after" not in text and "difference" not in text
    clock = next(line for line in text.splitlines() if "Clock" in line)
    assert [cell.strip() for cell in clock.strip("│ ").split("│")] == [
        "Clock", "8", "50.0 % [20.0, 80.0]",
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("low", "high", "said"),
    [(0.1, 0.3, "better"), (-0.3, -0.1, "worse"), (-0.01, 0.4, "No difference beyond chance")],
)
def test_the_verdict_says_what_the_interval_says(low: float, high: float, said: str) -> None:
    text = printed(verdict(summary(low, high)))
    assert said in text and "61 tasks turned from failure to success, 12 the other way" in text


def test_an_evaluation_alone_has_no_verdict() -> None:
    assert verdict({"before": rate(0.5, 10, 0.2, 0.8), "improvement": None}) == ""


def test_the_end_of_a_run_names_the_files_that_are_there(tmp_path: Path) -> None:
    (tmp_path / "summary.json").write_text("{}")
    run = Run("r", RunStatus.SUCCEEDED, str(tmp_path), summary_json=json.dumps(summary()))
    console = Console(file=io.StringIO(), width=200)
    print_results(console, run)
    assert isinstance(console.file, io.StringIO)
    text = console.file.getvalue()
    assert str(tmp_path / "summary.json") in text and "report.html" not in text
    assert "3136 episodes (3130 accepted, 5 masked, 1 dead)" in text


def test_a_run_is_watched_as_lines_where_there_is_no_terminal() -> None:
    console = Console(file=io.StringIO(), width=200, force_terminal=False)
    running = RunStatus.RUNNING
    evaluated = {
        "success": 0.5, "n": 256, "ci95_low": 0.44, "ci95_high": 0.56, "length": 3.25, "calls": 1.5,
    }  # fmt: skip
    trained = {
        "iteration": 7, "success": 0.75, "reward": 0.8, "length": 3, "calls": 1, "groups": 8,
        "groups_used": 5, "elapsed_s": 31.4,
    }  # fmt: skip
    with Watcher(console) as watcher:
        watcher.show(RunEvent(running, "evaluate-before", message="evaluating 256 instances"))
        watcher.show(RunEvent(running, "evaluate-before", done=3, total=256))
        watcher.show(RunEvent(running, "evaluate-before", metrics=evaluated))
        watcher.show(RunEvent(running, "train", 0, message="training"))
        watcher.show(RunEvent(running, "train", 7, metrics=trained))
    assert isinstance(console.file, io.StringIO)
    lines = console.file.getvalue().splitlines()
    assert lines == [
        "before training: held-out tasks, greedy",
        "  success 50.0 % [44.0, 56.0] of 256 tasks, 3.2 steps and 1.5 imagined screens each",
        "training: other tasks in every iteration, easy ones and hard ones",
        "  iter  success                    reward  steps  imagined  taught    time",
        "     7  ████████████····  75.0 %    0.80    3.0       1.0     5/8    31 s",
    ]


def test_a_warning_of_the_trainer_is_shown() -> None:
    warning = "iteration 3: sampler and trainer disagree by 0.0300 nats a token"
    assert warning in describe(RunEvent(RunStatus.RUNNING, "train", 3, message=warning))


def test_runs_are_read_from_their_folders_newest_first(tmp_path: Path) -> None:
    for name, status in (("a", "succeeded"), ("b", "failed")):
        (tmp_path / name).mkdir()
        told = {"run_id": name, "status": status, "error": "no worker" if name == "b" else ""}
        (tmp_path / name / "run.json").write_text(json.dumps(told))
    (tmp_path / "a" / "metrics.jsonl").write_text("{}\n{}\n")
    (tmp_path / "broken").mkdir()
    (tmp_path / "broken" / "run.json").write_text("{")
    runs = {run.run_id: run for run in local_runs(tmp_path)}
    assert set(runs) == {"a", "b"}
    assert runs["a"].iteration == 2 and runs["b"].error == "no worker"
    assert local_run(tmp_path / "c") is None
