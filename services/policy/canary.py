"""The canary: do freshly loaded weights score the probe as their sender does?"""

from collections.abc import Sequence

from services.policy.metrics import REFUSED
from wmkit.domain.errors import BadCheckpoint
from wmkit.modeling.probe import probe_distance


def compare(ours: Sequence[float], theirs: Sequence[float], tolerance: float) -> None:
    """Raises BadCheckpoint where the mean |difference| exceeds `tolerance`, in nats."""
    distance = probe_distance(ours, theirs)
    if distance > tolerance:
        REFUSED.labels("canary").inc()
        raise BadCheckpoint(
            f"the loaded weights score the probe {distance:.3g} nats per token away from their "
            f"sender's scores (tolerance {tolerance:g}); the version before stays"
        )
