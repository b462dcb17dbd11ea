"""Screenshots with goals as tasks of learned world models."""

import json
from pathlib import Path

import pytest

from services.worldmodel.backends.code2world import Code2World
from services.worldmodel.backends.gworld import GWorld
from services.worldmodel.engine import Endpoint, Engine
from services.worldmodel.learned.scenes import Scenes
from tests.worldmodel_fakes import Process
from wmkit.domain.errors import InvalidRequest, UnknownTask
from wmkit.domain.screen import Screen
from wmkit.domain.tasks import TaskRef

PICTURE = {"picture": "ab" * 32, "width_px": 1080, "height_px": 2400}
TAP = {"action": "tap", "point": [0.5, 0.5]}


def scenes(folder: Path, *lines: dict[str, object]) -> Scenes:
    path = folder / "packed.jsonl"
    path.write_text("\n".join(map(json.dumps, lines)))
    return Scenes.open(str(path))


def line(episode: str, goal: str, moves: int = 0) -> dict[str, object]:
    screens = [PICTURE] * (moves + 1)
    return {"episode": episode, "goal": goal, "screens": screens, "actions": [TAP] * moves}


def engine() -> Engine:
    return Engine(Endpoint("http://127.0.0.1:1/v1", "m"))


async def test_seed_k_is_line_k_with_its_goal_and_its_first_screen(tmp_path: Path) -> None:
    found = scenes(tmp_path, line("a", "Open A."), line("b", "Open B.", moves=14))
    for world in (Code2World(engine(), scenes=found), GWorld(engine(), scenes=found)):
        task, page = world.start(TaskRef(template="scenes", seed=1))
        assert (task.goal, task.complexity, task.step_limit) == ("Open B.", 14, 28)
        assert (page.picture, page.screen) == ("ab" * 32, Screen(1080, 2400))
        short, _ = world.start(TaskRef(template="scenes", seed=0))
        assert (short.goal, short.step_limit) == ("Open A.", 20)
        for seed in (-1, 2):
            with pytest.raises(UnknownTask, match=f"no scene {seed}"):
                world.start(TaskRef(template="scenes", seed=seed))


async def test_tasks_of_several_backends_are_listed_once(tmp_path: Path) -> None:
    found = scenes(tmp_path, line("a", "Open A."))
    process = Process(Code2World(engine(), scenes=found), GWorld(engine(), scenes=found))
    names = [template.name for template in await process.world.list_tasks()]
    assert len(names) == len(set(names))
    assert names[-1] == "scenes" and "settings_turn_on" in names
    without = Process(Code2World(engine()))
    assert "scenes" not in [template.name for template in await without.world.list_tasks()]


def test_a_scene_without_a_goal_cannot_be_a_task(tmp_path: Path) -> None:
    with pytest.raises(InvalidRequest, match="scene 'a' has no goal"):
        scenes(tmp_path, line("a", " "))
