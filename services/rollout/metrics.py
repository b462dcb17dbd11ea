"""What the rollout worker counts, besides what every server counts."""

from prometheus_client import Counter, Gauge, Histogram

from wmkit.domain.episode import Trajectory

EPISODES = Counter(
    "wmr1_rollout_episodes",
    "Ends of jobs, by how: an accepted episode's ending, masked, dead, or duplicate for a job "
    "that had ended before.",
    ["end"],
)
STEPS = Counter("wmr1_rollout_steps", "Steps of stored episodes.")
CALLS = Counter(
    "wmr1_rollout_calls", "World-model calls in stored episodes, by answer.", ["answer"]
)
RETRIES = Counter("wmr1_rollout_retries", "Jobs handed back after a failure, by failure.", ["kind"])
LOST = Counter("wmr1_rollout_lost", "Episodes given up because another worker took the job over.")
RECLAIMED = Counter("wmr1_rollout_reclaimed", "Jobs taken over from workers that were lost.")
CALLS_OUT = Gauge(
    "wmr1_rollout_calls_out", "Calls that a service has not answered yet, by service.", ["service"]
)
IN_FLIGHT = Gauge("wmr1_rollout_in_flight", "Episodes being played.")
EPISODE_SECONDS = Histogram(
    "wmr1_rollout_episode_seconds",
    "Time to play one episode.",
    buckets=(0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60, 120, 300, 600),
)


def count_episode(trajectory: Trajectory) -> None:
    """Count a stored episode's steps and calls."""
    calls = [call for step in trajectory.steps for call in step.imagined]
    answered = sum(call.answered for call in calls)
    failed = sum(call.outcome is not None and not call.answered for call in calls)
    STEPS.inc(len(trajectory.steps))
    CALLS.labels("screen").inc(answered)
    CALLS.labels("failed").inc(failed)
    CALLS.labels("refused").inc(len(calls) - answered - failed)
    EPISODE_SECONDS.observe(trajectory.wall_s)
