"""Multimodal chat in, sampled tokens with log-probabilities and the policy version out.

A gRPC server around one Qwen-VL checkpoint; needs Redis and the blob store.
"""

import os

from services.policy.settings import PolicySettings
from wmkit.entry import main


async def run(settings: PolicySettings) -> None:
    # Read by OpenMP when torch is loaded. A waiting thread gives up its core instead of
    # spinning on it: beside busy neighbours spinning makes a batch ten times slower.
    os.environ.setdefault("OMP_WAIT_POLICY", "PASSIVE")
    from services.policy.app import serve_policy

    await serve_policy(settings)


if __name__ == "__main__":
    main("policy", __doc__ or "", PolicySettings, run)
