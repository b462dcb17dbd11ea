"""Settings of the world-model service, read from `WMR1_*`."""

from pydantic import Field

from services.worldmodel.learned.settings import LearnedSettings
from wmkit.settings import DEFAULT_PORTS


class WorldModelSettings(LearnedSettings):
    port: int = Field(DEFAULT_PORTS["worldmodel"], ge=0, le=65535)
    """Port to listen on; 0 takes a free one."""
    backends: str = "scripted"
    """World models to run, comma-separated; the first one is the default."""
    replay: str = ""
    """Packed recordings (JSON lines) that the replay backend plays."""
    degrade: str = ""
    """Faults of the degraded backend with their rates, such as "stale=0.1,dropped=0.05"."""
    degrade_seed: int = 0
    """Another draw of those faults."""
    state_ttl_s: float = Field(86_400.0, gt=0)
    """Lifetime of states, transitions and picture names in Redis; renewed by use."""
    pin_ttl_s: float = Field(1_209_600.0, gt=0)
    """Lifetime of pinned states and transitions (two weeks); renewed by pinning again."""
    live_states: int = Field(5_000, ge=1)
    """States kept live in this process, about 12 KB each for the scripted phone."""
    known_transitions: int = Field(50_000, ge=1)
    """Transitions kept in this process, about 1 KB each; the rest is asked from Redis."""
    known_pictures: int = Field(20_000, ge=1)
    """Names of pictures kept in this process; their bytes are in the blob store."""
    batch_in_flight: int = Field(256, ge=1)
    """Steps of one BatchStep call that are worked on at once."""
    render_timeout_s: float = Field(30.0, gt=0)
    """Longest wait for the renderer."""
