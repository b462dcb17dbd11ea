"""Selected log-probabilities against the library's full forward pass."""

import pytest
import torch

from tests import modeling_reference, tiny_checkpoints
from wmkit.domain.generation import Part, Picture, Text, Turn
from wmkit.modeling import Batch, EncodedPixels, Loaded, forward, forward_logprobs, load
from wmkit.modeling.packing import PadSide


@pytest.fixture(scope="module", params=tiny_checkpoints.FAMILIES)
def loaded(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Loaded:
    return load(tiny_checkpoints.make(tmp_path_factory.mktemp("tiny"), request.param))


class Case:
    """Three samples of unequal lengths with 0, 1 and 2 pictures; the last tokens are selected."""

    def __init__(self, loaded: Loaded, side: PadSide = "right") -> None:
        a, b = (loaded.images.encode(tiny_checkpoints.png(i, 96, 96 + 64 * i)) for i in range(2))
        self.images: list[list[EncodedPixels]] = [[], [a], [a, b]]
        self.rows = []
        for i, images in enumerate(self.images):
            shown = [Picture(image.digest) for image in images]
            parts: tuple[Part, ...] = (Text("go " * (i + 1)), *shown)
            ids = loaded.chat.encode([Turn("user", parts)], [image.tokens for image in images])
            self.rows.append(ids + loaded.chat.text_ids("tap the icon"[: 4 + 4 * i]))
        self.counts = [2, 5, 3]
        self.batch: Batch = loaded.pack(self.rows, self.images, pad_side=side)
        self.select = torch.zeros_like(self.batch.input_ids, dtype=torch.bool)
        for row, (ids, count) in enumerate(zip(self.rows, self.counts, strict=True)):
            end = self.select.shape[1] if side == "left" else len(ids)
            self.select[row, end - count : end] = True

    def reference(self, loaded: Loaded, temperature: float = 1.0) -> torch.Tensor:
        return torch.cat(
            [
                modeling_reference.logprobs(loaded, ids, images, temperature)[-count:]
                for ids, images, count in zip(self.rows, self.images, self.counts, strict=True)
            ]
        )


@pytest.mark.parametrize("side", ["left", "right"])
@pytest.mark.parametrize("temperature", [1.0, 0.7])
def test_logprobs_are_those_of_the_full_forward_pass(
    loaded: Loaded, side: PadSide, temperature: float
) -> None:
    case = Case(loaded, side)
    with torch.no_grad():
        ours = forward_logprobs(loaded.model, case.batch, case.select, temperature)
        assert torch.allclose(ours, case.reference(loaded, temperature), atol=2e-5, rtol=0)


def test_gradients_are_those_of_the_full_forward_pass(
    loaded: Loaded, monkeypatch: pytest.MonkeyPatch
) -> None:
    """In chunks of two tokens, so that recomputation and its gradient are covered too."""
    case = Case(loaded)
    vocabulary = loaded.model.lm_head.weight.shape[0]
    monkeypatch.setattr(forward, "LOGITS_PER_CHUNK", 2 * vocabulary)
    weights = torch.arange(1.0, 1.0 + sum(case.counts))
    names, parameters = zip(*loaded.model.named_parameters(), strict=True)
    theirs = torch.autograd.grad((case.reference(loaded) * weights).sum(), parameters)
    ours = torch.autograd.grad(
        (forward_logprobs(loaded.model, case.batch, case.select) * weights).sum(), parameters
    )
    for name, mine, other in zip(names, ours, theirs, strict=True):
        # A key's bias shifts all scores of a row alike: its true gradient is 0.
        scale = max(float(other.abs().max()), 1e-2)
        assert float((mine - other).abs().max()) < 1e-4 * scale, name


def test_placeholders_have_no_probability(loaded: Loaded) -> None:
    case = Case(loaded)
    with torch.no_grad():
        hidden = forward.hidden_states(loaded.model, case.batch)[:, -1]
        probabilities = forward.logits(loaded.model, hidden).softmax(-1)
    for token in modeling_reference.placeholders(loaded):
        assert probabilities[:, token].tolist() == [0.0] * 3


def test_first_tokens_and_padding_cannot_be_selected(loaded: Loaded) -> None:
    for side, column in (("left", 0), ("right", 0)):
        case = Case(loaded, side)  # type: ignore[arg-type]
        case.select[:, column] = True
        with pytest.raises(ValueError, match="first token or padding"):
            forward_logprobs(loaded.model, case.batch, case.select)
    case = Case(loaded)
    with pytest.raises(ValueError, match=r"select is \(3, 4\)"):
        forward_logprobs(loaded.model, case.batch, case.select[:, :4])


def test_right_padding_cannot_be_selected(loaded: Loaded) -> None:
    case = Case(loaded)
    case.select[0, -1] = True
    with pytest.raises(ValueError, match="first token or padding"):
        forward_logprobs(loaded.model, case.batch, case.select)
