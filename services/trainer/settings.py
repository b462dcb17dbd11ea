"""What the trainer reads from its environment, beside what every service reads."""

from pydantic import Field

from wmkit.settings import DEFAULT_PORTS, ServiceSettings


class TrainerSettings(ServiceSettings):
    port: int = Field(DEFAULT_PORTS["trainer"], ge=0, le=65535)
    """Port to listen on; 0 takes a free one."""
    drain_grace_s: float = Field(2.0, ge=0)
    """Time that calls in flight get to finish at shutdown; short, for watchers never do."""
    runs: str = "runs"
    """Folder that gets one folder per run."""
    threads: int = Field(0, ge=0)
    """Torch threads; 0 leaves the choice to torch."""
    device: str = "cpu"
    """Torch device of model and optimizer, such as cpu or cuda:0; under torchrun cuda alone, which
    is the GPU of each process."""
