"""Settings of learned world models and of the model judge, read from `WMR1_*`.

Part of the world-model service's settings; nothing is opened here.
"""

from typing import Literal

from pydantic import Field

from wmkit.settings import ServiceSettings


class LearnedSettings(ServiceSettings):
    code2world_url: str = ""
    """OpenAI-compatible server of backend code2world, e.g. http://127.0.0.1:8000/v1."""
    code2world_checkpoint: str = ""
    """Folder of a checkpoint to run in this process instead of asking a server."""
    code2world_model: str = "Code2World-8B"
    """Name under which that server serves the model."""
    code2world_model_revision: str = ""
    """Tells apart weights that are served under one name; part of the backend's revision."""
    code2world_key: str = Field("", repr=False)
    """API key of that server; empty sends none."""
    code2world_prompt_file: str = ""
    """Prompt texts (TOML) in place of our own; see services/worldmodel/learned/prompts."""
    code2world_action_data: Literal["android_world", "mobile_use"] = "android_world"
    """Vocabulary in which the action is shown to the model beside the sentence."""
    code2world_include_goal: bool = True
    """Show the goal to the model; false sends a neutral intent, so success is not suggested."""
    code2world_max_tokens: int = Field(8192, ge=1)
    """New tokens per page; an answer that reaches them is FAILED(TRUNCATED)."""
    gworld_url: str = ""
    """OpenAI-compatible server of backend gworld."""
    gworld_checkpoint: str = ""
    """Folder of a checkpoint to run in this process instead of asking a server."""
    gworld_model: str = "gWorld-8B"
    """Name under which that server serves the model."""
    gworld_model_revision: str = ""
    """Tells apart weights that are served under one name; part of the backend's revision."""
    gworld_key: str = Field("", repr=False)
    """API key of that server; empty sends none."""
    gworld_prompt_file: str = ""
    """Prompt texts (TOML) in place of our own; see services/worldmodel/learned/prompts."""
    gworld_action_key: Literal["action", "action_type"] = "action"
    """Key of the action's name: as in the evaluation code, or as in the model card."""
    gworld_max_tokens: int = Field(15_000, ge=1)
    """New tokens per page; the server's context must hold 19384."""
    learned_scenes: str = ""
    """Packed recordings whose first screens and goals are tasks of learned backends (`scenes`)."""
    judge_url: str = ""
    """OpenAI-compatible server of the model judge; empty runs without one."""
    judge_model: str = ""
    """Name of the judge's model; must not be a world model of this server."""
    judge_key: str = Field("", repr=False)
    """API key of the judge's server; empty sends none."""
    judge_prompt_file: str = ""
    """Prompt texts (TOML) of the judge in place of our own."""
    judge_votes: int = Field(3, ge=1, le=15)
    """Votes per verdict, odd; more than half decide, else the verdict is unsure."""
    transformers_device: str = "auto"
    """Torch device of checkpoints in this process: auto, cpu, cuda, cuda:1."""
    transformers_dtype: Literal["auto", "float32", "bfloat16"] = "auto"
    """Number type of their weights; auto is bfloat16 on CUDA and float32 on a CPU."""
    transformers_max_pixels: int = Field(0, ge=0)
    """Most pixels of a picture that they are shown; 0 leaves it to the checkpoint."""
    engine_timeout_s: float = Field(300.0, gt=0)
    """Longest call to a model, retries included, where the caller waits as long."""
    engine_idle_s: float = Field(120.0, gt=0)
    """Longest silence of a model's server within a call."""
    engine_in_flight: int = Field(32, ge=1)
    """Calls at one model's server at once."""
    engine_waiting: int = Field(256, ge=0)
    """Calls that wait for a place there; one more is RESOURCE_EXHAUSTED."""
    engine_attempts: int = Field(3, ge=1)
    """Tries per call, the first one included."""
    engine_breaker_failures: int = Field(5, ge=1)
    """Failures in a row after which a server is left alone."""
    engine_breaker_rest_s: float = Field(10.0, gt=0)
    """How long it is left alone; calls are UNAVAILABLE at once meanwhile."""
