"""Being in the world of processes that train together, and leaving it."""

import os
import subprocess
import sys
from pathlib import Path

import torch
import torch.distributed as dist

from services.trainer.world import join, joined
from tests.processes import free_port


def test_a_group_made_on_the_way_is_left_at_the_end() -> None:
    with joined("cpu") as world:
        assert not world.grouped
        # As a recipe with another type than that of the weights does, once it is read.
        later = join("cpu", alone=False)
        assert (later.rank, later.size, later.grouped) == (0, 1, True)
        value = torch.tensor([3.0])
        dist.all_reduce(value)
        assert value.item() == 3.0
    assert not dist.is_initialized()


LEAVES = """
import os
from pathlib import Path
from services.trainer.world import joined

def threads():
    names = [path.read_text() for path in Path("/proc/self/task").glob("*/comm")]
    return sum("gloo" in name for name in names)

with joined("cpu") as world:
    told = world.order("end" if world.leads else None)
    print(told, threads() > 0)
print(threads())
"""


def test_no_thread_of_a_group_outlives_it(tmp_path: Path) -> None:
    """One that still drops a tensor while the interpreter ends aborts the process."""
    program = tmp_path / "leaves.py"
    program.write_text(LEAVES, "utf-8")
    places = {"MASTER_ADDR": "127.0.0.1", "MASTER_PORT": str(free_port()), "WORLD_SIZE": "2"}
    path = os.pathsep.join(sys.path)
    processes = [
        subprocess.Popen(
            [sys.executable, str(program)],
            env={**os.environ, **places, "RANK": str(rank), "PYTHONPATH": path},
            stdout=subprocess.PIPE,
            text=True,
        )
        for rank in range(2)
    ]
    said = [process.communicate(timeout=120)[0].split() for process in processes]
    assert said == [["end", "True", "0"]] * 2
    assert [process.returncode for process in processes] == [0, 0]
