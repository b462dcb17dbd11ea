"""World model, renderer and browser together, each a real process."""

import io
import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest
from PIL import Image as Pillow

from tests.processes import service_process
from tests.redis_server import RedisServer
from wmkit.blobs import digest, open_blobs
from wmkit.clients import WorldModelClient
from wmkit.domain.actions import Back, OpenApp
from wmkit.domain.tasks import TaskRef
from wmkit.domain.transition import ImageRequest, Outcome, Purpose

TASK = TaskRef(template="settings_turn_on", seed=1)
SMALL = ImageRequest("bytes", scale=0.15)

pytestmark = pytest.mark.skipif(
    not (shutil.which("chromium-headless-shell") or shutil.which("chromium")),
    reason="no Chromium on the PATH",
)


@pytest.fixture
def redis(tmp_path: Path) -> Iterator[RedisServer]:
    server = RedisServer(tmp_path).start()
    yield server
    server.kill()


async def test_a_screen_is_drawn_once_and_found_by_its_digest(
    redis: RedisServer, tmp_path: Path
) -> None:
    blobs = str(tmp_path / "blobs")
    async with (
        service_process("renderer", WMR1_BLOBS=blobs) as (renderer, _),
        service_process(
            "worldmodel", WMR1_BLOBS=blobs, WMR1_REDIS_URL=redis.url, WMR1_RENDERER=renderer
        ) as (address, _),
        WorldModelClient(address) as world,
    ):
        state = (await world.create_state(TASK)).state.state_id
        clock = await world.step(state, OpenApp("Clock"), purpose=Purpose.COMMIT, image=SMALL)
        assert clock.outcome is Outcome.CHANGED
        assert clock.state is not None and clock.image is not None
        assert clock.provenance.render_ms > 0
        picture = Pillow.open(io.BytesIO(clock.image.data))
        assert picture.format == "PNG"
        assert picture.size == (clock.image.width_px, clock.image.height_px) == (162, 360)
        colors = picture.convert("RGB").getcolors(162 * 360)
        assert colors is not None and len(colors) > 20
        assert digest(clock.image.data) == clock.image.digest
        assert await open_blobs(blobs).get(clock.image.digest) == clock.image.data

        again = await world.get_screenshot(clock.state.state_id, ImageRequest("digest", scale=0.15))
        assert again.image is not None
        assert again.image.digest == clock.image.digest
        left = await world.step(clock.state.state_id, Back(), purpose=Purpose.IMAGINE, image=SMALL)
        assert left.image is not None
        assert left.image.digest != clock.image.digest
        repeat = await world.step(clock.state.state_id, Back(), purpose=Purpose.COMMIT, image=SMALL)
        assert (repeat.image, repeat.state) == (left.image, left.state)
        assert (repeat.provenance.cache_hit, repeat.provenance.render_ms) == (True, 0.0)
