"""Trains policies by GRPO on episodes that rollout workers play.

A gRPC server; needs Redis, the blob store, the policy and the world model. Runs go to the
folder WMR1_RUNS, one folder each.
"""

import os

from services.trainer.settings import TrainerSettings
from wmkit.entry import main


async def run(settings: TrainerSettings) -> None:
    # Read by OpenMP when torch is loaded. A waiting thread gives up its core instead of
    # spinning on it: beside busy neighbours spinning makes an update several times slower.
    os.environ.setdefault("OMP_WAIT_POLICY", "PASSIVE")
    from services.trainer.app import serve_trainer

    await serve_trainer(settings)


if __name__ == "__main__":
    main("trainer", __doc__ or "", TrainerSettings, run)
