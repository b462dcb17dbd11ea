"""Our requests in vLLM's words, as far as vLLM is not needed for them."""

import asyncio
from pathlib import Path

import pytest
import torch

from services.policy.vllm_llm import Pictures, answer_of, collapsed
from tests import tiny_checkpoints
from wmkit.domain.generation import FinishReason, Picture, Sampling, Text, Turn
from wmkit.modeling import load_processor
from wmkit.modeling.checkpoint import skeleton
from wmkit.modeling.processor import Processor
from wmkit.modeling.weights import own_tensors


@pytest.fixture(scope="module")
def processor(tmp_path_factory: pytest.TempPathFactory) -> Processor:
    return load_processor(tiny_checkpoints.make(tmp_path_factory.mktemp("tiny")))


def test_each_picture_becomes_one_placeholder(processor: Processor) -> None:
    pictures = [processor.images.encode(tiny_checkpoints.png(i)) for i in range(2)]
    turns = [Turn("user", (Text("a"), *(Picture(p.digest) for p in pictures), Text("b")))]
    whole = processor.chat.encode(turns, [p.tokens for p in pictures])
    assert collapsed(whole, processor.chat.image_id) == processor.chat.encode(turns, [1, 1])


async def test_pictures_stay_those_of_their_screens_while_others_drive_them_out(
    processor: Processor,
) -> None:
    encoded = [processor.images.encode(tiny_checkpoints.png(i)) for i in range(3)]
    right = [processor.images.picture(image).tobytes() for image in encoded]
    pictures = Pictures(processor, max_bytes=max(map(len, right)))
    orders = [[i % 3, (i + 1 + i // 3 % 2) % 3, i % 3] for i in range(60)]
    got = await asyncio.gather(*(pictures.of([encoded[i] for i in order]) for order in orders))
    for order, answer in zip(orders, got, strict=True):
        assert [picture.tobytes() for picture in answer] == [right[i] for i in order]


def test_an_answer_ends_by_our_rules_wherever_the_engine_ended_it(processor: Processor) -> None:
    ids = processor.chat.text_ids("look </call_wm> beyond")
    scores = [-float(i) for i in range(len(ids))]
    sampling = Sampling(1.0, 50, ("</call_wm>",))
    answer = answer_of(processor, sampling, ids, scores)
    assert processor.chat.decode(answer.token_ids).rstrip() == "look </call_wm>"
    assert (answer.reason, answer.stop) == (FinishReason.STOP, "</call_wm>")
    assert answer.logprobs == scores[: len(answer.token_ids)]
    end = processor.chat.turn_end_id
    ended = answer_of(processor, sampling, [*ids[:2], end, *ids], [0.0] * (3 + len(ids)))
    assert ended.token_ids == [*ids[:2], end]
    assert ended.reason is FinishReason.END
    cut = answer_of(processor, sampling, ids[:2], scores[:2])
    assert (cut.reason, cut.stop) == (FinishReason.LENGTH, "")


@pytest.mark.parametrize("family", tiny_checkpoints.FAMILIES)
def test_a_skeleton_has_the_names_and_shapes_of_the_model(
    family: tiny_checkpoints.Family, tmp_path: Path
) -> None:
    from wmkit.modeling import load

    folder = tiny_checkpoints.make(tmp_path, family)
    bones = own_tensors(skeleton(load_processor(folder), torch.float32))
    real = own_tensors(load(folder).model)
    assert {n: t.shape for n, t in bones.items()} == {n: t.shape for n, t in real.items()}
    assert {t.device.type for t in bones.values()} == {"meta"}
