"""Learned backends and the judge from settings: what is missing is said at start."""

import pytest

from services.worldmodel.backends import load
from services.worldmodel.learned.loading import model_judge
from services.worldmodel.learned.pages import LearnedPages
from services.worldmodel.settings import WorldModelSettings
from wmkit.domain.errors import InvalidRequest

URL = "http://127.0.0.1:8000/v1"


def settings(**values: object) -> WorldModelSettings:
    return WorldModelSettings(**values)  # type: ignore[arg-type]


async def test_several_backends_stand_side_by_side() -> None:
    registry = load(
        ["scripted", "code2world", "gworld"], settings(code2world_url=URL, gworld_url=URL)
    )
    assert [backend.name for backend in registry] == ["scripted", "code2world", "gworld"]
    assert [backend.deterministic for backend in registry] == [True, False, True]
    await registry.close()


@pytest.mark.parametrize("name", ["code2world", "gworld"])
async def test_a_backend_without_a_server_says_what_to_set(name: str) -> None:
    with pytest.raises(InvalidRequest, match=f"set WMR1_{name.upper()}_URL"):
        load([name], settings())


@pytest.mark.parametrize(
    "change",
    [
        {"code2world_include_goal": False},
        {"code2world_action_data": "mobile_use"},
        {"code2world_max_tokens": 100},
        {"code2world_model": "other"},
        {"code2world_model_revision": "step-100"},
    ],
)
async def test_what_decides_about_answers_is_in_the_revision(change: dict[str, object]) -> None:
    plain, changed = (
        load(["code2world"], settings(code2world_url=URL, **more)).default for more in ({}, change)
    )
    same = load(
        ["code2world"], settings(code2world_url="http://gpu/v1", code2world_key="k")
    ).default
    assert plain.revision != changed.revision
    assert plain.revision == same.revision, "where the model stands is nobody's answer"


async def test_a_judge_that_is_the_world_model_is_refused_at_start() -> None:
    chosen = settings(
        code2world_url=URL,
        code2world_model="qwen",
        judge_url="http://localhost:8000/v1/",
        judge_model="qwen",
    )
    worlds = [b for b in load(["code2world"], chosen) if isinstance(b, LearnedPages)]
    with pytest.raises(InvalidRequest, match="the judge is the world model itself"):
        model_judge(chosen, worlds)
    other = chosen.model_copy(update={"judge_model": "another"})
    judge = model_judge(other, worlds)
    assert judge is not None and judge.name == "model:another"
    assert model_judge(settings(), worlds) is None
