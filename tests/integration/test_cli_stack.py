"""The supervisor with real processes: Redis and the world model come, die, return, and go."""

import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import grpc
import pytest
from grpc_health.v1 import health_pb2, health_pb2_grpc

from tests.processes import Handles
from wmkit.cli.stack import Layout, Stack, StackFailed, free_ports
from wmkit.clients.sync import connect

ROOT = Path(__file__).parent.parent.parent
HEAVY = ("torch", "transformers", "grpc", "playwright", "redis", "services", "jinja2", "PIL")
PATIENCE_S = 60.0
SERVING = health_pb2.HealthCheckResponse.SERVING


def layout(tmp_path: Path, **ports: int) -> Layout:
    return Layout(
        root=ROOT,
        folder=tmp_path,
        logs=tmp_path / "log",
        ports=free_ports(("redis", "worldmodel")) | ports,
        settings={"WMR1_BLOBS": str(tmp_path / "blobs")},
    )


@pytest.fixture
def stack(tmp_path: Path) -> Iterator[Stack]:
    with Stack(layout(tmp_path)) as stack:
        stack.wait_ready()
        yield stack


def wait_serving(address: str) -> None:
    """Return when whoever listens there, now or later, serves."""
    with grpc.insecure_channel(address) as channel:
        watch = health_pb2_grpc.HealthStub(channel).Watch
        answers = watch(health_pb2.HealthCheckRequest(), timeout=PATIENCE_S, wait_for_ready=True)
        next(answer for answer in answers if answer.status == SERVING)


def test_a_service_that_dies_comes_back_and_nothing_is_lost(stack: Stack) -> None:
    address = stack.address("worldmodel")
    worldmodel = next(child for child in stack.children if child.spec.name == "worldmodel")
    with connect(address) as world:
        state_id = world.create_state("settings_turn_on", 3).state.state_id
    first = worldmodel.pid
    assert first is not None
    with Handles([first]) as handles:
        os.kill(first, signal.SIGKILL)
        handles.wait()
    wait_serving(address)
    assert worldmodel.exit_code == -signal.SIGKILL and worldmodel.pid != first
    assert worldmodel.restarts == 1
    with connect(address) as world:
        assert world.open_state(state_id).state.state_id == state_id


def test_the_end_of_a_stack_leaves_no_process(tmp_path: Path) -> None:
    with Stack(layout(tmp_path)) as stack:
        stack.wait_ready()
        pids = [child.pid for child in stack.children if child.pid]
        handles = Handles(pids)
    with handles:
        assert len(pids) == 2 and handles.all_ended
    assert '"event": "stopped"' in (tmp_path / "log" / "worldmodel.log").read_text()


def test_a_taken_port_is_one_sentence_and_starts_nothing(stack: Stack, tmp_path: Path) -> None:
    port = int(stack.address("worldmodel").rpartition(":")[2])
    folder = tmp_path / "second"
    with (
        pytest.raises(StackFailed, match=f"port {port}, wanted for worldmodel, is taken by") as no,
        Stack(layout(folder, worldmodel=port)),
    ):
        pass
    assert "services.worldmodel" in no.value.message and "\n" not in no.value.message
    assert not (folder / "log").exists()


def test_two_stacks_do_not_share_a_folder(stack: Stack) -> None:
    twin = Layout(ROOT, stack.layout.folder, stack.layout.logs, free_ports(("redis",)))
    with pytest.raises(StackFailed, match="another stack runs in"), Stack(twin):
        pass
    assert (stack.layout.logs / "worldmodel.log").exists(), "its logs are left alone"


def test_a_service_that_cannot_start_says_why(tmp_path: Path) -> None:
    plan = layout(tmp_path)
    broken = Layout(
        plan.root, plan.folder, plan.logs, plan.ports, settings={"WMR1_BACKENDS": "crystal_ball"}
    )
    with (
        pytest.raises(StackFailed, match="worldmodel: unknown backend 'crystal_ball'"),
        Stack(broken) as stack,
    ):
        stack.wait_ready()


@pytest.mark.skipif(not Path("/usr/bin/setpriv").exists(), reason="needs setpriv of util-linux")
def test_a_supervisor_that_is_killed_takes_its_processes_with_it(tmp_path: Path) -> None:
    command = (sys.executable, "-m", "wmkit.cli", "up", "worldmodel", "--free-ports")
    supervisor = subprocess.Popen(
        (*command, "--state", str(tmp_path)), stdout=subprocess.PIPE, text=True, cwd=ROOT
    )
    assert supervisor.stdout is not None
    pids = []
    for line in supervisor.stdout:
        if line == "ready\n":
            break
        pids.append(int(line.rpartition("(pid ")[2].rstrip(")\n")))
    with Handles(pids) as handles:
        supervisor.kill()
        supervisor.wait()
        supervisor.stdout.close()
        handles.wait()


def test_help_loads_nothing_heavy() -> None:
    code = (
        "import sys; sys.argv = ['wmr1', '--help']\n"
        "from wmkit.cli import main\n"
        "try: main()\n"
        "except SystemExit: pass\n"
        f"print([m for m in {HEAVY!r} if m in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, cwd=ROOT)
    assert "Commands" in done.stdout and done.stdout.splitlines()[-1] == "[]", done.stderr
