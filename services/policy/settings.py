"""What the policy service reads from its environment."""

from typing import Literal

from pydantic import Field

from wmkit.settings import DEFAULT_PORTS, ServiceSettings


class PolicySettings(ServiceSettings):
    """Settings of the policy service."""

    port: int = Field(DEFAULT_PORTS["policy"], ge=0, le=65535)
    """Port to listen on; 0 takes a free one."""
    checkpoint: str = "examples/tiny-policy"
    """Folder of a Qwen3-VL or Qwen2.5-VL checkpoint: safetensors, tokenizer, processor."""
    device: str = "cpu"
    """Torch device: cpu, cuda, cuda:1."""
    dtype: Literal["float32", "bfloat16"] = "float32"
    """Number type of the weights; anything but the trainer's own makes sampling differ."""
    torch_threads: int = Field(0, ge=0)
    """CPU threads of the model; 0 takes half of the cores, which leaves some to the services
    that it works with. More threads than free cores are many times slower than one."""
    max_batch: int = Field(64, ge=1)
    """Most requests in one batch."""
    max_batch_tokens: int = Field(65536, ge=1)
    """Most tokens in one batch, padding and room for answers included."""
    batch_window_s: float = Field(0.005, ge=0)
    """How long the first request waits for others to share its batch."""
    max_queue: int = Field(1024, ge=1)
    """Requests that may wait; more are refused with RESOURCE_EXHAUSTED and a retry time."""
    image_cache_mb: int = Field(256, ge=1)
    """Memory for pictures that are ready for the vision tower."""
    feature_cache_mb: int = Field(256, ge=1)
    """Memory for vision features under the loaded weights."""
