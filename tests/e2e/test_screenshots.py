"""The paper's own way of training: screenshots and goals, a learned world, a model as judge.

Everything but the two big models is real: every process of the stack, the packed file, the
recipe, a policy with weights, the trainer's update. The models are recorded servers.
"""

import asyncio
import json
import os
import shutil
import sys
from pathlib import Path

import pytest
from PIL import Image

from services.renderer.chromium import NAMES
from tests import speaking_checkpoints
from tests.openai_server import Answer, OpenAiServer, openai_server
from wmkit.blobs import open_blobs
from wmkit.domain.episode import Trajectory

ROOT = Path(__file__).parent.parent.parent
GROUPS, SIZE, EVALUATED = 2, 2, 2
EPISODES = GROUPS * SIZE + 2 * EVALUATED
STEP_LIMIT = 20
GOALS = [f"Open chat {n}." for n in range(GROUPS + EVALUATED)]
PAGE = (
    "<!DOCTYPE html><html><body style='margin:0'><div id='render-target' style='width:1080px;"
    "height:2400px;position:relative;overflow:hidden;background:#0a0'>Chat</div></body></html>"
)
RECIPE = f"""
name = "screens"
checkpoint = "CHECKPOINT"
[tasks]
templates = ["scenes"]
train_seeds = [0, {GROUPS}]
eval_seeds = [{GROUPS}, {GROUPS + EVALUATED}]
eval_n = {EVALUATED}
[schedule]
iterations = 1
groups = {GROUPS}
group_size = {SIZE}
[episode]
backend = "code2world"
prompt = "compact"
image_scale = 0.1
history = 1
max_new_tokens = 16
"""

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(not any(map(shutil.which, NAMES)), reason="no Chromium found"),
]


def vote(verdict: str) -> Answer:
    return Answer(json.dumps({"reason": "as recorded", "verdict": verdict}))


def environment(folder: Path, model: OpenAiServer, judge: OpenAiServer) -> dict[str, str]:
    return os.environ | {
        "WMR1_RUNS": str(folder / "runs"),
        "WMR1_BLOBS": str(folder / "blobs"),
        "WMR1_BACKENDS": "code2world",
        "WMR1_LEARNED_SCENES": str(folder / "packed.jsonl"),
        "WMR1_CODE2WORLD_URL": model.url,
        "WMR1_JUDGE_URL": judge.url,
        "WMR1_JUDGE_MODEL": "judge",
        "WMR1_JUDGE_VOTES": "1",
    }


async def command(env: dict[str, str], *words: str) -> str:
    """Run `python -m words` to its end, which has to be a good one."""
    process = await asyncio.create_subprocess_exec(
        *(sys.executable, "-m", *words),
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.STDOUT,
        cwd=ROOT,
        env=env,
    )
    said, _ = await process.communicate()
    assert process.returncode == 0, said.decode()
    return said.decode()


def record(folder: Path) -> None:
    """Screenshots of different colours, with a goal each."""
    lines = []
    for n, goal in enumerate(GOALS):
        Image.new("RGB", (1080, 2400), (30 * n + 20, 68, 102)).save(folder / f"{n}.png")
        scene = {"episode": str(n), "goal": goal, "screens": [{"file": f"{n}.png"}], "actions": []}
        lines.append(json.dumps(scene))
    (folder / "recordings.jsonl").write_text("\n".join(lines))


async def test_screenshots_and_goals_are_trained_on_in_a_learned_world(tmp_path: Path) -> None:
    record(tmp_path)
    # It goes back, at every step, until the step limit ends the episode.
    words = ("</think>", " Action: ", "press_back()")
    checkpoint = speaking_checkpoints.make(tmp_path / "policy", *words)
    recipe = tmp_path / "recipe.toml"
    recipe.write_text(RECIPE.replace("CHECKPOINT", str(checkpoint)))
    verdicts = ["success", "failure", "unsure", "failure"] * (EPISODES // 4)
    async with (
        openai_server(Answer(PAGE, tokens=9)) as model,
        openai_server(*map(vote, verdicts)) as judge,
    ):
        env = environment(tmp_path, model, judge)
        packing = ("services.worldmodel.replay", str(tmp_path / "recordings.jsonl"))
        await command(env, *packing, str(tmp_path / "packed.jsonl"))
        said = await command(env, "wmkit.cli", "train", str(recipe))
    assert "held-out success" in said
    (run,) = (tmp_path / "runs").glob("screens-*")
    episodes = json.loads((run / "summary.json").read_text())["episodes"]
    masked = verdicts.count("unsure")
    assert episodes["requested"] == EPISODES
    assert (episodes["accepted"], episodes["masked"]) == (EPISODES - masked, masked)
    assert episodes["dead"] == 0
    assert len(judge.requests) == EPISODES

    blobs = open_blobs(str(tmp_path / "blobs"))
    lines = [json.loads(line) for line in (run / "trajectories.jsonl").read_text().splitlines()]
    played = [
        Trajectory.model_validate_json(await blobs.get(line["trajectory"]))
        for line in lines
        if line["trajectory"]
    ]
    assert {t.judgement.judge for t in played} == {"model:judge"}
    assert {t.backend for t in played} == {"code2world"}
    assert {t.task.goal for t in played} == set(GOALS)
    for trajectory in played:
        assert trajectory.length == STEP_LIMIT
        assert trajectory.task.goal == GOALS[trajectory.job.task.seed]
    # Two transitions per scene, from the screenshot and from the page that it leads to; both
    # are asked once for all siblings, all steps, and the evaluations before and after.
    asked = [sent["messages"][1]["content"][1]["text"] for sent in model.requests]
    assert [sum(goal in text for text in asked) for goal in GOALS] == [2] * len(GOALS)
    seen = {goal for goal in GOALS for sent in judge.requests if goal in json.dumps(sent)}
    assert seen == set(GOALS)
    assert all(json.dumps(sent).count("data:image/") == 2 for sent in judge.requests)
