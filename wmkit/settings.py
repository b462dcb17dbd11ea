"""What every service reads from its environment (`WMR1_*`), and nothing else.

A service subclasses `ServiceSettings`, gives `port` its default and adds fields of its own
with a docstring under each; `describe` turns those docstrings into the `--help` text.
No files, no command-line parsing.
"""

import ipaddress
import sys
from typing import Literal, TypeVar

from pydantic import Field, ValidationError
from pydantic_settings import BaseSettings, SettingsConfigDict

DEFAULT_PORTS = {
    "worldmodel": 50051,
    "renderer": 50052,
    "policy": 50053,
    "trainer": 50054,
    "rollout": 50055,
    "gateway": 8080,
}


class ServiceSettings(BaseSettings):
    """Settings shared by all services; times in seconds."""

    model_config = SettingsConfigDict(
        env_prefix="WMR1_", frozen=True, extra="ignore", use_attribute_docstrings=True
    )

    host: str = "127.0.0.1"
    """Address to listen on; anything but loopback needs a token or a trusted network."""
    port: int = Field(0, ge=0, le=65535)
    """Port to listen on; 0 takes a free one."""
    token: str = Field("", repr=False)
    """Shared secret; when set, calls must carry it and peers are called with it."""
    trusted_network: bool = False
    """States that only trusted peers can reach this port (a container network)."""
    redis_url: str = "redis://127.0.0.1:6379/0"
    """Redis for streams, short-lived state and cache indexes."""
    blobs: str = "var/blobs"
    """Blob store: a folder or an object-store URL (s3://, gs://, az://)."""
    log_level: Literal["debug", "info", "warning", "error"] = "info"
    """Least severe level that is logged."""
    metrics_port: int = Field(0, ge=0, le=65535)
    """Port for Prometheus metrics; 0 serves none."""
    renderer: str = "127.0.0.1:50052"
    """Address of the renderer service."""
    worldmodel: str = "127.0.0.1:50051"
    """Address of the world-model service."""
    policy: str = "127.0.0.1:50053"
    """Address of the policy service."""
    trainer: str = "127.0.0.1:50054"
    """Address of the trainer service."""
    default_timeout_s: float = Field(120.0, gt=0)
    """Deadline given to a unary call that comes without one."""
    drain_pause_s: float = Field(0.2, ge=0)
    """Pause between reporting NOT_SERVING and refusing new calls."""
    drain_grace_s: float = Field(20.0, ge=0)
    """Time that calls in flight get to finish at shutdown."""
    max_connection_age_s: float = Field(0.0, ge=0)
    """Age at which clients are asked to reconnect, so that new replicas get work; 0 is never."""

    @property
    def loopback(self) -> bool:
        """True when only this machine can reach `host`."""
        if self.host == "localhost":
            return True
        try:
            return ipaddress.ip_address(self.host.strip("[]")).is_loopback
        except ValueError:
            return False


S = TypeVar("S", bound=ServiceSettings)


def load(settings: type[S]) -> S:
    """Read the environment; one sentence per mistake on stderr and exit code 2."""
    try:
        return settings()
    except ValidationError as error:
        for mistake in error.errors():
            name = "_".join(str(part) for part in mistake["loc"]).upper()
            print(f"WMR1_{name}={mistake['input']}: {mistake['msg']}", file=sys.stderr)
        raise SystemExit(2) from None


def describe(settings: type[ServiceSettings]) -> str:
    """One line per setting: variable, default, meaning."""
    lines = []
    for name, field in settings.model_fields.items():
        meaning = " ".join((field.description or "").split())
        lines.append(f"  WMR1_{name.upper()}={field.get_default()}\n      {meaning}")
    return "\n".join(lines)
