"""The policy service over real gRPC, with a real Redis and a blob folder."""

import asyncio
import os
import re
import signal
import sys
from asyncio.subprocess import PIPE
from collections.abc import AsyncIterator, Iterator
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path
from typing import Any

import grpc
import pytest
import torch
from safetensors.torch import load as parse
from safetensors.torch import save as serialize
from wmr1.policy.v1 import policy_pb2 as pb
from wmr1.policy.v1 import policy_pb2_grpc as rpc

from services.policy.app import registration
from services.policy.settings import PolicySettings
from tests import modeling_reference, tiny_checkpoints
from tests.processes import free_port
from tests.redis_server import RedisServer
from wmkit.blobs import digest, open_blobs
from wmkit.clients.policy import PolicyClient
from wmkit.domain.errors import (
    BadCheckpoint,
    InvalidRequest,
    NotFound,
    StalePolicyVersion,
    WMError,
)
from wmkit.domain.generation import FinishReason, Picture, Sampling, Text, Tokens, Turn
from wmkit.modeling import load, weights_to_bytes
from wmkit.ports import BlobStore
from wmkit.rpc.health import wait_serving
from wmkit.rpc.server import running

PICTURE = tiny_checkpoints.png(1)
SCREEN = Picture(digest(PICTURE))
TURNS = [Turn("system", (Text("be brief"),)), Turn("user", (Text("open Wi-Fi"), SCREEN))]
SAMPLED = Sampling(1.0, 12, (), 7)


class Service:
    """Starts the service on one checkpoint, Redis and blob folder, as often as a test wants."""

    def __init__(self, folder: Path, redis: RedisServer, root: Path) -> None:
        self.folder = folder
        self.settings: dict[str, Any] = {
            "port": 0,
            "drain_pause_s": 0.0,
            "redis_url": redis.url,
            "blobs": str(root / "blobs"),
            "checkpoint": str(folder),
        }
        self.blobs: BlobStore = open_blobs(self.settings["blobs"])
        self.address = ""

    @asynccontextmanager
    async def run(self, **more: Any) -> AsyncIterator[PolicyClient]:
        settings, resources = PolicySettings(**(self.settings | more)), AsyncExitStack()
        register = registration(settings, resources)
        async with running(settings, "policy", register, resources.aclose) as server:
            self.address = server.address
            async with PolicyClient(server.address) as client:
                yield client


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tiny_checkpoints.make(tmp_path_factory.mktemp("tiny"))


@pytest.fixture(scope="module")
def weights(tmp_path_factory: pytest.TempPathFactory) -> bytes:
    """Of another checkpoint of the same shape."""
    return weights_to_bytes(load(tiny_checkpoints.make(tmp_path_factory.mktemp("w"), seed=1)).model)


@pytest.fixture
def redis(tmp_path: Path) -> Iterator[RedisServer]:
    server = RedisServer(tmp_path).start()
    yield server
    server.kill()


@pytest.fixture
async def service(folder: Path, redis: RedisServer, tmp_path: Path) -> Service:
    made = Service(folder, redis, tmp_path)
    await made.blobs.put(PICTURE)
    return made


async def test_an_answer_carries_all_that_training_needs(service: Service, folder: Path) -> None:
    async with service.run() as client:
        answer = await client.generate(TURNS, SAMPLED)
        info = await client.info()
    loaded = load(folder)
    image = loaded.images.encode(PICTURE)
    assert list(answer.prompt_token_ids) == loaded.chat.encode(TURNS, [image.tokens])
    whole = [*answer.prompt_token_ids, *answer.token_ids]
    with torch.no_grad():
        reference = modeling_reference.logprobs(loaded, whole, [image])
    assert answer.logprobs == pytest.approx(reference[-12:].tolist(), abs=2e-5)
    assert answer.text == loaded.tokenizer.decode(answer.token_ids)
    assert answer.finish_reason is FinishReason.LENGTH
    (seen,) = answer.images
    assert (seen.digest, seen.grid_thw) == (digest(PICTURE), (1, 10, 6))
    assert (seen.width_px, seen.height_px) == (96, 160)
    assert answer.processor == info.processor == loaded.processor_digest
    assert (info.policy_id, info.version, info.queued, info.device) == ("", 0, 0, "cpu")
    assert info.parameters == loaded.model.num_parameters()


async def test_many_callers_at_once_get_what_each_gets_alone(service: Service) -> None:
    async with service.run() as client:
        samplings = [Sampling(1.0, 4 + i, (), i) for i in range(12)]
        together = await asyncio.gather(*(client.generate(TURNS, s) for s in samplings))
        for sampling, answer in zip(samplings, together, strict=True):
            alone = await client.generate(TURNS, sampling)
            assert alone.token_ids == answer.token_ids


async def test_a_picture_may_travel_as_bytes(service: Service) -> None:
    fresh = tiny_checkpoints.png(5)
    turns = [Turn("user", (Text("look"), Picture(digest(fresh))))]
    async with service.run() as client:
        with pytest.raises(NotFound, match=r"turns\[0\].parts\[1\].image: there is no picture"):
            await client.generate(turns, SAMPLED)
        sent = await client.generate(turns, SAMPLED, images={digest(fresh): fresh})
        await service.blobs.put(fresh)
        assert (await client.generate(turns, SAMPLED)).token_ids == sent.token_ids


async def test_a_stopped_thought_goes_on_where_it_stopped(service: Service) -> None:
    async with service.run() as client:
        free = await client.generate(TURNS, Sampling(1.0, 60, (), 7))
        # Broken characters are replaced in the text, so the stop string must be a readable part.
        readable = re.search(r"[!-~]{2}", free.text)
        assert readable is not None
        stop = readable[0]
        first = await client.generate(TURNS, Sampling(1.0, 60, (stop,), 7))
        assert (first.finish_reason, first.stop) == (FinishReason.STOP, stop)
        said = Turn("assistant", (Tokens(first.token_ids),))
        asked = Turn("user", (Text("Imagined screen"), SCREEN))
        second = await client.generate([*TURNS, said, asked], SAMPLED)
        earlier = first.prompt_token_ids + first.token_ids
        assert second.prompt_token_ids[: len(earlier)] == earlier
        assert len(second.images) == 2


async def test_updates_are_loaded_refused_and_remembered(
    service: Service, weights: bytes, folder: Path, tmp_path: Path
) -> None:
    good = await service.blobs.put(weights)
    spoiled = parse(weights)
    spoiled["model.language_model.norm.weight"][0] = torch.nan
    bad = await service.blobs.put(serialize(spoiled))
    async with service.run() as client:
        base = await client.generate(TURNS, SAMPLED)
        with pytest.raises(StalePolicyVersion):
            await client.generate(TURNS, SAMPLED, policy_id="run")
        assert await client.update_weights("run", 4, good) == 4
        mine = await client.generate(TURNS, SAMPLED, policy_id="run", min_version=4)
        assert (mine.policy_id, mine.version) == ("run", 4)
        assert mine.logprobs != base.logprobs
        with pytest.raises(BadCheckpoint, match=r"norm.weight holds values that are not finite"):
            await client.update_weights("run", 5, bad)
        with pytest.raises(NotFound, match="there are no weights 0000"):
            await client.update_weights("run", 5, "0" * 64)
        with pytest.raises(StalePolicyVersion):
            await client.update_weights("run", 3, good)
        assert await client.update_weights("run", 4, good) == 4
        assert await client.generate(TURNS, SAMPLED, policy_id="run") == mine
        with pytest.raises(StalePolicyVersion, match="version 5 is not loaded yet, only 4"):
            await client.generate(TURNS, SAMPLED, policy_id="run", min_version=5)
    async with service.run() as client:
        # A restarted service has loaded the last version before it serves.
        assert await client.generate(TURNS, SAMPLED, policy_id="run", min_version=4) == mine
    # Another kind of model does not see weights that cannot fit it.
    larger = tiny_checkpoints.make(tmp_path / "larger", "qwen25")
    async with service.run(checkpoint=str(larger)) as client:
        assert (await client.info()).version == 0
    # Lost weights do not keep the service down: it says truly what it has.
    async with service.run(blobs=str(tmp_path / "empty")) as client:
        assert ((await client.info()).policy_id, (await client.info()).version) == ("", 0)
        with pytest.raises(StalePolicyVersion):
            await client.generate([TURNS[0]], SAMPLED, policy_id="run", min_version=4)


async def test_a_repeated_request_is_not_sampled_again(service: Service, weights: bytes) -> None:
    async with service.run() as client:
        first = await client.generate(TURNS, SAMPLED, request_id="job-1")
        await client.update_weights("run", 1, await service.blobs.put(weights))
        assert await client.generate(TURNS, SAMPLED, request_id="job-1") == first
        with pytest.raises(InvalidRequest, match="used for another request"):
            await client.generate(TURNS[:1], SAMPLED, request_id="job-1")
        assert (await client.generate(TURNS, SAMPLED, request_id="job-2")).version == 1


async def test_bad_requests_are_one_sentence_and_a_status(service: Service) -> None:
    def request(**changes: Any) -> pb.GenerateRequest:
        parts: list[Any] = changes.pop("parts", [pb.Part(text="hi")])
        turn = pb.Turn(role=pb.ROLE_USER, parts=parts)
        sampling = pb.Sampling(**({"temperature": 1, "max_new_tokens": 4} | changes))
        return pb.GenerateRequest(turns=[turn], sampling=sampling)

    junk = pb.Part(image=pb.ImageRef(data=b"junk"))
    cases = [
        (pb.GenerateRequest(), "turns is empty"),
        (request(max_new_tokens=5000), "exceed the model's context of 1024"),
        (request(temperature=-1), "temperature must be 0 or more"),
        (request(parts=[junk]), "turns[0].parts[0].image: the picture cannot be read"),
        (request(parts=[pb.Part(tokens=pb.Tokens(ids=[9999]))]), "9999 is not in the vocabulary"),
    ]
    async with service.run(), grpc.aio.insecure_channel(service.address) as channel:
        stub = rpc.PolicyServiceStub(channel)
        for bad, sentence in cases:
            with pytest.raises(grpc.aio.AioRpcError) as caught:
                await stub.Generate(bad)
            assert caught.value.code() is grpc.StatusCode.INVALID_ARGUMENT
            assert sentence in caught.value.details()
        with pytest.raises(grpc.aio.AioRpcError) as caught:
            await stub.UpdateWeights(pb.UpdateWeightsRequest(version=1, weights_digest="0" * 64))
        assert caught.value.code() is grpc.StatusCode.INVALID_ARGUMENT
        answer = await stub.Generate(request())
        assert len(answer.token_ids) == 4


async def test_without_redis_it_does_not_start(service: Service, redis: RedisServer) -> None:
    redis.kill()
    with pytest.raises(WMError, match=r"Redis at .*redis.sock cannot be reached"):
        async with service.run():
            pass


async def test_as_a_process_it_serves_and_stops(service: Service) -> None:
    port = free_port()
    async with process(service, port=port) as running:
        address = f"127.0.0.1:{port}"
        await wait_serving(address, 60)
        async with PolicyClient(address) as client:
            call = asyncio.create_task(client.generate(TURNS, SAMPLED))
            assert len((await call).token_ids) == 12
        running.send_signal(signal.SIGTERM)
        assert await asyncio.wait_for(running.wait(), 30) == 0


async def test_a_wrong_checkpoint_folder_is_one_sentence(service: Service, tmp_path: Path) -> None:
    async with process(service, checkpoint=tmp_path / "nowhere") as running:
        _, err = await asyncio.wait_for(running.communicate(), 60)
        assert running.returncode == 2
        assert err.decode().splitlines()[-1] == (
            f"policy: there is no checkpoint folder {tmp_path / 'nowhere'}"
        )
        assert b"Traceback" not in err


@asynccontextmanager
async def process(service: Service, **more: Any) -> AsyncIterator[asyncio.subprocess.Process]:
    values = service.settings | more
    env = {f"WMR1_{name.upper()}": str(value) for name, value in values.items()}
    started = await asyncio.create_subprocess_exec(
        sys.executable, "-m", "services.policy", env={**os.environ, **env}, stderr=PIPE
    )
    try:
        yield started
    finally:
        if started.returncode is None:
            started.kill()
            await started.wait()
