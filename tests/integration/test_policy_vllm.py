"""The engine `vllm` on vLLM's CPU build, against the library's own forward pass.

Run by `make test-vllm`, in an environment of its own. One engine serves all tests, because it
takes a minute to start; each test leaves it with some weights and says which it wants.
"""

import asyncio
import contextlib
import json
from collections.abc import AsyncIterator
from typing import Any

import pytest
import pytest_asyncio
import torch
from safetensors.torch import load as parse
from safetensors.torch import save as serialize

from services.policy.decoding import generate
from services.policy.engine import Answer, Prompt, Update
from services.policy.features import FeatureCache
from services.policy.versions import Version
from services.policy.vllm_engine import VllmEngine
from services.policy.vllm_llm import Options
from tests import modeling_reference, tiny_checkpoints
from wmkit.domain.errors import BadCheckpoint, InvalidRequest, StalePolicyVersion
from wmkit.domain.generation import (
    FinishReason,
    NcclTransfer,
    Part,
    Picture,
    Sampling,
    TensorSpec,
    Text,
    Turn,
)
from wmkit.modeling import Loaded, load, load_processor, probe_logprobs, weights_to_bytes

pytestmark = [pytest.mark.vllm, pytest.mark.slow, pytest.mark.asyncio(loop_scope="module")]

VERSIONS = 4


@pytest.fixture(scope="module")
def models(tmp_path_factory: pytest.TempPathFactory) -> list[Loaded]:
    """Four checkpoints of one shape; the first is the one that the engine starts with."""
    return [
        load(tiny_checkpoints.make(tmp_path_factory.mktemp(f"v{i}"), seed=i, head_dim=32))
        for i in range(VERSIONS)
    ]


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def engine(models: list[Loaded]) -> AsyncIterator[VllmEngine]:
    made = VllmEngine(load_processor(models[0].folder), Options(eager=True, max_batch=32))
    await made.start()
    yield made
    await made.close()


_published = iter(range(1, 10_000))


async def publish(engine: VllmEngine, model: Loaded, **more: Any) -> Version:
    """The weights of `model` under the next version."""
    version = Version("run", next(_published), model.folder.name)
    await engine.update(Update(version, weights_to_bytes(model.model), **more))
    return version


def prompt(model: Loaded, words: str, pictures: list[int], sampling: Sampling) -> Prompt:
    images = [model.images.encode(tiny_checkpoints.png(p, 96, 96 + 32 * (p % 3))) for p in pictures]
    parts: list[Part] = [Text(words)]
    for image in images:
        parts += [Picture(image.digest), Text("then")]
    turns = [Turn("system", (Text("be brief"),)), Turn("user", tuple(parts))]
    ids = model.chat.encode(turns, [image.tokens for image in images])
    return Prompt(ids, images, sampling)


def mixed(model: Loaded, temperature: float) -> list[Prompt]:
    shown: list[list[int]] = [[], [0], [1, 2], [0, 0], [2], [1, 0, 2], []]
    return [
        prompt(model, "tap " * (i + 1), pictures, Sampling(temperature, 6 + 3 * i, seed=i))
        for i, pictures in enumerate(shown)
    ]


def reference(model: Loaded, one: Prompt, answer: Answer) -> list[float]:
    """Teacher-forced, float32, by the library's own forward pass."""
    with torch.no_grad():
        scores = modeling_reference.logprobs(
            model, one.ids + answer.token_ids, one.images, one.sampling.temperature or 1.0
        )
    return scores[-len(answer.token_ids) :].tolist()


def report(what: str, deltas: list[float]) -> None:
    print(
        f"\n{what}: |delta log p| mean {sum(deltas) / len(deltas):.2e}, "
        f"max {max(deltas):.2e}, {len(deltas)} tokens"
    )


def ours(model: Loaded, one: Prompt) -> Answer:
    return generate(model, [one], FeatureCache(0))[0]


async def together(engine: VllmEngine, prompts: list[Prompt]) -> list[Answer]:
    return [a for a, _ in await asyncio.gather(*(engine.generate(p) for p in prompts))]


async def test_greedy_answers_are_those_of_the_other_engine(
    engine: VllmEngine, models: list[Loaded]
) -> None:
    await publish(engine, models[0])
    prompts = mixed(models[0], 0.0)
    deltas = []
    for one, answer in zip(prompts, await together(engine, prompts), strict=True):
        other = ours(models[0], one)
        assert answer.token_ids == other.token_ids
        assert (answer.reason, answer.stop) == (other.reason, other.stop)
        deltas += [abs(a - b) for a, b in zip(answer.logprobs, other.logprobs, strict=True)]
        assert answer.logprobs == pytest.approx(reference(models[0], one, answer), abs=1e-3)
    report("greedy, vllm to transformers", deltas)


async def test_sampled_answers_score_as_the_full_forward_pass_does(
    engine: VllmEngine, models: list[Loaded]
) -> None:
    await publish(engine, models[0])
    for temperature in (1.0, 0.6):
        prompts = mixed(models[0], temperature)
        answers = await together(engine, prompts)
        deltas = []
        for one, answer in zip(prompts, answers, strict=True):
            truth = reference(models[0], one, answer)
            deltas += [abs(a - b) for a, b in zip(answer.logprobs, truth, strict=True)]
            assert not set(models[0].placeholders) & set(answer.token_ids)
        report(f"sampled at {temperature}, vllm to teacher-forced float32", deltas)
        assert max(deltas) < 1e-3
        # A request's seed decides, not its company.
        alone = [(await engine.generate(one))[0].token_ids for one in prompts]
        assert alone == [answer.token_ids for answer in answers]
        assert len({tuple(ids) for ids in alone}) == len(alone)


async def test_stop_strings_are_kept_whole_and_ends_are_known(
    engine: VllmEngine, models: list[Loaded]
) -> None:
    await publish(engine, models[0])
    model = models[0]
    stops, ends = 0, 0
    for seed in range(12):
        free = ours(model, prompt(model, "think", [0], Sampling(1.0, 40, seed=seed)))
        text = model.chat.decode(free.token_ids)
        readable = [c for c in text[1:] if c.isascii() and c.isalnum()]
        stop = (readable[0],) if readable else ()
        one = prompt(model, "think", [0], Sampling(0.0, 40, stop, seed))
        (answer,) = await together(engine, [one])
        other = ours(model, one)
        assert (answer.token_ids, answer.reason, answer.stop) == (
            other.token_ids,
            other.reason,
            other.stop,
        )
        stops += answer.reason is FinishReason.STOP
    assert stops > 0
    hot = [prompt(model, "go", [], Sampling(2.0, 100, seed=seed)) for seed in range(60)]
    for answer in await together(engine, hot):
        if answer.reason is FinishReason.END:
            ends += 1
            assert answer.token_ids[-1] in model.end_ids
            assert not model.end_ids & set(answer.token_ids[:-1])
        else:
            assert len(answer.token_ids) == 100
    assert ends > 0
    with pytest.raises(InvalidRequest, match="temperature"):
        await engine.generate(prompt(model, "go", [], Sampling(3.0, 4)))


async def test_siblings_share_their_prompt_and_a_cancelled_one_is_forgotten(
    engine: VllmEngine, models: list[Loaded]
) -> None:
    await publish(engine, models[0])
    model = models[0]
    samples = [prompt(model, "go " * 90, [0, 1], Sampling(1.0, 8, seed=s)) for s in range(4)]
    answers = await together(engine, samples)
    assert len({tuple(a.token_ids) for a in answers}) == 4
    from services.policy.vllm_llm import last, parameters_for, prompt_for

    shown = [model.images.picture(image) for image in samples[0].images]
    data = prompt_for(model, samples[0], shown)
    out = await last(
        engine._llm.generate(data, parameters_for(model, samples[0].sampling), "again")
    )
    assert out.num_cached_tokens >= 64
    long = prompt(model, "go", [], Sampling(1.0, 900, seed=3))
    call = asyncio.create_task(engine.generate(long))
    while not engine._llm.get_num_unfinished_requests():
        await asyncio.sleep(0)
    call.cancel()
    with contextlib.suppress(asyncio.CancelledError):
        await call
    assert engine._llm.get_num_unfinished_requests() == 0
    assert engine.queued == 0


async def test_answers_in_flight_are_of_one_version_each(
    engine: VllmEngine, models: list[Loaded]
) -> None:
    first = await publish(engine, models[0])
    base = models[0]
    prompts = [prompt(base, "scroll " * (i % 5), [i % 3], Sampling(0.0, 24)) for i in range(15)]
    expected = {
        model.folder.name: [ours(model, one).token_ids for one in prompts] for model in models
    }
    calls = [asyncio.create_task(engine.generate(prompts[i % 15])) for i in range(100)]
    while not engine._llm.get_num_unfinished_requests():
        await asyncio.sleep(0)
    later = [await publish(engine, model) for model in models[1:]]
    answered = await asyncio.gather(*calls)
    for i, (answer, version) in enumerate(answered):
        assert version in (first, *later)
        assert answer.token_ids == expected[version.digest][i % 15]
    last_answer, version = await engine.generate(prompts[1])
    assert version == later[-1]
    assert last_answer.token_ids == expected[models[-1].folder.name][1]


async def test_an_update_may_end_what_is_running(engine: VllmEngine, models: list[Loaded]) -> None:
    await publish(engine, models[0])
    long = prompt(models[0], "go", [], Sampling(1.0, 900, seed=3))
    call = asyncio.create_task(engine.generate(long))
    while not engine._llm.get_num_unfinished_requests():
        await asyncio.sleep(0)
    version = await publish(engine, models[1], abort=True)
    with pytest.raises(StalePolicyVersion, match=f"update to version {version.version}"):
        await call


async def test_bad_weights_are_refused_and_the_old_ones_answer(
    engine: VllmEngine, models: list[Loaded]
) -> None:
    for model in (models[3], models[0]):  # the output head is new with every version
        version = await publish(engine, model, probe=probe_logprobs(model))
    ours_, theirs = await engine._weights.probe(), probe_logprobs(models[0])
    report("probe, vllm to transformers", [abs(a - b) for a, b in zip(ours_, theirs, strict=True)])
    one = prompt(models[0], "tap", [0, 1], Sampling(0.0, 16))
    before = (await engine.generate(one))[0].token_ids
    good = weights_to_bytes(models[1].model)
    name = "model.language_model.norm.weight"
    spoiled, misshapen = parse(good), parse(good)
    spoiled[name][0] = torch.nan
    misshapen[name] = misshapen[name][:-1].clone()
    cases: list[tuple[bytes, Any, str]] = [
        (b"junk", (), "not a safetensors file"),
        (good[:-100], (), "not a safetensors file"),
        (serialize(spoiled), (), "not finite"),
        (serialize(misshapen), (), "has shape"),
        (good, probe_logprobs(models[2]), "score the probe"),
    ]
    for data, probe, words in cases:
        with pytest.raises(BadCheckpoint, match=words):
            await engine.update(Update(Version("run", 9_999, words), data, probe=probe))
        answer, now = await engine.generate(one)
        assert (answer.token_ids, now) == (before, version)
    transfer = NcclTransfer("127.0.0.1", 1, 2, (TensorSpec(name, "float32", (64,)),))
    with pytest.raises(InvalidRequest, match="without NCCL"):
        await engine.update(Update(Version("run", 9_999, "nccl"), transfer=transfer))


async def test_an_adapter_is_merged_into_the_checkpoint(
    engine: VllmEngine, models: list[Loaded]
) -> None:
    base, target = models[0], "model.language_model.layers.1.mlp.down_proj"
    generator = torch.Generator().manual_seed(5)
    down, up = (torch.randn(shape, generator=generator) * 0.3 for shape in ((4, 128), (64, 4)))
    names = (f"base_model.model.{target}.lora_{x}.weight" for x in "AB")
    config = json.dumps({"r": 4, "lora_alpha": 8})
    data = serialize(dict(zip(names, (down, up), strict=True)), {"adapter_config": config})
    merged = load(base.folder)
    with torch.no_grad():
        merged.model.get_submodule(target).weight += 2.0 * up @ down
    await publish(engine, models[2])
    version = Version("run", next(_published), "adapter")
    await engine.update(Update(version, data, probe=probe_logprobs(merged)))
    one = prompt(base, "tap", [0, 1], Sampling(0.0, 16))
    answer, now = await engine.generate(one)
    assert now == version
    assert answer.token_ids == ours(merged, one).token_ids != ours(base, one).token_ids
