"""What the policy service counts, besides the calls that every server counts."""

from prometheus_client import Counter, Gauge, Histogram

QUEUED = Gauge("wmr1_policy_queued", "Requests that wait for a batch.")
VERSION = Gauge("wmr1_policy_version", "Loaded version of the policy.")
TOKENS = Counter("wmr1_policy_tokens", "Generated tokens.")
BATCH_ROWS = Histogram(
    "wmr1_policy_batch_rows", "Requests per batch.", buckets=(1, 2, 4, 8, 16, 32, 64, 128)
)
BATCH_SECONDS = Histogram("wmr1_policy_batch_seconds", "Time to answer one batch.")
PICTURES = Counter("wmr1_policy_pictures", "Pictures of prompts, by cache.", ["cache"])
