"""Packing against the model's own position code, which is slow but the reference."""

import pytest
import torch

from tests import tiny_checkpoints
from wmkit.domain.generation import Part, Picture, Text, Turn
from wmkit.modeling import EncodedPixels, Loaded, load
from wmkit.modeling.packing import PadSide


@pytest.fixture(scope="module", params=tiny_checkpoints.FAMILIES)
def loaded(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Loaded:
    return load(tiny_checkpoints.make(tmp_path_factory.mktemp("tiny"), request.param))


def pictures(loaded: Loaded) -> list[EncodedPixels]:
    sizes = [(96, 160), (160, 96), (64, 64)]
    return [loaded.images.encode(tiny_checkpoints.png(i, *s)) for i, s in enumerate(sizes)]


def prompt(loaded: Loaded, images: list[EncodedPixels], words: str = "go") -> list[int]:
    parts: list[Part] = [Text(words)]
    for image in images:
        parts += [Picture(image.digest), Text("then")]
    turns = [Turn("user", tuple(parts))]
    return loaded.chat.encode(turns, [image.tokens for image in images])


@pytest.mark.parametrize("side", ["left", "right"])
def test_positions_are_those_of_the_model(loaded: Loaded, side: PadSide) -> None:
    a, b, c = pictures(loaded)
    per_row = [[], [a], [b, a, c], [c, c]]
    rows = [prompt(loaded, images, "word " * i) for i, images in enumerate(per_row)]
    batch = loaded.pack(rows, per_row, pad_side=side)
    assert batch.image_grid_thw is not None
    reference, deltas = loaded.model.model.get_rope_index(
        batch.input_ids,
        mm_token_type_ids=batch.mm_token_type_ids,
        image_grid_thw=batch.image_grid_thw[batch.image_index],
        attention_mask=batch.attention_mask,
    )
    assert torch.equal(batch.position_ids, reference)
    lengths = torch.tensor([len(row) for row in rows])
    assert torch.equal(batch.next_position, lengths + deltas[:, 0])
    assert torch.equal(batch.attention_mask.sum(1), lengths)
    for row, ids in enumerate(rows):
        assert batch.input_ids[row][batch.attention_mask[row].bool()].tolist() == ids


def test_equal_pictures_are_held_once(loaded: Loaded) -> None:
    a, b, _ = pictures(loaded)
    batch = loaded.pack([prompt(loaded, [a, b]), prompt(loaded, [b])], [[a, b], [b]])
    assert [image.digest for image in batch.images] == [a.digest, b.digest]
    assert batch.image_index.tolist() == [0, 1, 1]
    assert batch.pixel_values is not None
    assert len(batch.pixel_values) == len(a.pixel_values) + len(b.pixel_values)


def test_placeholders_that_do_not_match_their_grids_name_the_sample(loaded: Loaded) -> None:
    a, b, _ = pictures(loaded)
    good = prompt(loaded, [a])
    missing = [i for i in good if i != loaded.chat.image_id] + [loaded.chat.image_id]
    for bad, images in ((good, []), (missing, [a]), (good, [a, b])):
        with pytest.raises(ValueError, match=r"episode 7: .* image placeholders, but"):
            loaded.pack([good, bad], [[a], images], names=["episode 6", "episode 7"])
    torn = prompt(loaded, [a])
    at = torn.index(loaded.chat.image_id)
    torn.insert(at + 1, loaded.chat.turn_end_id)
    with pytest.raises(ValueError, match="sample 0: the placeholders at"):
        loaded.pack([torn], [[a]])


def test_an_empty_sequence_is_refused(loaded: Loaded) -> None:
    with pytest.raises(ValueError, match="sample 1: an empty sequence"):
        loaded.pack([[1], []], [[], []])
