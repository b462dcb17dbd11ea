"""`wmr1 judge measure` from the shell: a renderer of its own, a recorded judge."""

import asyncio
import json
import os
import shutil
import sys
from pathlib import Path

import pytest

from services.renderer.chromium import NAMES
from tests.openai_server import Answer, openai_server

ROOT = Path(__file__).parent.parent.parent

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(not any(map(shutil.which, NAMES)), reason="no Chromium found"),
]


async def test_a_gullible_judge_is_found_out(tmp_path: Path) -> None:
    async with openai_server(Answer('{"reason": "it says so", "verdict": "success"}')) as judge:
        process = await asyncio.create_subprocess_exec(
            *(sys.executable, "-m", "wmkit.cli", "judge", "measure", "-n", "8", "--json"),
            *("--judge-url", judge.url, "--judge-model", "gullible", "--votes", "1"),
            cwd=ROOT,
            env=os.environ | {"WMR1_BLOBS": str(tmp_path / "blobs")},
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.PIPE,
        )
        said, complaints = await process.communicate()
    assert process.returncode == 0, complaints.decode()
    found = json.loads(said[said.index(b"{") :])
    assert (found["judge"], found["n"], found["unsure"]) == ("model:gullible", 8, 0)
    # Half of eight are solved, and each fault is there once; all are called a success.
    assert (found["false_positives"]["wrong"], found["false_positives"]["n"]) == (4, 4)
    assert (found["false_negatives"]["wrong"], found["false_negatives"]["n"]) == (0, 4)
    # Wilson at 4 of 4: the lower end is 1 / (1 + z^2 / n) = 1 / (1 + 3.841459 / 4).
    assert found["false_positives"]["ci95"] == pytest.approx([0.510109, 1.0], abs=1e-5)
    assert all(json.dumps(sent).count("data:image/png") == 2 for sent in judge.requests)
