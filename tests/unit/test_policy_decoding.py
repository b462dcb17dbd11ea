"""Batched decoding with a cache, against the library's `generate` and full forward passes."""

import dataclasses
from collections.abc import Sequence

import pytest
import torch

from services.policy.decoding import generate
from services.policy.engine import Answer, Prompt
from services.policy.features import FeatureCache
from tests import modeling_reference, tiny_checkpoints
from wmkit.domain.generation import FinishReason, Part, Picture, Sampling, Text, Tokens, Turn
from wmkit.modeling import EncodedPixels, Loaded, forward_logprobs, load

END, STOP, LENGTH = FinishReason.END, FinishReason.STOP, FinishReason.LENGTH


@pytest.fixture(scope="module", params=tiny_checkpoints.FAMILIES)
def loaded(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Loaded:
    return load(tiny_checkpoints.make(tmp_path_factory.mktemp("tiny"), request.param))


def picture(loaded: Loaded, seed: int) -> EncodedPixels:
    return loaded.images.encode(tiny_checkpoints.png(seed, 96, 96 + 32 * (seed % 3)))


def turns(words: str, images: Sequence[EncodedPixels]) -> list[Turn]:
    parts: list[Part] = [Text(words)]
    for image in images:
        parts += [Picture(image.digest), Text("then")]
    return [Turn("system", (Text("be brief"),)), Turn("user", tuple(parts))]


def prompt(
    loaded: Loaded, words: str, images: Sequence[EncodedPixels], sampling: Sampling
) -> Prompt:
    ids = loaded.chat.encode(turns(words, images), [image.tokens for image in images])
    return Prompt(ids, list(images), sampling)


def mixed(loaded: Loaded) -> list[Prompt]:
    """Unequal prompts, picture counts, lengths, temperatures; greedy and sampled."""
    a, b, c = (picture(loaded, seed) for seed in range(3))
    shown = [[], [a], [b, c], [a, a], [c], [b, a, c], []]
    return [
        prompt(
            loaded,
            "tap " * (i + 1),
            images,
            Sampling(temperature=(0.0, 1.0, 0.6)[i % 3], max_new_tokens=6 + 3 * i, seed=i),
        )
        for i, images in enumerate(shown)
    ]


def answers(loaded: Loaded, prompts: Sequence[Prompt]) -> list[Answer]:
    return generate(loaded, prompts, FeatureCache(1 << 24))


def alone(loaded: Loaded, one: Prompt) -> Answer:
    return answers(loaded, [one])[0]


def test_a_batch_answers_as_each_prompt_alone_does(loaded: Loaded) -> None:
    prompts = mixed(loaded)
    together = answers(loaded, prompts)
    assert len({len(answer.token_ids) for answer in together}) > 3
    for one, answer in zip(prompts, together, strict=True):
        single = alone(loaded, one)
        assert answer.token_ids == single.token_ids
        assert (answer.reason, answer.stop) == (single.reason, single.stop)
        assert answer.logprobs == pytest.approx(single.logprobs, abs=1e-4)


def test_answers_are_not_degenerate(loaded: Loaded) -> None:
    """Guards the other tests: a model that repeats one token would pass most of them."""
    tokens = [token for answer in answers(loaded, mixed(loaded)) for token in answer.token_ids]
    assert len(set(tokens)) > 20


def test_greedy_is_the_librarys_generate(loaded: Loaded) -> None:
    a, b = picture(loaded, 0), picture(loaded, 1)
    for images in ([], [a], [a, b]):
        one = prompt(loaded, "scroll down", images, Sampling(0.0, 24))
        out = loaded.model.generate(
            **modeling_reference.inputs(loaded, one.ids, images),
            do_sample=False,
            max_new_tokens=24,
            suppress_tokens=modeling_reference.placeholders(loaded),
            eos_token_id=sorted(loaded.end_ids),
            pad_token_id=loaded.pad_id,
        )
        assert alone(loaded, one).token_ids == out[0, len(one.ids) :].tolist()


def test_logprobs_are_those_of_the_full_forward_pass(loaded: Loaded) -> None:
    for one, answer in zip(prompts := mixed(loaded), answers(loaded, prompts), strict=True):
        with torch.no_grad():
            reference = modeling_reference.logprobs(
                loaded, one.ids + answer.token_ids, one.images, one.sampling.temperature or 1.0
            )
        expected = reference[-len(answer.token_ids) :].tolist()
        assert answer.logprobs == pytest.approx(expected, abs=2e-5)


def test_a_continued_thought_scores_as_one_sequence(loaded: Loaded) -> None:
    """Two stretches with an imagined screen in between, and the sequence that training sees."""
    real, imagined = picture(loaded, 0), picture(loaded, 2)
    first = prompt(loaded, "think", [real], Sampling(1.0, 9, seed=1))
    one = alone(loaded, first)
    continued = [
        *turns("think", [real]),
        Turn("assistant", (Tokens(tuple(one.token_ids)),)),
        Turn("user", (Text("Imagined screen"), Picture(imagined.digest))),
    ]
    ids = loaded.chat.encode(continued, [real.tokens, imagined.tokens])
    second = Prompt(ids, [real, imagined], Sampling(1.0, 12, seed=2))
    two = alone(loaded, second)
    whole = second.ids + two.token_ids
    start = len(first.ids)
    assert whole[: start + len(one.token_ids)] == first.ids + one.token_ids
    batch = loaded.pack([whole], [[real, imagined]])
    select = torch.zeros_like(batch.input_ids, dtype=torch.bool)
    select[0, start : start + len(one.token_ids)] = True
    select[0, len(second.ids) :] = True
    with torch.no_grad():
        trained = forward_logprobs(loaded.model, batch, select).tolist()
        reference = modeling_reference.logprobs(loaded, whole, [real, imagined])
    sampled = one.logprobs + two.logprobs
    assert trained == pytest.approx(sampled, abs=2e-5)
    assert reference[select[0, 1:]].tolist() == pytest.approx(sampled, abs=2e-5)


def test_half_precision_stays_near_full_precision(loaded: Loaded) -> None:
    half = load(loaded.folder, dtype=torch.bfloat16)
    one = prompt(loaded, "tap", [picture(loaded, 0)], Sampling(1.0, 6, seed=2))
    answer = alone(half, one)
    with torch.no_grad():
        whole = one.ids + answer.token_ids
        reference = modeling_reference.logprobs(loaded, whole, one.images)[-6:]
    assert answer.logprobs == pytest.approx(reference.tolist(), abs=0.3)


def test_pictures_matter(loaded: Loaded) -> None:
    images = [picture(loaded, 0), picture(loaded, 3)]
    assert images[0].grid_thw == images[1].grid_thw
    seen, other = (alone(loaded, prompt(loaded, "tap", [i], Sampling(0.0, 8))) for i in images)
    assert seen.logprobs != pytest.approx(other.logprobs, abs=1e-3)


def test_cached_features_change_nothing(loaded: Loaded) -> None:
    prompts = mixed(loaded)
    cache = FeatureCache(1 << 24)
    cold = generate(loaded, prompts, cache)
    # Another order of pictures, so that a mix-up of cached features would show.
    warm = generate(loaded, prompts[::-1], cache)[::-1]
    for first, second in zip(cold, warm, strict=True):
        assert first.token_ids == second.token_ids
        assert first.logprobs == pytest.approx(second.logprobs, abs=1e-4)
    tiny = generate(loaded, prompts, FeatureCache(0))
    assert [a.token_ids for a in tiny] == [a.token_ids for a in cold]


def test_seeds_separate_and_repeat_answers(loaded: Loaded) -> None:
    one = prompt(loaded, "go", [], Sampling(1.0, 12, seed=5))
    other = dataclasses.replace(one, sampling=dataclasses.replace(one.sampling, seed=6))
    assert alone(loaded, one).token_ids == alone(loaded, one).token_ids
    assert alone(loaded, one).token_ids != alone(loaded, other).token_ids


def test_a_stop_string_that_spans_tokens_ends_with_its_last_token_whole(loaded: Loaded) -> None:
    free = prompt(loaded, "go on", [picture(loaded, 1)], Sampling(1.0, 40, seed=3))
    full = alone(loaded, free).token_ids
    spelled = [loaded.chat.token_bytes(token).decode("utf-8", "replace") for token in full]
    # Two neighbouring tokens of plain characters; the stop string leaves off the last one's end.
    at = next(
        i
        for i in range(5, len(full) - 1)
        if spelled[i].isascii() and spelled[i + 1].isascii() and len(spelled[i + 1]) > 1
    )
    stop = spelled[at][-1] + spelled[at + 1][:-1]
    earlier = "".join(spelled[: at + 1])
    assert stop not in earlier
    sampling = dataclasses.replace(free.sampling, stop=("never there", stop))
    answer = alone(loaded, dataclasses.replace(free, sampling=sampling))
    assert answer.token_ids == full[: at + 2]
    assert (answer.reason, answer.stop) == (STOP, stop)


def test_the_end_of_the_turn_is_part_of_the_answer(loaded: Loaded) -> None:
    # Nearly uniform over some 350 tokens, so that 8 x 200 of them hold the end.
    tries = [prompt(loaded, "go", [], Sampling(20.0, 200, seed=seed)) for seed in range(8)]
    found = [answer for answer in answers(loaded, tries) if answer.reason is END]
    assert found
    for answer in found:
        assert answer.token_ids[-1] in loaded.end_ids
        assert not loaded.end_ids & set(answer.token_ids[:-1])


def test_the_token_limit_counts_exactly(loaded: Loaded) -> None:
    answer = alone(loaded, prompt(loaded, "go", [], Sampling(0.0, 1)))
    assert (len(answer.token_ids), answer.reason) == (1, LENGTH)


def test_an_abandoned_row_ends_early_and_disturbs_no_other(loaded: Loaded) -> None:
    prompts = mixed(loaded)
    calls: list[int] = []

    def abandoned(row: int) -> bool:
        calls.append(row)
        return row == 6 and calls.count(6) == 3

    kept = answers(loaded, prompts)
    left = generate(loaded, prompts, FeatureCache(1 << 24), abandoned)
    assert len(left[6].token_ids) == 3
    assert [a.token_ids for a in left[:6]] == [a.token_ids for a in kept[:6]]
