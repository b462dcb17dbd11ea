"""Everything is killed once while episodes are played; `python -m tests.chaos` does more."""

import shutil
from pathlib import Path

import pytest

from services.renderer.chromium import NAMES
from tests.chaos import VICTIMS, storm

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(not any(map(shutil.which, NAMES)), reason="no Chromium found"),
    pytest.mark.skipif(shutil.which("redis-server") is None, reason="no redis-server found"),
]
SEED, EPISODES = 7, 48


async def test_whatever_is_killed_the_books_balance_and_every_episode_is_true(
    tmp_path: Path,
) -> None:
    report = await storm(tmp_path, SEED, EPISODES, kills=1)
    assert report.wrong == [], f"seed {SEED}"
    assert report.killed == dict.fromkeys(VICTIMS, 1)
    assert report.ledger.requested == report.ledger.ended == EPISODES
    assert report.ledger.accepted >= 0.9 * EPISODES
