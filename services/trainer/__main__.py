"""Trains policies by GRPO on episodes that rollout workers play.

A gRPC server; needs Redis, the blob store, the policy and the world model. Runs go to the
folder WMR1_RUNS, one folder each.
"""

from services.trainer.settings import TrainerSettings
from wmkit.entry import main


async def run(settings: TrainerSettings) -> None:
    from services.trainer.app import serve_trainer

    await serve_trainer(settings)


if __name__ == "__main__":
    main("trainer", __doc__ or "", TrainerSettings, run)
