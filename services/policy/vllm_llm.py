"""Our requests in vLLM's words: engine arguments, prompts, sampling parameters, answers.

Everything that imports vLLM is imported when it is called, so that the service starts, and its
help is shown, without it. Versions, queue and weights are `services.policy.vllm_engine`.
"""

import asyncio
import os
from collections.abc import AsyncIterator, Sequence
from dataclasses import dataclass
from typing import Any

from services.policy.engine import Answer, Prompt
from services.policy.stops import StopSearch
from wmkit.domain.errors import InvalidRequest
from wmkit.domain.generation import FinishReason, Sampling
from wmkit.lru import Lru
from wmkit.modeling import EncodedPixels, Processor

MAX_TEMPERATURE = 2.0

_RULED_OUT = -100.0
"""vLLM's lowest bias: a probability of e^-100, where the other engine has 0."""


@dataclass(frozen=True, slots=True)
class Options:
    """How vLLM runs the model; see `services.policy.settings` for each."""

    dtype: str = "float32"
    max_batch: int = 64
    context: int = 0
    memory: float = 0.9
    tensor_parallel: int = 1
    pictures: int = 16
    eager: bool = False
    nccl: bool = False


def open_llm(processor: Processor, options: Options) -> Any:
    """An `AsyncLLM` on the checkpoint; takes seconds to minutes. Needs a running event loop.

    Raises InvalidRequest where vLLM is not installed.
    """
    # A fork would copy the gRPC server's and torch's threads as locks that nobody releases.
    os.environ.setdefault("VLLM_WORKER_MULTIPROCESSING_METHOD", "spawn")
    os.environ.setdefault("VLLM_NO_USAGE_STATS", "1")
    os.environ.setdefault("VLLM_LOGGING_LEVEL", "WARNING")
    try:
        from vllm import AsyncEngineArgs
        from vllm.config import WeightTransferConfig
        from vllm.v1.engine.async_llm import AsyncLLM
    except ImportError as error:
        raise InvalidRequest(
            "WMR1_POLICY_ENGINE=vllm needs vLLM: pip install 'wmr1[vllm]' on a GPU, or make "
            f"vllm for the CPU build ({error})",
            field="policy_engine",
        ) from error
    more: dict[str, Any] = {}
    if options.nccl:
        more["weight_transfer_config"] = WeightTransferConfig(backend="nccl")
    return AsyncLLM.from_engine_args(
        AsyncEngineArgs(
            model=str(processor.folder),
            dtype=options.dtype,
            max_model_len=context_of(processor, options),
            max_num_seqs=options.max_batch,
            gpu_memory_utilization=options.memory,
            tensor_parallel_size=options.tensor_parallel,
            enforce_eager=options.eager,
            limit_mm_per_prompt={"image": options.pictures, "video": 0},
            # Log-probabilities of the distribution that is sampled, after temperature and bias.
            logprobs_mode="processed_logprobs",
            enable_prefix_caching=True,
            # Nothing of the checkpoint's own sampling defaults.
            generation_config="vllm",
            trust_remote_code=False,
            load_format="safetensors",
            disable_log_stats=False,
            worker_extension_cls="services.policy.vllm_worker.WorkerExtension",
            seed=0,
            **more,
        )
    )


def context_of(processor: Processor, options: Options) -> int:
    return min(processor.context, options.context or processor.context)


class Pictures:
    """Pictures as vLLM takes them, recent ones remembered: at most `max_bytes` of pixels."""

    def __init__(self, processor: Processor, max_bytes: int = 256 << 20) -> None:
        self._encoder = processor.images
        self._kept: Lru[str, Any] = Lru(
            max_bytes, lambda picture: 3 * picture.width * picture.height
        )

    async def of(self, images: Sequence[EncodedPixels]) -> list[Any]:
        """The pictures that `images` were cut from: resized by our own processor, so that vLLM's
        finds nothing to resize, and both sides see the same pixels."""
        found = {i.digest: self._kept[i.digest] for i in images if i.digest in self._kept}
        unknown = list({i.digest: i for i in images if i.digest not in found}.values())
        if unknown:
            # Putting a screen together takes milliseconds, so it is done off the loop.
            made = await asyncio.to_thread(lambda: [*map(self._encoder.picture, unknown)])
            for image, picture in zip(unknown, made, strict=True):
                self._kept[image.digest] = found[image.digest] = picture
        return [found[image.digest] for image in images]


def prompt_for(processor: Processor, prompt: Prompt, pictures: Sequence[Any]) -> Any:
    """Ids with one placeholder per picture, which vLLM expands again, and the pictures."""
    from vllm import TokensPrompt

    ids = collapsed(prompt.ids, processor.chat.image_id)
    if not prompt.images:
        return TokensPrompt(prompt_token_ids=ids)
    return TokensPrompt(
        prompt_token_ids=ids,
        multi_modal_data={"image": list(pictures)},
        multi_modal_uuids={"image": [image.digest for image in prompt.images]},
    )


def collapsed(ids: Sequence[int], image_id: int) -> list[int]:
    """`ids` with every run of `image_id` as one. Runs never touch: each has its own frame."""
    return [
        token for i, token in enumerate(ids) if token != image_id or i == 0 or ids[i - 1] != token
    ]


def parameters_for(processor: Processor, sampling: Sampling) -> Any:
    """Raises InvalidRequest for a temperature that vLLM does not take."""
    from vllm import SamplingParams
    from vllm.sampling_params import RequestOutputKind

    if sampling.temperature > MAX_TEMPERATURE:
        raise InvalidRequest(
            f"vLLM samples at temperatures up to {MAX_TEMPERATURE:g}, not {sampling.temperature:g}",
            field="sampling.temperature",
        )
    return SamplingParams(
        temperature=sampling.temperature,
        max_tokens=sampling.max_new_tokens,
        seed=sampling.seed if sampling.temperature > 0 else None,
        stop=list(sampling.stop) or None,
        include_stop_str_in_output=True,
        stop_token_ids=sorted(processor.end_ids),
        logprobs=0,
        logit_bias={token: _RULED_OUT for token in processor.placeholders},
        skip_special_tokens=False,
        spaces_between_special_tokens=False,
        detokenize=bool(sampling.stop),
        output_kind=RequestOutputKind.FINAL_ONLY,
    )


async def last(outputs: AsyncIterator[Any]) -> Any:
    """What vLLM says at the end of a request; None where it says nothing."""
    final = None
    async for output in outputs:
        final = output
    return final


def answer_of(
    processor: Processor, sampling: Sampling, ids: Sequence[int], logprobs: Sequence[float]
) -> Answer:
    """The answer by our own rules of where it ends.

    vLLM looks for stop strings in text, we in bytes, and it may have run on for a token; so
    what it sampled is read again and cut behind the first token that ends it.
    """
    answer, search = Answer(), StopSearch(sampling.stop)
    for token, logprob in zip(ids, logprobs, strict=True):
        answer.token_ids.append(token)
        answer.logprobs.append(logprob)
        if token in processor.end_ids:
            answer.reason = FinishReason.END
            return answer
        if stop := search.feed(processor.chat.token_bytes(token)):
            answer.reason, answer.stop = FinishReason.STOP, stop
            return answer
    return answer
