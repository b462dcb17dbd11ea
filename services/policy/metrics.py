"""What the policy service counts, besides the calls that every server counts.

Figures of answers carry the policy version that gave them. Versions come and go, so only the
latest few keep their series.
"""

import time
from collections import OrderedDict
from contextlib import suppress

from prometheus_client import Counter, Gauge, Histogram

from services.policy.versions import Version

KEPT_VERSIONS = 4

_VERSION = ["policy_id", "version"]

QUEUED = Gauge("wmr1_policy_queued", "Requests that wait for a batch.")
VERSION = Gauge("wmr1_policy_version", "Loaded version of the policy.")
REFUSED = Counter("wmr1_policy_updates_refused", "Weights that were not loaded.", ["reason"])
TOKENS = Counter("wmr1_policy_tokens", "Generated tokens.", _VERSION)
ANSWERS = Counter("wmr1_policy_answers", "Answers.", _VERSION)
BATCH_ROWS = Histogram(
    "wmr1_policy_batch_rows",
    "Requests that are answered together.",
    _VERSION,
    buckets=(1, 2, 4, 8, 16, 32, 64, 128, 256),
)
BATCH_SECONDS = Histogram("wmr1_policy_batch_seconds", "Time to answer one batch.", _VERSION)
QUEUE_SECONDS = Histogram(
    "wmr1_policy_queue_seconds", "Time from arrival to the batch's start.", _VERSION
)
FIRST_TOKEN_SECONDS = Histogram(
    "wmr1_policy_first_token_seconds", "Time from arrival to the first token.", _VERSION
)
PICTURES = Counter("wmr1_policy_pictures", "Pictures of prompts, by cache.", ["cache"])

_BY_VERSION = (TOKENS, ANSWERS, BATCH_ROWS, BATCH_SECONDS, QUEUE_SECONDS, FIRST_TOKEN_SECONDS)
_seen: OrderedDict[tuple[str, str], None] = OrderedDict()


class Meter:
    """Counts one batch (or one answer of an engine that batches by itself) for its version."""

    def __init__(self, version: Version) -> None:
        self._labels = (version.policy_id, str(version.version))
        self._begin = time.perf_counter()
        self._first: float | None = None
        _remember(self._labels)

    def prefilled(self) -> None:
        self._first = time.perf_counter()

    def company(self, rows: int) -> None:
        """How many are answered together."""
        BATCH_ROWS.labels(*self._labels).observe(rows)

    def batch(self, seconds: float) -> None:
        BATCH_SECONDS.labels(*self._labels).observe(seconds)

    def answer(self, tokens: int, arrived: float, first_s: float | None = None) -> None:
        """One answer; `first_s` where the engine itself knows the time to its first token."""
        TOKENS.labels(*self._labels).inc(tokens)
        ANSWERS.labels(*self._labels).inc()
        QUEUE_SECONDS.labels(*self._labels).observe(max(0.0, self._begin - arrived))
        if first_s is None and self._first is not None:
            first_s = self._first - arrived
        if first_s is not None:
            FIRST_TOKEN_SECONDS.labels(*self._labels).observe(first_s)


def _remember(labels: tuple[str, str]) -> None:
    _seen[labels] = None
    _seen.move_to_end(labels)
    while len(_seen) > KEPT_VERSIONS:
        oldest, _ = _seen.popitem(last=False)
        for metric in _BY_VERSION:
            with suppress(KeyError):  # it may have counted nothing of this kind
                metric.remove(*oldest)
