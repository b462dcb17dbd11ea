"""Plays episodes: takes jobs from Redis, asks policy and world model, stores trajectories.

Serves health and metrics only. Needs Redis, the blob store that policy, world model and
trainer use, and those services' addresses. Start as many as there are episodes to play.
"""

from services.rollout.settings import RolloutSettings
from wmkit.entry import main


async def run(settings: RolloutSettings) -> None:
    from services.rollout.app import serve_rollout

    await serve_rollout(settings)


if __name__ == "__main__":
    main("rollout", __doc__ or "", RolloutSettings, run)
