"""What the rollout worker reads from its environment."""

from pydantic import Field

from wmkit.settings import DEFAULT_PORTS, ServiceSettings


class RolloutSettings(ServiceSettings):
    """Settings of the rollout worker."""

    port: int = Field(DEFAULT_PORTS["rollout"], ge=0, le=65535)
    """Port of the health service; 0 takes a free one."""
    concurrency: int = Field(64, ge=1)
    """Episodes in flight at the same time."""
    policy_calls: int = Field(128, ge=1)
    """Calls to the policy at the same time, over all episodes."""
    worldmodel_calls: int = Field(128, ge=1)
    """Calls to the world model at the same time, over all episodes."""
    max_retries: int = Field(3, ge=0)
    """How often an episode that infrastructure broke is played again before it is masked."""
    retry_pause_s: float = Field(1.0, ge=0)
    """Pause before the first retry of an episode; doubled for each further one."""
    patience_s: float = Field(60.0, ge=0)
    """How long one call waits for a service that does not answer."""
    reclaim_after_s: float = Field(15.0, gt=0)
    """A job whose worker has not been heard of for so long is taken over by another."""
    max_deliveries: int = Field(3, ge=1)
    """A job that was handed out so often without an end, because its workers died, is dead."""
