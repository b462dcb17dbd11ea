"""A run that is killed and resumed against one that is not: bit for bit, in real processes."""

import json
import os
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from tests import tiny_checkpoints

ROOT = Path(__file__).parents[2]
CLOCKS = ("elapsed_s", "rollout_s", "prepare_s", "update_s", "publish_s", "tokens_per_s")

pytestmark = pytest.mark.slow


def process(folder: Path, checkpoint: Path, die_at: str = "") -> int:
    folder.mkdir(exist_ok=True)
    script = ROOT / "tests" / "resume_process.py"
    path = os.pathsep.join([str(ROOT), str(ROOT / "gen")])
    return subprocess.run(
        [sys.executable, str(script), str(folder), str(checkpoint), *([die_at] if die_at else [])],
        env={**os.environ, "PYTHONPATH": path},
        stdout=subprocess.DEVNULL,
        timeout=600,
    ).returncode


def outcome(folder: Path) -> dict[str, Any]:
    """Everything a run leaves behind that does not depend on clocks or on its name."""
    (run,) = (folder / "runs").iterdir()

    def lines(name: str) -> list[dict[str, Any]]:
        text = (run / name).read_text("utf-8").replace(run.name, "RUN")
        return [json.loads(line) for line in text.splitlines()]

    metrics = [
        {key: value for key, value in line.items() if key not in CLOCKS}
        for line in lines("metrics.jsonl")
    ]
    episodes = lines("trajectories.jsonl")
    for episode in episodes:
        del episode["trajectory"]  # the blob holds the run's name
    summary = json.loads((run / "summary.json").read_text("utf-8"))
    return {
        "weights": (run / "checkpoint" / "model.safetensors").read_bytes(),
        "metrics": metrics,
        "episodes": episodes,
        **{key: summary[key] for key in ("before", "after", "episodes", "transitions")},
        "states": (run / "states").exists(),
    }


def test_killed_and_resumed_equals_uninterrupted_bit_for_bit(tmp_path: Path) -> None:
    """Killed while an episode of the fourth iteration is out, then between publishing and
    saving, where policy and queue are ahead of the saved state."""
    tiny = tiny_checkpoints.make(tmp_path / "tiny")
    whole, cut = tmp_path / "whole", tmp_path / "cut"
    assert process(whole, tiny) == 0
    for die_at in ("train-4/1/2", "publish-5"):
        assert process(cut, tiny, die_at) == -signal.SIGKILL
    assert process(cut, tiny) == 0
    expected, found = outcome(whole), outcome(cut)
    trained = [line for line in expected["metrics"] if "grad_norm" in line]
    assert len(trained) == len(expected["metrics"]) == 6
    assert any(line["refills"] for line in trained)
    assert found == expected
