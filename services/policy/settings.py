"""What the policy service reads from its environment."""

from typing import Literal

from pydantic import Field

from wmkit.settings import DEFAULT_PORTS, ServiceSettings


class PolicySettings(ServiceSettings):
    """Settings of the policy service."""

    port: int = Field(DEFAULT_PORTS["policy"], ge=0, le=65535)
    """Port to listen on; 0 takes a free one."""
    policy_engine: Literal["transformers", "vllm", "openai"] = "transformers"
    """What runs the model: `transformers` in this process, `vllm` in processes of its own, or
    `openai`, a hosted model behind an OpenAI-compatible server, for evaluation only."""
    checkpoint: str = "examples/tiny-policy"
    """Folder of a Qwen3-VL or Qwen2.5-VL checkpoint: safetensors, tokenizer, processor."""
    adapter: str = ""
    """Folder of a LoRA adapter in PEFT's format (safetensors), merged into the checkpoint."""
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
    canary_tolerance: float = Field(0.05, gt=0)
    """How far new weights may score the probe from their sender's scores, in nats per token
    (mean); farther ones are refused."""
    vllm_context: int = Field(0, ge=0)
    """Longest prompt and answer in tokens; 0 takes the checkpoint's own limit, whose cache may
    not fit the device."""
    vllm_memory: float = Field(0.9, gt=0, le=1)
    """Share of the device's memory that vLLM takes."""
    vllm_tensor_parallel: int = Field(1, ge=1)
    """GPUs that one model is spread over."""
    vllm_pictures: int = Field(16, ge=0)
    """Most pictures in one prompt."""
    vllm_eager: bool = False
    """Run without compilation: starts sooner, answers slower."""
    vllm_nccl: bool = False
    """Let weights come by NCCL from a trainer; needs a GPU."""
    openai_url: str = ""
    """Engine `openai`: base of the server's API, https://host/v1."""
    openai_model: str = ""
    """Engine `openai`: the model's name there."""
    openai_key: str = Field("", repr=False)
    """Engine `openai`: API key; empty sends none."""
    openai_timeout_s: float = Field(120.0, gt=0)
    """Engine `openai`: longest wait for one answer, where the caller waits as long."""
    openai_attempts: int = Field(4, ge=1)
    """Engine `openai`: tries per request, the first included."""
