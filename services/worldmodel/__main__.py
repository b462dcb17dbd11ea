"""Predicts what a phone shows after an action: states, transitions, pictures, verdicts.

A gRPC server; needs Redis and, for pictures only, the renderer service.
"""

from services.worldmodel.settings import WorldModelSettings
from wmkit.entry import main


async def run(settings: WorldModelSettings) -> None:
    from services.worldmodel.app import serve_world

    await serve_world(settings)


if __name__ == "__main__":
    main("worldmodel", __doc__ or "", WorldModelSettings, run)
