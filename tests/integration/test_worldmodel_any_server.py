"""Any OpenAI-compatible server that runs somewhere, with any Qwen-VL model, as a world model.

    WMR1_TEST_MODEL_URL=http://127.0.0.1:8000/v1 WMR1_TEST_MODEL=NAME \
        pytest tests/integration/test_worldmodel_any_server.py

What the model says is not judged, a random one will do: whatever it is has to become a typed
outcome. Without the variables all of it is skipped.
"""

import asyncio
import io
import os
from collections.abc import AsyncIterator

import pytest
from PIL import Image as Pillow

from services.worldmodel.backends.base import Scene
from services.worldmodel.backends.code2world import Code2World, Code2WorldOptions
from services.worldmodel.backends.gworld import GWorld, GWorldOptions
from services.worldmodel.backends.pages import Page
from services.worldmodel.engine import Ask, Endpoint, Engine, Limits
from services.worldmodel.judge import Case, ModelJudge
from wmkit.domain.actions import OpenApp, Tap
from wmkit.domain.screen import Point
from wmkit.domain.tasks import Verdict
from wmkit.domain.transition import FailureReason

URL, MODEL = os.environ.get("WMR1_TEST_MODEL_URL", ""), os.environ.get("WMR1_TEST_MODEL", "")
TOKENS = int(os.environ.get("WMR1_TEST_MODEL_TOKENS", "64"))

pytestmark = pytest.mark.skipif(not (URL and MODEL), reason="WMR1_TEST_MODEL_URL is not set")


def png() -> bytes:
    out = io.BytesIO()
    Pillow.effect_noise((108, 240), 90).convert("RGB").save(out, "PNG")
    return out.getvalue()


SCENE = Scene(png(), "Open the clock.")


@pytest.fixture
async def engine() -> AsyncIterator[Engine]:
    engine = Engine(Endpoint(URL, MODEL), Limits(attempts=1, in_flight=4))
    yield engine
    await engine.close()


async def test_every_answer_is_a_page_or_a_reason(engine: Engine) -> None:
    worlds = (
        Code2World(engine, Code2WorldOptions(max_tokens=TOKENS)),
        GWorld(engine, GWorldOptions(max_tokens=TOKENS)),
    )
    for world in worlds:
        value = Page(world.screen, html="x")
        for action in (OpenApp("Clock"), Tap(Point(0.5, 0.5))):
            found = await world.predict_seen(value, action, 7, SCENE)
            assert (found.value is None) is (found.reason is not None)
            assert 0 < found.tokens <= TOKENS
            assert found.finish_reason in ("stop", "length")
            if found.finish_reason == "length":
                assert found.reason is FailureReason.TRUNCATED


async def test_eight_tokens_are_cut_or_a_whole_short_answer(engine: Engine) -> None:
    world = Code2World(engine, Code2WorldOptions(max_tokens=8))
    found = await world.predict_seen(Page(world.screen, html="x"), OpenApp("Clock"), 1, SCENE)
    assert found.reason in (FailureReason.TRUNCATED, FailureReason.NO_DOCUMENT)
    assert (found.finish_reason == "length") is (found.reason is FailureReason.TRUNCATED)
    assert found.tokens <= 8


async def test_callers_that_leave_free_their_slots(engine: Engine) -> None:
    """Four slots and 24 callers of which 20 leave: the others are answered all the same."""
    ask = Ask([{"role": "user", "content": "Count to a thousand."}], TOKENS, seed=1)
    calls = [asyncio.create_task(engine.complete(ask)) for _ in range(24)]
    await calls[0]
    for call in calls[4:]:
        call.cancel()
    ended = await asyncio.gather(*calls, return_exceptions=True)
    assert not any(isinstance(end, BaseException) for end in ended[:4])
    assert (await engine.complete(ask)).tokens > 0


async def test_a_judge_has_one_of_three_verdicts(engine: Engine) -> None:
    found = await ModelJudge(engine, votes=3).judge(Case("Open the clock.", png(), png()))
    assert found.verdict in Verdict
    assert found.judge == f"model:{MODEL}"
