"""trackio and wandb, offline: what was written, read back by their own means.

Each is skipped where it is not installed (`pip install "wmr1[trackers]"`). Both start processes,
and read from the environment where to write when they are imported; so each tracks in a process
of its own.
"""

import importlib.util
import json
import os
import struct
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).parents[2]
TRACK = """
import sys
from pathlib import Path
from services.trainer.tracking import open_tracker

tracker = open_tracker(sys.argv[1], "run-1", Path(sys.argv[2]), {"seed": 7})
tracker.log(3, {"success": 0.25, "reward": -1.0})
tracker.log(4, {"success": 0.5, "reward": 2.0})
tracker.close()
"""


def needs(package: str) -> pytest.MarkDecorator:
    there = importlib.util.find_spec(package) is not None
    return pytest.mark.skipif(not there, reason=f"needs {package}")


def python(folder: Path, *arguments: str) -> str:
    """The output of a Python whose home is `folder`."""
    done = subprocess.run(
        [sys.executable, *arguments],
        env={
            **os.environ,
            "PYTHONPATH": os.pathsep.join([str(ROOT), str(ROOT / "gen")]),
            "HOME": str(folder),
            "TRACKIO_DIR": str(folder / "trackio"),
            "HF_HUB_OFFLINE": "1",
        },
        stdout=subprocess.PIPE,
        text=True,
        check=True,
        timeout=300,
    )
    return done.stdout


@needs("trackio")
def test_trackio_keeps_every_value(tmp_path: Path) -> None:
    python(tmp_path, "-c", TRACK, "trackio", str(tmp_path))

    def get(*what: str) -> Any:
        where = ("--project", "wmr1", "--run", "run-1", "--json")
        return json.loads(python(tmp_path, "-m", "trackio.cli", "get", *what, *where))

    for name, values in (("success", [0.25, 0.5]), ("reward", [-1.0, 2.0])):
        found = get("metric", "--metric", name)
        assert [(v["step"], v["value"]) for v in found["values"]] == [
            (3, values[0]),
            (4, values[1]),
        ]
    assert get("run")["config"]["seed"] == 7


def records(data: bytes) -> Iterator[bytes]:
    """Those of a wandb file: LevelDB's log format, here of a single block, behind 7 bytes."""
    assert data.startswith(b":W&B") and len(data) < 32768
    at = 7
    while at < len(data):
        _, length, kind = struct.unpack_from("<IHB", data, at)
        assert kind == 1  # whole
        yield data[at + 7 : at + 7 + length]
        at += 7 + length


@needs("wandb")
def test_wandb_keeps_every_value(tmp_path: Path) -> None:
    from wandb.proto.wandb_internal_pb2 import Record

    python(tmp_path, "-c", TRACK, "wandb", str(tmp_path))
    (path,) = tmp_path.glob("wandb/offline-run-*/*.wandb")
    kept = [Record.FromString(record) for record in records(path.read_bytes())]
    (run,) = (record.run for record in kept if record.HasField("run"))
    assert (run.project, run.run_id) == ("wmr1", "run-1")
    config = {item.key: json.loads(item.value_json) for item in run.config.update}
    assert config["seed"] == 7
    lines = []
    for record in kept:
        if record.HasField("history"):
            items = record.history.item
            line = {".".join(i.nested_key) or i.key: json.loads(i.value_json) for i in items}
            lines.append((record.history.step.num, line["success"], line["reward"]))
    assert lines == [(3, 0.25, -1.0), (4, 0.5, 2.0)]
