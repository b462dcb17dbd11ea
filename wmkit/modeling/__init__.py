"""The torch code that policy and trainer share: checkpoint, pictures, chat framing, packing.

Sampling and training go through the same functions here, so that the trainer sees the very
token ids, pixels and positions that were sampled from (`docs/adr/0001-shared-modeling.md`).
Not a part of the client: only `services.policy`, `services.trainer` and the examples import
it, because it needs torch and transformers.
"""

from wmkit.modeling.chat import ChatEncoder
from wmkit.modeling.checkpoint import Loaded, load, save
from wmkit.modeling.forward import forward_logprobs
from wmkit.modeling.images import EncodedPixels, ImageEncoder
from wmkit.modeling.packing import Batch, pack
from wmkit.modeling.probe import probe_distance, probe_logprobs, probe_prompt
from wmkit.modeling.processor import Processor, load_processor
from wmkit.modeling.weights import load_weights, weights_to_bytes

__all__ = [
    "Batch",
    "ChatEncoder",
    "EncodedPixels",
    "ImageEncoder",
    "Loaded",
    "Processor",
    "forward_logprobs",
    "load",
    "load_processor",
    "load_weights",
    "pack",
    "probe_distance",
    "probe_logprobs",
    "probe_prompt",
    "save",
    "weights_to_bytes",
]
