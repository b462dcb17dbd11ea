"""The stack as people start it: real processes, a browser, a run, mistakes, and nothing left."""

import json
import os
import re
import shutil
import signal
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import grpc
import pytest
from grpc_reflection.v1alpha.proto_reflection_descriptor_database import (
    ProtoReflectionDescriptorDatabase,
)
from PIL import Image
from wmr1.common.v1 import common_pb2
from wmr1.worldmodel.v1 import worldmodel_pb2 as pb
from wmr1.worldmodel.v1 import worldmodel_pb2_grpc

from services.renderer.chromium import NAMES
from tests.processes import Handles, descendants
from tests.tiny_checkpoints import make
from wmkit.cli.stack import SERVICES

ROOT = Path(__file__).parent.parent.parent
WMR1 = (sys.executable, "-m", "wmkit.cli")
PATIENCE_S = 60.0
RECIPE = """
name = "e2e"
checkpoint = "{checkpoint}"
[tasks]
templates = ["settings_turn_on", "clock_alarm_on"]
eval_n = 4
[schedule]
iterations = 1
groups = 2
group_size = 2
[branching]
groups = 1
size = 2
horizon = 2
[episode]
prompt = "compact"
image_scale = 0.12
history = 1
max_new_tokens = 8
"""

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(not any(map(shutil.which, NAMES)), reason="no Chromium found"),
]


@dataclass
class Up:
    """A running `wmr1 up`, read until it says that it is ready."""

    process: subprocess.Popen[str]
    checkpoint: Path
    addresses: dict[str, str]
    pids: list[int]

    def stop(self) -> int:
        self.process.send_signal(signal.SIGINT)
        code = self.process.wait(PATIENCE_S)
        assert self.process.stdout is not None
        self.process.stdout.close()
        return code


def start(folder: Path) -> Up:
    checkpoint = make(folder / "checkpoint")
    process = subprocess.Popen(
        (*WMR1, "up", "--free-ports", "--state", str(folder), "--checkpoint", str(checkpoint)),
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        cwd=ROOT,
        env=os.environ | {"WMR1_RUNS": str(folder / "runs"), "WMR1_BLOBS": str(folder / "blobs")},
    )
    assert process.stdout is not None
    addresses, pids, said = {}, [], ""
    for line in process.stdout:
        said += line
        if found := re.fullmatch(r"(\w+) serving at (\S+) \(pid (\d+)\)\n", line):
            addresses[found[1]] = found[2]
            pids.append(int(found[3]))
        if line == "ready\n":
            return Up(process, checkpoint, addresses, pids)
    raise AssertionError(f"the stack did not come up:\n{said}")


@pytest.fixture(scope="module")
def up(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Up]:
    up = start(tmp_path_factory.mktemp("stack"))
    try:
        yield up
    finally:
        if up.process.poll() is None:
            up.stop()


def wmr1(*arguments: str, **env: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        (*WMR1, *arguments),
        capture_output=True,
        text=True,
        cwd=ROOT,
        env=os.environ | env,
        timeout=300,
        check=False,
    )


def test_reflection_lists_the_services(up: Up) -> None:
    assert set(up.addresses) == {"redis", *SERVICES}
    for name in ("worldmodel", "renderer", "policy", "trainer"):
        with grpc.insecure_channel(up.addresses[name]) as channel:
            listed = ProtoReflectionDescriptorDatabase(channel).get_services()
        service = {"worldmodel": "WorldModelService"}.get(name, f"{name.capitalize()}Service")
        assert f"wmr1.{name}.v1.{service}" in listed and "grpc.health.v1.Health" in listed


def test_the_example_saves_two_screens(up: Up, tmp_path: Path) -> None:
    command = (sys.executable, str(ROOT / "examples" / "step.py"), up.addresses["worldmodel"])
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert done.stdout.startswith("goal: ")
    pictures = [Image.open(tmp_path / name) for name in ("before.png", "after.png")]
    assert {picture.size for picture in pictures} == {(1080, 2400)}
    assert pictures[0].tobytes() != pictures[1].tobytes()
    assert len((ROOT / "examples" / "step.py").read_text().splitlines()) <= 20


def test_a_run_by_the_running_trainer_balances_its_books(up: Up, tmp_path: Path) -> None:
    recipe = tmp_path / "recipe.toml"
    recipe.write_text(RECIPE.format(checkpoint=up.checkpoint))
    done = wmr1("train", str(recipe), "--trainer", up.addresses["trainer"])
    assert done.returncode == 0, done.stdout + done.stderr
    assert "held-out success, 95 % intervals" in done.stdout
    (summary_file,) = (up.checkpoint.parent / "runs").glob("e2e-*/summary.json")
    summary = json.loads(summary_file.read_text())
    episodes = summary["episodes"]
    assert episodes["requested"] == 4 + (2 * 2 + 2) + 4, "training with one group of branches"
    assert episodes["accepted"] + episodes["masked"] + episodes["dead"] == episodes["requested"]
    assert (summary_file.parent / "report.html").stat().st_size > 10_000
    listed = wmr1("runs", "list", "--folder", str(up.checkpoint.parent / "runs"))
    assert summary["run_id"] in listed.stdout and "succeeded" in listed.stdout


def test_a_task_is_played_by_hand(up: Up, tmp_path: Path) -> None:
    arguments = ("--worldmodel", up.addresses["worldmodel"], "--save", str(tmp_path))
    done = subprocess.run(
        (*WMR1, "play", "settings_turn_on", "--seed", "3", *arguments),
        input="? home\nfly\nback\nundo\ndone\n",
        capture_output=True,
        text=True,
        cwd=ROOT,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    for said in ("imagined only", "'fly' is no action", "failure after 0 steps"):
        assert said in done.stdout
    names = sorted(path.name for path in tmp_path.iterdir())
    assert names == ["00-start.png", "01-imagined.png", "02-back.png", "03-undo.png"]
    start, imagined, _, undone = (Image.open(tmp_path / name).tobytes() for name in names)
    assert start == undone != imagined


@pytest.mark.parametrize(
    ("request_", "status", "sentence"),
    [
        (
            pb.StepRequest(
                state_id="0" * 64, action=common_pb2.Action(back={}), purpose=pb.PURPOSE_COMMIT
            ),
            grpc.StatusCode.NOT_FOUND,
            "state",
        ),
        (
            pb.StepRequest(
                purpose=pb.PURPOSE_COMMIT,
                action=common_pb2.Action(tap={"point": {"x": 1.5, "y": 0.5}}),
            ),
            grpc.StatusCode.INVALID_ARGUMENT,
            "outside the screen",
        ),
    ],
    ids=["no such state", "a point outside"],
)
def test_a_bad_call_has_a_status_and_a_sentence(
    up: Up, request_: pb.StepRequest, status: grpc.StatusCode, sentence: str
) -> None:
    with grpc.insecure_channel(up.addresses["worldmodel"]) as channel:
        stub = worldmodel_pb2_grpc.WorldModelServiceStub(channel)
        if not request_.state_id:
            task = pb.TaskRef(template="settings_turn_on", seed=3)
            state = stub.CreateState(pb.CreateStateRequest(task=task)).state
            request_.state_id = state.state_id
        with pytest.raises(grpc.RpcError) as no:
            stub.Step(request_)
    assert no.value.code() is status and sentence in no.value.details()
    assert "\n" not in no.value.details()


def test_an_unknown_task_is_one_sentence(up: Up) -> None:
    done = wmr1("play", "settings_turn_om", "--worldmodel", up.addresses["worldmodel"])
    assert done.returncode == 1 and done.stderr.count("\n") == 1
    assert done.stderr.startswith("wmr1: there is no task template 'settings_turn_om'")


def test_a_run_with_a_wrong_checkpoint_is_refused(up: Up, tmp_path: Path) -> None:
    recipe = tmp_path / "recipe.toml"
    recipe.write_text(RECIPE.format(checkpoint=tmp_path))
    done = wmr1("train", str(recipe), "--trainer", up.addresses["trainer"])
    assert done.returncode == 1 and done.stderr.count("\n") == 1
    assert "is no checkpoint" in done.stderr


def test_weights_that_are_none_are_one_sentence(up: Up, tmp_path: Path) -> None:
    folder = tmp_path / "broken"
    folder.mkdir()
    for file in up.checkpoint.iterdir():
        broken = file.suffix == ".safetensors"
        (folder / file.name).write_bytes(b"no weights" if broken else file.read_bytes())
    done = wmr1(
        "up", "policy", "--free-ports", "--state", str(tmp_path), "--checkpoint", str(folder)
    )
    assert done.returncode == 1 and done.stderr.count("\n") == 1, done.stderr
    assert done.stderr.startswith("wmr1: policy: ") and "Traceback" not in done.stderr


def test_a_missing_browser_is_one_sentence(tmp_path: Path) -> None:
    arguments = ("up", "renderer", "--free-ports", "--state", str(tmp_path))
    done = wmr1(*arguments, WMR1_BROWSER="/no/such/browser")
    assert done.returncode == 1 and done.stderr.count("\n") == 1, done.stderr
    assert done.stderr.startswith("wmr1: renderer: ") and "/no/such/browser" in done.stderr


def test_the_end_leaves_nothing_behind(up: Up) -> None:
    below = descendants(up.process.pid)
    assert set(up.pids) <= set(below)
    assert len(below) > len(up.pids), "the browser is one of them"
    with Handles(below) as handles:
        assert up.stop() == 0
        handles.wait()
