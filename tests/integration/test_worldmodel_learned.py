"""Learned world models end to end: real service, browser and Redis, recorded models."""

import base64
import io
import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest
from PIL import Image as Pillow

from tests.openai_server import Answer, openai_server
from tests.processes import service_process
from tests.redis_server import RedisServer
from wmkit.clients import WorldModelClient
from wmkit.domain.actions import Back, OpenApp, Tap
from wmkit.domain.errors import InvalidAction
from wmkit.domain.screen import Point
from wmkit.domain.sources import FromScreenshot
from wmkit.domain.tasks import Verdict
from wmkit.domain.transition import FailureReason, ImageRequest, Outcome

pytestmark = pytest.mark.skipif(
    not (shutil.which("chromium-headless-shell") or shutil.which("chromium")),
    reason="no Chromium on the PATH",
)
GOAL = "Turn on Wi-Fi."
GREEN = (
    "<!DOCTYPE html><html><body style='margin:0'><div id='render-target' style='width:1080px;"
    "height:2400px;position:relative;overflow:hidden;background:#0a0'>On</div></body></html>"
)
BLUE = (
    "# Next State Reasoning: it turns blue.\n# HTML:\n<!DOCTYPE html><html>"
    "<body style='margin:0;background:#00a'><div style='width:360px;height:800px'></div>"
    "</body></html>"
)


@pytest.fixture
def redis(tmp_path: Path) -> Iterator[RedisServer]:
    server = RedisServer(tmp_path).start()
    yield server
    server.kill()


async def test_from_a_screenshot_and_a_goal_to_a_verdict(
    redis: RedisServer, tmp_path: Path
) -> None:
    blobs = str(tmp_path / "blobs")
    out = io.BytesIO()
    Pillow.new("RGB", (1080, 2400), "#224466").save(out, "PNG")
    screenshot = FromScreenshot(out.getvalue())
    small = ImageRequest("bytes", scale=0.1)
    async with (
        openai_server(Answer(GREEN, tokens=9), Answer("<!DOCTYPE html>", "length")) as maker,
        openai_server(Answer(BLUE)) as reasoner,
        openai_server(Answer('{"reason": "it says On", "verdict": "success"}')) as judge,
        service_process("renderer", WMR1_BLOBS=blobs) as (renderer, _),
        service_process(
            "worldmodel",
            WMR1_BACKENDS="scripted,code2world,gworld",
            WMR1_BLOBS=blobs,
            WMR1_REDIS_URL=redis.url,
            WMR1_RENDERER=renderer,
            WMR1_CODE2WORLD_URL=maker.url,
            WMR1_GWORLD_URL=reasoner.url,
            WMR1_JUDGE_URL=judge.url,
            WMR1_JUDGE_MODEL="judge",
        ) as (address, _),
        WorldModelClient(address) as world,
    ):
        start = (await world.create_state(screenshot, backend="code2world")).state.state_id
        step = await world.step(start, OpenApp("Settings"), goal=GOAL, image=small)
        assert (step.outcome, step.provenance.tokens) == (Outcome.CHANGED, 9)
        assert step.state is not None and step.image is not None
        assert Pillow.open(io.BytesIO(step.image.data)).size == (108, 240)
        cut = await world.step(step.state.state_id, Tap(Point(0.5, 0.5)), goal=GOAL)
        assert (cut.outcome, cut.reason) == (Outcome.FAILED, FailureReason.TRUNCATED)
        # The model saw the drawn page, with the cue in its middle: red at alpha 100 on #0a0.
        seen = maker.requests[1]["messages"][1]["content"][0]["image_url"]["url"]
        picture = Pillow.open(io.BytesIO(base64.b64decode(seen.partition(",")[2]))).convert("RGB")
        assert picture.size == (1080, 2400)
        assert picture.getpixel((900, 2000)) == (0, 170, 0)
        assert picture.getpixel((540, 1200)) == (100, 103, 0)
        verdict = await world.judge(
            None,
            step.state.state_id,
            goal=GOAL,
            first_state_id=start,
            actions=[OpenApp("Settings")],
        )
        assert (verdict.verdict, verdict.judge) == (Verdict.SUCCESS, "model:judge")
        assert len(judge.requests) == 3

        other = (await world.create_state(screenshot, backend="gworld")).state.state_id
        blue = await world.step(other, OpenApp("Settings"), image=small)
        assert blue.state is not None and blue.image is not None
        # Laid out in 360 x 800 CSS pixels, drawn at the device's size.
        assert (blue.state.screen.width_px, blue.state.screen.scale) == (1080, 3.0)
        drawn = Pillow.open(io.BytesIO(blue.image.data)).convert("RGB")
        assert (drawn.size, drawn.getpixel((50, 120))) == ((108, 240), (0, 0, 170))
        with pytest.raises(InvalidAction, match="gworld has no words"):
            await world.step(other, Back())
