"""Supervised training on stored trajectories: what is learned from, and what is learned."""

import json
from pathlib import Path

import pytest
import torch

from services.trainer import supervised
from services.trainer.recipe_toml import parse_as
from services.trainer.rundir import RunDir
from services.trainer.supervised import SftRecipe, demonstrations, parts, train
from tests import tiny_checkpoints
from tests.trainer_cases import job, score, segment, step, trajectory
from wmkit.blobs import open_blobs
from wmkit.domain.errors import InvalidRequest, NotFound
from wmkit.modeling import checkpoint


async def stored_run(folder: Path, loaded: checkpoint.Loaded) -> str:
    """A run folder with a success, a failure and a job that was lost; the blobs' place."""
    place = str(folder / "blobs")
    blobs = open_blobs(place)
    prompt = [loaded.chat.turn_start_id, *loaded.chat.text_ids("user")]
    lines = []
    for number, (text, success) in enumerate((("tap here", True), ("scroll", False))):
        made = segment(prompt, loaded.chat.text_ids(text), processor=loaded.processor_digest)
        of = job(job_id=f"run/train-1/0/{number}", member=number)
        steps = [step(0, segment=made), step(1, segment=made)]
        data = trajectory(of, success=success, steps=steps).model_dump_json().encode()
        digest = await blobs.put(data)
        lines.append({"job_id": of.job_id, "trajectory": digest, "success": success})
    lines.append({"job_id": "run/train-1/0/2", "trajectory": "", "success": None})
    (folder / "run").mkdir()
    text = "".join(json.dumps(line) + "\n" for line in lines)
    (folder / "run" / "trajectories.jsonl").write_text(text, "utf-8")
    return place


async def test_it_learns_what_succeeded_and_nothing_else(tmp_path: Path) -> None:
    tiny = tiny_checkpoints.make(tmp_path / "tiny")
    loaded = checkpoint.load(tiny)
    place = await stored_run(tmp_path, loaded)
    recipe = SftRecipe.model_validate(
        {
            "checkpoint": str(tiny),
            "data": [str(tmp_path / "run")],
            "epochs": 20,
            "samples": 2,
            "optimizer": {"lr": 3e-3, "warmup": 0},
        }
    )
    samples, images = await demonstrations(recipe, place)
    assert images == {}
    assert [s.name for s in samples] == [f"run/train-1/0/0 step {i} (0)" for i in (0, 1)]
    assert {s.advantage for s in samples} == {1.0}
    folder = RunDir(tmp_path / "out")
    folder.create("")
    last = train(recipe, samples, images, folder)
    lines = folder.metrics()
    assert len(lines) == 20
    # Before any step the loss is the negative log-probability of the answer's tokens, no more.
    made = segment(
        samples[0].token_ids[: samples[0].mask.index(1)],
        samples[0].token_ids[samples[0].mask.index(1) :],
        processor=loaded.processor_digest,
    )
    assert lines[0]["loss"] == pytest.approx(-float(score(loaded, made, []).mean()), rel=1e-5)
    assert last["loss"] < lines[0]["loss"] / 5
    trained = checkpoint.load(folder.checkpoint)
    assert float(score(trained, made, []).mean()) > -lines[0]["loss"] / 5
    assert not torch.equal(trained.model.lm_head.weight, loaded.model.lm_head.weight)


async def test_missing_data_are_one_sentence(tmp_path: Path) -> None:
    tiny = tiny_checkpoints.make(tmp_path / "tiny")
    place = await stored_run(tmp_path, checkpoint.load(tiny))
    text = f'checkpoint = "{tiny}"\ndata = ["{tmp_path}/run"]\n'
    recipe = parse_as(SftRecipe, text)
    with pytest.raises(NotFound, match="WMR1_BLOBS"):
        await demonstrations(recipe, str(tmp_path / "elsewhere"))
    with pytest.raises(NotFound, match="no run folder"):
        await demonstrations(recipe.model_copy(update={"data": ("nowhere",)}), place)
    (tmp_path / "run" / "trajectories.jsonl").write_text("", "utf-8")
    with pytest.raises(InvalidRequest, match="no episode"):
        await demonstrations(recipe, place)
    with pytest.raises(InvalidRequest, match="did you mean 'epochs'"):
        parse_as(SftRecipe, text + "epoch = 3\n")


def test_every_epoch_holds_every_sample_once() -> None:
    recipe = SftRecipe(checkpoint="x", data=("y",), epochs=3, samples=4)
    numbers: list[int] = list(range(10))
    taken = list(parts(numbers, recipe))  # type: ignore[arg-type]
    assert [len(part) for part in taken] == [4, 4, 2] * 3
    epochs: list[list[object]] = [[*taken[i], *taken[i + 1], *taken[i + 2]] for i in (0, 3, 6)]
    assert all(sorted(map(str, epoch)) == sorted(map(str, numbers)) for epoch in epochs)
    assert epochs[0] != epochs[1]


def test_the_command_explains_itself(capsys: pytest.CaptureFixture[str]) -> None:
    assert supervised.main(["--help"]) == 0
    assert "RECIPE" in capsys.readouterr().out
    assert supervised.main(["nowhere.toml"]) == 1
    assert "nowhere.toml" in capsys.readouterr().err
