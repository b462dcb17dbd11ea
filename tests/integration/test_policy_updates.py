"""Updates under load over real gRPC, Redis and blobs: each answer of one version, none lost."""

import asyncio
import json
import signal
from collections.abc import AsyncIterator, Iterator
from contextlib import AsyncExitStack
from pathlib import Path

import pytest
import torch
from safetensors.torch import load as parse
from safetensors.torch import save as serialize

from services.policy.app import registration
from services.policy.decoding import generate
from services.policy.engine import Prompt
from services.policy.features import FeatureCache
from services.policy.settings import PolicySettings
from tests import tiny_checkpoints
from tests.processes import service_process
from tests.redis_server import RedisServer
from wmkit.blobs import digest, open_blobs
from wmkit.clients.policy import PolicyClient
from wmkit.domain.errors import (
    BadCheckpoint,
    CorruptBlob,
    InvalidRequest,
    NotFound,
    StalePolicyVersion,
    WMError,
)
from wmkit.domain.generation import NcclTransfer, Picture, Sampling, TensorSpec, Text, Turn
from wmkit.modeling import Loaded, load, probe_logprobs, weights_to_bytes
from wmkit.ports import BlobStore
from wmkit.rpc.server import running

PICTURES = [tiny_checkpoints.png(i) for i in range(3)]
REQUESTS = [
    (
        (Turn("user", (Text("go " * (i % 4 + 1)), Picture(digest(PICTURES[i % 3])))),),
        Sampling(1.0, 6 + i % 7, (), seed=i),
    )
    for i in range(100)
]
NORM = "model.language_model.norm.weight"


@pytest.fixture(scope="module")
def models(tmp_path_factory: pytest.TempPathFactory) -> list[Loaded]:
    """The checkpoint that is served, and three versions to come."""
    return [load(tiny_checkpoints.make(tmp_path_factory.mktemp(f"v{i}"), seed=i)) for i in range(4)]


@pytest.fixture(scope="module")
def expected(models: list[Loaded]) -> list[list[tuple[int, ...]]]:
    """What each version answers to each request, computed without a service."""
    out = []
    for model in models:
        prompts = []
        for turns, sampling in REQUESTS:
            part = turns[0].parts[1]
            assert isinstance(part, Picture)
            data = next(p for p in PICTURES if digest(p) == part.digest)
            image = model.images.encode(data)
            prompts.append(Prompt(model.chat.encode(turns, [image.tokens]), [image], sampling))
        answers = generate(model, prompts, FeatureCache(1 << 20))
        out.append([tuple(a.token_ids) for a in answers])
    for other in out[1:]:  # else a mixed-up version could not be told
        assert sum(a == b for a, b in zip(out[0], other, strict=True)) < 5
    return out


@pytest.fixture
def redis(tmp_path: Path) -> Iterator[RedisServer]:
    server = RedisServer(tmp_path).start()
    yield server
    server.kill()


@pytest.fixture
async def blobs(tmp_path: Path) -> BlobStore:
    store = open_blobs(str(tmp_path / "blobs"))
    for picture in PICTURES:
        await store.put(picture)
    return store


@pytest.fixture
async def client(
    redis: RedisServer, tmp_path: Path, blobs: BlobStore, models: list[Loaded]
) -> AsyncIterator[PolicyClient]:
    settings = PolicySettings(
        port=0,
        drain_pause_s=0.0,
        redis_url=redis.url,
        blobs=str(tmp_path / "blobs"),
        checkpoint=str(models[0].folder),
        max_batch=8,
    )
    resources = AsyncExitStack()
    register = registration(settings, resources)
    async with (
        running(settings, "policy", register, resources.aclose) as server,
        PolicyClient(server.address) as client,
    ):
        yield client


async def test_each_of_100_answers_in_flight_is_of_one_of_the_versions_that_arrive(
    client: PolicyClient,
    blobs: BlobStore,
    models: list[Loaded],
    expected: list[list[tuple[int, ...]]],
) -> None:
    weights = [await blobs.put(weights_to_bytes(model.model)) for model in models]
    await client.update_weights("run", 0, weights[0])
    calls = [
        asyncio.create_task(client.generate(turns, sampling, policy_id="run"))
        for turns, sampling in REQUESTS
    ]
    for version in (1, 2, 3):
        # Once a part has been answered, and the rest still waits or runs.
        await asyncio.wait(calls[: 20 * version])
        probe = probe_logprobs(models[version])
        assert await client.update_weights("run", version, weights[version], probe=probe) == version
    answers = await asyncio.gather(*calls)
    assert len(answers) == 100
    for i, answer in enumerate(answers):
        assert answer.policy_id == "run"
        assert answer.token_ids == expected[answer.version][i], (i, answer.version)
    assert {answer.version for answer in answers} == {0, 1, 2, 3}


async def test_an_update_that_aborts_ends_running_answers_and_no_waiting_one(
    client: PolicyClient, blobs: BlobStore, models: list[Loaded]
) -> None:
    weights = [await blobs.put(weights_to_bytes(model.model)) for model in models[:2]]
    await client.update_weights("run", 0, weights[0])
    turns, _ = REQUESTS[0]
    long = [Sampling(1.0, 900, (), seed=s) for s in range(12)]
    calls = [asyncio.create_task(client.generate(turns, s, policy_id="run")) for s in long]
    while (await client.info()).queued < 4:  # 8 of 12 fit the batch
        pass
    await client.update_weights("run", 1, weights[1], abort=True)
    done = await asyncio.gather(*calls, return_exceptions=True)
    stale = [d for d in done if isinstance(d, StalePolicyVersion)]
    late = [d for d in done if not isinstance(d, BaseException)]
    assert len(stale) + len(late) == 12
    assert stale
    assert all("ended by the update to version 1" in error.message for error in stale)
    assert {answer.version for answer in late if len(answer.token_ids) > 1} <= {0, 1}
    assert any(answer.version == 1 for answer in late)


async def test_bad_weights_are_refused_and_the_old_version_goes_on(
    client: PolicyClient, blobs: BlobStore, models: list[Loaded], tmp_path: Path
) -> None:
    good = weights_to_bytes(models[1].model)
    await client.update_weights("run", 1, await blobs.put(good))
    turns, sampling = REQUESTS[0]
    before = await client.generate(turns, sampling, policy_id="run")
    nan, narrow, lacking = parse(good), parse(good), parse(good)
    nan[NORM][3] = torch.nan
    narrow[NORM] = narrow[NORM][:-1].clone()
    del lacking[NORM]
    corrupt = await blobs.put(good + b" ")
    (tmp_path / "blobs" / corrupt[:2] / corrupt[2:]).write_bytes(good[:-1] + b"?")
    outside = tmp_path / "outside.safetensors"
    outside.write_bytes(good)
    cases: list[tuple[str, type[WMError], str]] = [
        (corrupt, CorruptBlob, "is damaged"),
        (await blobs.put(good[: len(good) // 2]), BadCheckpoint, "not a safetensors file"),
        (await blobs.put(serialize(nan)), BadCheckpoint, "not finite"),
        (await blobs.put(serialize(narrow)), BadCheckpoint, "has shape"),
        (await blobs.put(serialize(lacking)), BadCheckpoint, "lack"),
        (await blobs.put(b"\x80\x04pickle"), BadCheckpoint, "not a safetensors file"),
        (str(outside), InvalidRequest, "is no digest"),
        ("../outside.safetensors", InvalidRequest, "is no digest"),
        ("f" * 64, NotFound, "there are no weights"),
        ("", InvalidRequest, "give weights_digest or nccl"),
    ]
    for weights, error, words in cases:
        with pytest.raises(error, match=words):
            await client.update_weights("run", 2, weights)
        after = await client.generate(turns, sampling, policy_id="run")
        assert (after.version, after.token_ids) == (1, before.token_ids)
    other = await blobs.put(weights_to_bytes(models[2].model))
    with pytest.raises(BadCheckpoint, match="score the probe"):
        await client.update_weights("run", 2, other, probe=probe_logprobs(models[3]))
    transfer = NcclTransfer("127.0.0.1", 1, 2, (TensorSpec(NORM, "float32", (64,)),))
    with pytest.raises(InvalidRequest, match="cannot receive weights by NCCL"):
        await client.receive_weights("run", 2, transfer)
    after = await client.generate(turns, sampling, policy_id="run")
    assert (after.version, after.logprobs) == (1, before.logprobs)
    assert await client.update_weights("run", 2, other, probe=probe_logprobs(models[2])) == 2


async def test_two_runs_never_answer_for_each_other(
    client: PolicyClient,
    blobs: BlobStore,
    models: list[Loaded],
    expected: list[list[tuple[int, ...]]],
) -> None:
    """The same version numbers, published in turn while both ask: own weights, or ABORTED."""
    mine = {"a": 1, "b": 2}
    weights = {run: await blobs.put(weights_to_bytes(models[i].model)) for run, i in mine.items()}

    async def play(run: str) -> int:
        answered = 0
        for i, (turns, sampling) in enumerate(REQUESTS[:30]):
            try:
                answer = await client.generate(turns, sampling, policy_id=run, min_version=1)
            except StalePolicyVersion:
                continue
            assert answer.policy_id == run
            assert answer.token_ids == expected[mine[run]][i]
            answered += 1
        return answered

    async def publish() -> None:
        for n in range(1, 6):
            for run in ("a", "b"):
                await client.update_weights(run, n, weights[run])

    await client.update_weights("a", 0, weights["a"])
    a, b, _ = await asyncio.gather(play("a"), play("b"), publish())
    assert a + b > 0
    assert ((await client.info()).policy_id, (await client.info()).version) == ("b", 5)


async def test_killed_it_comes_back_with_the_last_version_before_it_serves(
    redis: RedisServer,
    blobs: BlobStore,
    models: list[Loaded],
    expected: list[list[tuple[int, ...]]],
    tmp_path: Path,
) -> None:
    environment = {
        "WMR1_REDIS_URL": redis.url,
        "WMR1_BLOBS": str(tmp_path / "blobs"),
        "WMR1_CHECKPOINT": str(models[0].folder),
    }
    weights = [await blobs.put(weights_to_bytes(model.model)) for model in models]
    turns, sampling = REQUESTS[0]
    async with service_process("policy", **environment) as (address, process):
        async with PolicyClient(address) as client:
            for version in (1, 2):
                await client.update_weights("run", version, weights[version])
            unanswered = asyncio.create_task(client.generate(turns, Sampling(1.0, 900)))
            while (await client.info()).version != 2:
                pass
            process.send_signal(signal.SIGKILL)
            with pytest.raises(WMError):
                await unanswered
        await process.wait()
    # The address is announced when it is SERVING, so the first call must find the version.
    async with (
        service_process("policy", **environment) as (address, _),
        PolicyClient(address) as client,
    ):
        answer = await client.generate(turns, sampling, policy_id="run", min_version=2)
    assert answer.version == 2
    assert answer.token_ids == expected[2][0]


async def test_an_adapter_alone_may_be_the_update(
    client: PolicyClient, blobs: BlobStore, models: list[Loaded]
) -> None:
    target = "model.language_model.layers.1.mlp.down_proj"
    generator = torch.Generator().manual_seed(5)
    down, up = (torch.randn(shape, generator=generator) * 0.3 for shape in ((4, 128), (64, 4)))
    config = json.dumps({"r": 4, "lora_alpha": 8})
    data = serialize(
        {
            f"base_model.model.{target}.lora_A.weight": down,
            f"base_model.model.{target}.lora_B.weight": up,
        },
        {"adapter_config": config},
    )
    merged = load(models[0].folder)
    with torch.no_grad():
        merged.model.get_submodule(target).weight += 2.0 * up @ down
    weights = await blobs.put(data)
    assert await client.update_weights("run", 1, weights, probe=probe_logprobs(merged)) == 1
    turns, sampling = REQUESTS[0]
    answer = await client.generate(turns, sampling, policy_id="run")
    part = turns[0].parts[1]
    assert isinstance(part, Picture)
    image = merged.images.encode(PICTURES[0])
    one = Prompt(merged.chat.encode(turns, [image.tokens]), [image], sampling)
    assert list(answer.token_ids) == generate(merged, [one], FeatureCache(0))[0].token_ids
