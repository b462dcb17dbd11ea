"""The command line from outside: help, options, one sentence per mistake."""

import sys
from pathlib import Path
from typing import Any

import pytest
from typer.main import get_command
from typer.testing import CliRunner

from wmkit.cli import main
from wmkit.cli.app import app
from wmkit.cli.recipes import changed, checkpoint, read
from wmkit.domain.errors import BadCheckpoint, InvalidRequest, NotFound


def commands() -> list[list[str]]:
    def below(command: Any) -> list[list[str]]:
        inner = getattr(command, "commands", None)
        if not inner:
            return [[]]
        return [[name, *rest] for name, each in inner.items() for rest in below(each)]

    return below(get_command(app))


def test_there_are_the_commands_that_the_readme_names() -> None:
    assert {" ".join(command) for command in commands()} == {
        "demo", "up", "train", "sft", "resume", "eval", "play", "doctor",
        "tasks list", "tasks generate", "tasks validate", "tasks curate", "tasks stats",
        "runs list", "runs show", "runs watch", "runs cancel", "runs compare", "dialect explain",
        "judge measure",
        "queue stats", "queue drain", "queue dead list", "queue dead retry", "gc",
        "trajectories export", "trajectories import", "trajectories validate",
        "trajectories show",
    }  # fmt: skip


@pytest.mark.parametrize("command", commands(), ids=" ".join)
def test_every_help_has_an_example(command: list[str]) -> None:
    done = CliRunner().invoke(app, [*command, "--help"])
    assert done.exit_code == 0 and f"Example: wmr1 {' '.join(command)}" in done.output


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (["eval", "no/such/folder"], "wmr1: there is no checkpoint folder 'no/such/folder'"),
        (["train", "no.toml"], "wmr1: there is no recipe 'no.toml'"),
        (["up", "worldmodle"], "wmr1: there is no service 'worldmodle'; known: renderer, "),
        (["runs", "show", "r-1"], "wmr1: there is no run 'r-1' in "),
        (["resume", "r-1"], "wmr1: there is no run 'r-1' in "),
        (["queue", "drain"], "wmr1: this ends all outstanding jobs as dead; add --yes to do it"),
        (["queue", "dead", "retry"], "wmr1: name letters, or a run by --run, or --all"),
        (
            ["queue", "stats", "--redis", "redis://127.0.0.1:1"],
            "wmr1: Redis at 127.0.0.1:1 does not answer",
        ),
        (
            ["trajectories", "show", "nothing"],
            "wmr1: 'nothing' is no digest (64 lower-case hex digits)",
        ),
        (["trajectories", "validate", "r-1"], "wmr1: 'r-1' is no trajectory file, no digest, and"),
        (["dialect", "explain", "x"], "wmr1: unknown dialect 'x'; known: wmr1_android"),
        (["dialect", "explain", "gworld", "--screen", "big"], "wmr1: 'big' is no size"),
    ],
    ids=lambda value: value if isinstance(value, str) else " ".join(value),
)
def test_a_mistake_is_one_sentence_and_exit_code_1(
    arguments: list[str],
    sentence: str,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.setattr(sys, "argv", ["wmr1", *arguments])
    with pytest.raises(SystemExit) as stop:
        main()
    assert stop.value.code == 1
    error = capsys.readouterr().err
    assert error.startswith(sentence) and error.count("\n") == 1


def test_options_change_a_recipe_and_its_rules_still_hold() -> None:
    recipe = read("recipes/demo.toml")
    other = changed(recipe, {"seed": 9, "schedule.iterations": 0, "name": None})
    assert (other.seed, other.schedule.iterations, other.name) == (9, 0, "demo")
    assert other.tasks == recipe.tasks
    with pytest.raises(InvalidRequest, match="eval_n"):
        changed(recipe, {"tasks.eval_n": 10_000_000})


def test_a_checkpoint_is_told_from_other_folders(tmp_path: Path) -> None:
    with pytest.raises(BadCheckpoint, match=r"it lacks config\.json"):
        checkpoint(str(tmp_path))
    (tmp_path / "config.json").write_text("{}")
    with pytest.raises(BadCheckpoint, match=r"config\.json or \*.safetensors"):
        checkpoint(str(tmp_path))
    (tmp_path / "model.safetensors").write_bytes(b"")
    assert checkpoint(str(tmp_path)) == str(tmp_path)
    with pytest.raises(BadCheckpoint, match="is a file"):
        checkpoint(str(tmp_path / "config.json"))


def test_recipes_are_found_from_the_checkout_too(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    assert read("recipes/demo.toml").name == "demo"
    with pytest.raises(NotFound):
        read("demo.toml")


def test_a_dialect_is_explained() -> None:
    text = "Action: tap(start_box='(540,1200)')"
    done = CliRunner().invoke(app, ["dialect", "explain", "wmr1_android"], input=text)
    assert done.exit_code == 0 and "540, 1200 of the screen" in done.output
