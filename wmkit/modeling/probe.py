"""The canary's probe: one fixed conversation that sender and receiver of weights both score.

The same weights give the same log-probabilities, up to the engines' rounding. It notices
weights that were damaged, mixed up or loaded in the wrong places; it is no test of quality,
and a step of training may be smaller than what it can see.
"""

import io
from collections.abc import Sequence

import numpy as np
import torch
from PIL import Image

from wmkit.domain.generation import Picture, Text, Turn
from wmkit.modeling.checkpoint import Loaded
from wmkit.modeling.forward import hidden_states
from wmkit.modeling.images import EncodedPixels
from wmkit.modeling.processor import Processor

WORDS = (
    "Goal: turn on Wi-Fi. The phone shows a list of settings, 7 of 12 in view. "
    "<think>Network comes first, so I open it.</think>\nAction: tap(64,160)"
)
"""What is scored, behind a picture, so that both towers of the model count."""


def probe_prompt(processor: Processor) -> tuple[list[int], list[EncodedPixels], int]:
    """Ids, pictures, and how many of the last ids are scored."""
    picture = processor.images.encode(_picture())
    ids = processor.chat.encode(
        [Turn("user", (Picture(picture.digest), Text("Go on.")))], [picture.tokens]
    )
    scored = processor.chat.text_ids(WORDS)
    return ids + scored, [picture], len(scored)


@torch.no_grad()
def probe_logprobs(loaded: Loaded) -> list[float]:
    """Log-probabilities of the probe's words under softmax(logits), over the whole vocabulary.

    Unlike those of sampling, placeholders are not ruled out: engines score prompts so.
    """
    ids, pictures, scored = probe_prompt(loaded)
    training = loaded.model.training
    loaded.model.eval()
    hidden = hidden_states(loaded.model, loaded.pack([ids], [pictures]))[0, -scored - 1 : -1]
    loaded.model.train(training)
    scores = torch.log_softmax(loaded.model.lm_head(hidden).float(), dim=-1)
    targets = torch.tensor(ids[-scored:], device=scores.device)
    out: list[float] = scores.gather(1, targets[:, None])[:, 0].tolist()
    return out


def probe_distance(ours: Sequence[float], theirs: Sequence[float]) -> float:
    """Mean |difference| in nats; infinite where they are not of one length or not finite."""
    if len(ours) != len(theirs):
        return float("inf")
    distance = sum(abs(a - b) for a, b in zip(ours, theirs, strict=True)) / len(ours)
    return distance if distance == distance else float("inf")


def _picture() -> bytes:
    """Stripes and a gradient, 128 x 256, the same bytes on every machine."""
    y, x = np.mgrid[0:256, 0:128]
    check = np.where((x // 16 + y // 16) % 2, 255, 0)
    image = Image.fromarray(np.stack([x * 2 % 256, y, check], axis=-1).astype(np.uint8))
    out = io.BytesIO()
    image.save(out, "BMP")
    return out.getvalue()
