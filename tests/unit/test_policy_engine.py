"""The engine: versions, the queue, updates between batches, callers that leave, failures."""

import asyncio
import threading
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest
import torch

from services.policy import batching as module
from services.policy.batching import BatchEngine, Limits
from services.policy.decoding import generate
from services.policy.engine import Answer, Prompt, Update
from services.policy.features import FeatureCache
from services.policy.versions import Version
from tests import tiny_checkpoints
from wmkit.domain.errors import (
    BadCheckpoint,
    EngineDown,
    InvalidRequest,
    Overloaded,
    StalePolicyVersion,
)
from wmkit.domain.generation import Picture, Sampling, Text, Turn
from wmkit.modeling import Loaded, load, weights_to_bytes


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tiny_checkpoints.make(tmp_path_factory.mktemp("tiny"))


@pytest.fixture(scope="module")
def other_weights(tmp_path_factory: pytest.TempPathFactory) -> bytes:
    other = load(tiny_checkpoints.make(tmp_path_factory.mktemp("other"), seed=1))
    return weights_to_bytes(other.model)


@pytest.fixture
def loaded(folder: Path) -> Loaded:
    return load(folder)


def prompt(loaded: Loaded, words: str = "go", *, new: int = 4, seed: int = 0) -> Prompt:
    image = loaded.images.encode(tiny_checkpoints.png(1))
    turns = [Turn("user", (Text(words), Picture(image.digest)))]
    return Prompt(loaded.chat.encode(turns, [image.tokens]), [image], Sampling(1.0, new, (), seed))


@asynccontextmanager
async def running(loaded: Loaded, **limits: Any) -> AsyncIterator[BatchEngine]:
    engine = BatchEngine(loaded, Limits(**{"window_s": 0.0, **limits}))
    await engine.start()
    try:
        yield engine
    finally:
        await engine.close()


class Gate:
    """Stands before the real `generate`: batches wait in the model's thread until opened."""

    def __init__(self) -> None:
        self.rows: list[int] = []
        self.entered = threading.Semaphore(0)
        self.opened = threading.Semaphore(0)

    def __call__(
        self,
        loaded: Loaded,
        prompts: Sequence[Prompt],
        features: FeatureCache,
        abandoned: Callable[[int], bool],
        prefilled: Callable[[], None],
    ) -> list[Answer]:
        self.rows.append(len(prompts))
        self.entered.release()
        assert self.opened.acquire(timeout=30)
        return generate(loaded, prompts, features, abandoned, prefilled)

    async def wait(self) -> None:
        assert await asyncio.to_thread(self.entered.acquire, timeout=30)


@pytest.fixture
def gate(monkeypatch: pytest.MonkeyPatch) -> Gate:
    gate = Gate()
    monkeypatch.setattr(module, "generate", gate)
    return gate


async def until(condition: Callable[[], bool]) -> None:
    while not condition():
        await asyncio.sleep(0)


async def test_requests_that_wait_together_are_answered_together(
    loaded: Loaded, gate: Gate
) -> None:
    alone = [generate(loaded, [prompt(loaded, seed=s)], FeatureCache(0))[0] for s in range(5)]
    async with running(loaded, batch=3) as engine:
        first = asyncio.create_task(engine.generate(prompt(loaded)))
        await gate.wait()
        rest = [asyncio.create_task(engine.generate(prompt(loaded, seed=s))) for s in range(1, 5)]
        await until(lambda: engine.queued == 4)
        for _ in range(3):
            gate.opened.release()
        answers = [(await task)[0] for task in (first, *rest)]
    assert gate.rows == [1, 3, 1]
    assert [a.token_ids for a in answers] == [a.token_ids for a in alone]


async def test_a_batch_stays_inside_its_token_budget(loaded: Loaded, gate: Gate) -> None:
    short, long = prompt(loaded), prompt(loaded, "go " * 40)
    size = len(long.ids) + 4
    async with running(loaded, batch_tokens=3 * size - 1) as engine:
        first = asyncio.create_task(engine.generate(short))
        await gate.wait()
        rest = [asyncio.create_task(engine.generate(p)) for p in (short, long, short, short)]
        await until(lambda: engine.queued == 4)
        for _ in range(3):
            gate.opened.release()
        await asyncio.gather(first, *rest)
    # Padded to the long one, only two fit: (short, long) and then (short, short).
    assert gate.rows == [1, 2, 2]


async def test_the_event_loop_stays_free_and_updates_wait_for_the_batch(
    loaded: Loaded, gate: Gate, other_weights: bytes
) -> None:
    before = generate(loaded, [prompt(loaded, new=12)], FeatureCache(0))[0]
    async with running(loaded) as engine:
        call = asyncio.create_task(engine.generate(prompt(loaded, new=12)))
        await gate.wait()
        update = asyncio.create_task(engine.update(Update(Version("run", 1, "d"), other_weights)))
        later = asyncio.create_task(engine.generate(prompt(loaded, new=12)))
        await until(lambda: engine.queued == 1)
        assert engine.current == Version()
        gate.opened.release(2)
        answer, version = await call
        assert (answer.token_ids, version) == (before.token_ids, Version())
        await update
        after, version = await later
        # The update came before the request that was queued behind it.
        assert version == Version("run", 1, "d")
        assert after.token_ids != before.token_ids
        # Features of the old weights are gone too: a fresh cache gives the same answer.
        fresh = generate(loaded, [prompt(loaded, new=12)], FeatureCache(0))[0]
        assert after.logprobs == pytest.approx(fresh.logprobs, abs=1e-6)


async def test_versions_rise_within_a_policy_and_start_anew_with_another(
    loaded: Loaded, other_weights: bytes
) -> None:
    async with running(loaded) as engine:

        async def publish(policy_id: str, version: int, digest: str = "d") -> None:
            await engine.update(Update(Version(policy_id, version, digest), other_weights))

        await publish("a", 3)
        with pytest.raises(StalePolicyVersion, match="older than the loaded 3"):
            await publish("a", 2)
        with pytest.raises(InvalidRequest, match="loaded with other weights"):
            await publish("a", 3, "e")
        await publish("a", 3)
        await publish("a", 7)
        await publish("b", 0)
        assert engine.current == Version("b", 0, "d")


async def test_only_the_policy_and_version_asked_for_answer(
    loaded: Loaded, other_weights: bytes
) -> None:
    async with running(loaded) as engine:
        with pytest.raises(StalePolicyVersion, match="'a' is not loaded, but the checkpoint's own"):
            await engine.generate(prompt(loaded), "a")
        await engine.update(Update(Version("a", 3, "d"), other_weights))
        for policy_id, least in (("a", 3), ("a", 0), ("", 0), ("", 3)):
            _, version = await engine.generate(prompt(loaded), policy_id, least)
            assert version == Version("a", 3, "d")
        with pytest.raises(StalePolicyVersion, match="version 4 is not loaded yet, only 3"):
            await engine.generate(prompt(loaded), "a", 4)
        with pytest.raises(StalePolicyVersion, match="'b' is not loaded, but policy 'a'"):
            await engine.generate(prompt(loaded), "b")


async def test_a_request_whose_policy_is_replaced_while_it_waits_is_stale(
    loaded: Loaded, gate: Gate, other_weights: bytes
) -> None:
    async with running(loaded) as engine:
        await engine.update(Update(Version("a", 1, "d"), other_weights))
        first = asyncio.create_task(engine.generate(prompt(loaded), "a"))
        await gate.wait()
        update = asyncio.create_task(engine.update(Update(Version("b", 0, "d"), other_weights)))
        waiting = asyncio.create_task(engine.generate(prompt(loaded), "a"))
        await until(lambda: engine.queued == 1)
        gate.opened.release()
        assert (await first)[1] == Version("a", 1, "d")
        await update
        with pytest.raises(StalePolicyVersion):
            await waiting


async def test_bad_weights_change_neither_answers_nor_version(loaded: Loaded) -> None:
    async with running(loaded) as engine:
        before, _ = await engine.generate(prompt(loaded))
        with pytest.raises(BadCheckpoint):
            await engine.update(Update(Version("a", 1, "d"), b"junk"))
        after, version = await engine.generate(prompt(loaded))
        assert (after, version) == (before, Version())


async def test_a_full_queue_refuses_with_a_time_to_come_back(loaded: Loaded, gate: Gate) -> None:
    async with running(loaded, queue=2, batch=1) as engine:
        tasks = [asyncio.create_task(engine.generate(prompt(loaded)))]
        await gate.wait()
        tasks += [asyncio.create_task(engine.generate(prompt(loaded))) for _ in range(2)]
        await until(lambda: engine.queued == 2)
        with pytest.raises(Overloaded, match="2 requests are waiting") as caught:
            await engine.generate(prompt(loaded))
        assert caught.value.retry_after_s > 0
        gate.opened.release(3)
        await asyncio.gather(*tasks)


async def test_a_caller_that_leaves_frees_its_place(loaded: Loaded, gate: Gate) -> None:
    async with running(loaded, queue=1) as engine:
        first = asyncio.create_task(engine.generate(prompt(loaded, new=500)))
        await gate.wait()
        second = asyncio.create_task(engine.generate(prompt(loaded)))
        await until(lambda: engine.queued == 1)
        second.cancel()
        await until(second.done)
        assert engine.queued == 0
        # Nor does the model go on for a caller who left while its batch ran.
        first.cancel()
        await until(first.done)
        third = asyncio.create_task(engine.generate(prompt(loaded)))
        gate.opened.release(2)
        answer, _ = await third
        assert len(answer.token_ids) == 4
    assert gate.rows == [1, 1]


async def test_a_prompt_without_room_for_its_answer_is_refused(loaded: Loaded) -> None:
    async with running(loaded) as engine:
        with pytest.raises(InvalidRequest, match="exceed the model's context of 1024") as caught:
            await engine.generate(prompt(loaded, new=1020))
        assert caught.value.field == "sampling.max_new_tokens"


async def test_a_failed_batch_is_reported_and_the_next_one_answered(
    loaded: Loaded, monkeypatch: pytest.MonkeyPatch
) -> None:
    failures = iter([RuntimeError("out of memory")])

    def flaky(*args: Any) -> list[Answer]:
        for failure in failures:
            raise failure
        return generate(*args)

    monkeypatch.setattr(module, "generate", flaky)
    async with running(loaded) as engine:
        with pytest.raises(EngineDown, match="the model failed: RuntimeError"):
            await engine.generate(prompt(loaded))
        assert (await engine.generate(prompt(loaded)))[0].token_ids


async def test_logits_that_are_no_numbers_are_an_error_not_an_answer(loaded: Loaded) -> None:
    async with running(loaded) as engine:
        with torch.no_grad():
            loaded.model.model.language_model.norm.weight.fill_(torch.inf)
        with pytest.raises(EngineDown, match="version 0 gives logits that are NaN"):
            await engine.generate(prompt(loaded))


async def test_closing_ends_calls_that_run_and_calls_that_wait(loaded: Loaded, gate: Gate) -> None:
    async with running(loaded, batch=1) as engine:
        first = asyncio.create_task(engine.generate(prompt(loaded)))
        await gate.wait()
        second = asyncio.create_task(engine.generate(prompt(loaded)))
        await until(lambda: engine.queued == 1)
        gate.opened.release()
        await engine.close()
        for call in (first, second):
            with pytest.raises(EngineDown, match="stopping"):
                await call
