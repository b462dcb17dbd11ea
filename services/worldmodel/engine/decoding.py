"""A Qwen-VL checkpoint that answers chat messages. The only module here that knows torch.

Synchronous: queue, deadline and cancellation are `in_process`. Prompts are framed as the
policy's are (`wmkit.modeling`), which is the chat format of Qwen-VL checkpoints; decoding
is the library's own, with the checkpoint's generation config.
"""

import base64
import binascii
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Literal

import torch
from blake3 import blake3
from transformers import GenerationConfig, StoppingCriteria, StoppingCriteriaList

from services.worldmodel.engine.wire import Ask, Completion, Message
from wmkit.blobs import digest
from wmkit.domain.errors import EngineDown, InvalidRequest
from wmkit.domain.generation import Picture, Text, Turn
from wmkit.modeling import EncodedPixels, Loaded, load

Dtype = Literal["auto", "float32", "bfloat16"]

_NOBODY = "the answer was given up: nobody waits for it"

# The library samples from torch's global generators, so seeding and sampling go together.
_SAMPLING = threading.Lock()


class Decoder:
    """One checkpoint on one device; `complete` is called by one thread at a time.

    `device` auto is CUDA where there is one, `dtype` auto bfloat16 there and float32 on a CPU.
    `max_pixels` lowers the checkpoint's own limit of pixels per picture, 0 leaves it. Raises
    BadCheckpoint for the folder, InvalidRequest for a device that does not exist.
    """

    def __init__(
        self,
        folder: str | Path,
        *,
        device: str = "auto",
        dtype: Dtype = "auto",
        max_pixels: int = 0,
    ) -> None:
        on = _device(device)
        kind = torch.bfloat16 if (on.type == "cuda" or dtype == "bfloat16") else torch.float32
        if dtype == "float32":
            kind = torch.float32
        self.folder = Path(folder).resolve()
        self._loaded = load(folder, device=on, dtype=kind)
        if max_pixels:
            size = self._loaded.images.processor.size
            size["longest_edge"] = min(int(size["longest_edge"]), max_pixels)
        self.weights = _weights(self.folder, self._loaded, [str(kind), max_pixels])

    def complete(self, ask: Ask, gone: Callable[[], bool]) -> Completion:
        """The answer to `ask`.

        Raises EngineDown once `gone()` is true, within a token, and where the prompt fills the
        model's context; InvalidRequest for a picture that cannot be read.
        """
        if gone():
            raise EngineDown(_NOBODY)
        loaded = self._loaded
        images: list[EncodedPixels] = []
        turns = [_turn(message, loaded, images) for message in ask.messages]
        ids = loaded.chat.encode(turns, [image.tokens for image in images])
        room = loaded.context - len(ids)
        if room < 1:
            raise EngineDown(
                f"{self.folder.name} has a context of {loaded.context} tokens, the prompt "
                f"{len(ids)}",
                retry_after_s=30.0,
            )
        new = self._generate(ids, images, ask, min(ask.max_tokens, room), gone)
        if gone():
            raise EngineDown(_NOBODY)
        ended = bool(new) and new[-1] in loaded.end_ids
        text = loaded.chat.decode(new[:-1] if ended else new)
        return Completion(text, "stop" if ended else "length", len(new))

    def _generate(
        self,
        ids: Sequence[int],
        images: Sequence[EncodedPixels],
        ask: Ask,
        limit: int,
        gone: Callable[[], bool],
    ) -> list[int]:
        model = self._loaded.model
        batch = self._loaded.pack([ids], [images])
        pictures: dict[str, Any] = {}
        if images:
            # One entry per placeholder run, also where one picture is shown twice.
            grids = [image.grid_thw for image in images]
            pictures = {
                "pixel_values": torch.cat([i.pixel_values for i in images]).to(model.device),
                "image_grid_thw": torch.tensor(grids, device=model.device),
                "mm_token_type_ids": batch.mm_token_type_ids,
            }
        stopping = StoppingCriteriaList([_Gone(gone)])
        with _SAMPLING, torch.inference_mode():
            torch.manual_seed(0 if ask.seed is None else ask.seed & 0xFFFF_FFFF_FFFF_FFFF)
            out = model.generate(
                input_ids=batch.input_ids,
                attention_mask=batch.attention_mask,
                **pictures,
                generation_config=self._config(ask, limit),
                stopping_criteria=stopping,
            )
        new: list[int] = out[0, len(ids) :].tolist()
        return new

    def _config(self, ask: Ask, limit: int) -> GenerationConfig:
        """The checkpoint's own, but for what the request and the length of the prompt decide."""
        config = GenerationConfig.from_dict(self._loaded.model.generation_config.to_dict())
        config.max_length = None
        config.max_new_tokens = limit
        config.eos_token_id = sorted(self._loaded.end_ids)
        config.pad_token_id = self._loaded.pad_id
        if ask.temperature == 0:
            # The library's defaults: None would bring back the checkpoint's, with a warning.
            config.do_sample, config.temperature, config.top_p, config.top_k = False, 1.0, 1.0, 50
        elif ask.temperature is not None:
            config.do_sample, config.temperature = True, ask.temperature
        return config


class _Gone(StoppingCriteria):  # type: ignore[misc]
    """Ends an answer that nobody waits for any more."""

    def __init__(self, gone: Callable[[], bool]) -> None:
        self._gone = gone

    def __call__(self, input_ids: torch.Tensor, scores: Any, **_: Any) -> torch.Tensor:
        return torch.full(
            (len(input_ids),), self._gone(), dtype=torch.bool, device=input_ids.device
        )


def _device(name: str) -> torch.device:
    if name == "auto":
        return torch.device("cuda" if torch.cuda.is_available() else "cpu")
    try:
        device = torch.device(name)
        torch.empty(0, device=device)
    except (RuntimeError, AssertionError) as error:
        words = str(error).splitlines()[0]
        raise InvalidRequest(f"WMR1_TRANSFORMERS_DEVICE={name}: {words}", "device") from None
    return device


def _turn(message: Message, loaded: Loaded, images: list[EncodedPixels]) -> Turn:
    """A chat message as a turn; its pictures are appended to `images`."""
    parts: list[Text | Picture] = []
    for part in _parts(message["content"]):
        if part["type"] == "text":
            parts.append(Text(part["text"]))
            continue
        image = loaded.images.encode(_picture(part["image_url"]["url"]))
        images.append(image)
        parts.append(Picture(image.digest))
    return Turn(message["role"], tuple(parts))


def _parts(content: str | Sequence[Mapping[str, Any]]) -> Iterator[Mapping[str, Any]]:
    if isinstance(content, str):
        yield {"type": "text", "text": content}
    else:
        yield from content


def _picture(url: str) -> bytes:
    head, _, data = url.partition(",")
    if not head.startswith("data:") or not head.endswith(";base64"):
        raise InvalidRequest("a picture is sent as a data URL", "image")
    try:
        return base64.b64decode(data, validate=True)
    except binascii.Error as error:
        raise InvalidRequest(f"a picture's data URL is broken: {error}", "image") from None


def _weights(folder: Path, loaded: Loaded, decides: Sequence[object]) -> str:
    """Digest of everything that decides about answers: weights, inputs, decoding, number type."""
    parts = [
        blake3(max_threads=blake3.AUTO).update_mmap(file).hexdigest()
        for file in sorted(folder.glob("*.safetensors"))
    ]
    config = loaded.model.generation_config.to_diff_dict()
    words = [*parts, loaded.processor_digest, sorted(config.items()), *decides]
    return digest(repr(words).encode())
