"""A checkpoint in the service's own process: what it says, when it stops, who waits."""

import asyncio
import base64
import io
import json
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from PIL import Image

from services.policy.decoding import Prompt, generate
from services.policy.features import FeatureCache
from services.worldmodel.backends.base import Scene
from services.worldmodel.backends.code2world import Code2World, Code2WorldOptions
from services.worldmodel.backends.gworld import GWorld
from services.worldmodel.backends.pages import Page
from services.worldmodel.engine import Ask, Completion, Endpoint
from services.worldmodel.engine.decoding import Decoder
from services.worldmodel.engine.in_process import InProcess
from services.worldmodel.engine.wire import Refused
from services.worldmodel.learned import loading
from services.worldmodel.learned.settings import LearnedSettings
from tests import speaking_checkpoints, tiny_checkpoints
from wmkit.domain.actions import Back, OpenApp
from wmkit.domain.errors import (
    BadCheckpoint,
    DeadlineExpired,
    EngineDown,
    InvalidRequest,
    Overloaded,
)
from wmkit.domain.generation import Picture, Sampling, Text, Turn
from wmkit.domain.transition import FailureReason
from wmkit.modeling import load
from wmkit.rpc.context import Call, current

HEAD, TAIL = '<!DOCTYPE html><html><div id="render-target">', "</div></html>"
ANSWERS = 3


def png(size: tuple[int, int] = (96, 160)) -> bytes:
    out = io.BytesIO()
    Image.effect_noise(size, 90).convert("RGB").save(out, "PNG")
    return out.getvalue()


PNG = png()


def ask(max_tokens: int, words: str = "tap the red button", **more: Any) -> Ask:
    url = "data:image/png;base64," + base64.b64encode(PNG).decode()
    content = [{"type": "image_url", "image_url": {"url": url}}, {"type": "text", "text": words}]
    messages = [{"role": "system", "content": "fox"}, {"role": "user", "content": content}]
    return Ask(messages, max_tokens, **more)


def now() -> bool:
    return False


@pytest.fixture(scope="module")
def random(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A checkpoint with random weights, whose answers depend on everything it is shown."""
    return tiny_checkpoints.make(tmp_path_factory.mktemp("random") / "tiny")


@pytest.fixture(scope="module")
def page(tmp_path_factory: pytest.TempPathFactory) -> Decoder:
    """Says one page."""
    folder = tmp_path_factory.mktemp("page") / "tiny"
    return Decoder(speaking_checkpoints.make(folder, HEAD, "next", TAIL))


@pytest.fixture(scope="module")
def endless(tmp_path_factory: pytest.TempPathFactory) -> Decoder:
    """Never comes to an end by itself."""
    folder = tmp_path_factory.mktemp("endless") / "tiny"
    return Decoder(speaking_checkpoints.make(folder, HEAD, "bla", end=False))


class Watched:
    """A decoder that is seen at work: `begun` at the first token, `ended` with every error."""

    def __init__(self, decoder: Decoder) -> None:
        self.folder, self.weights = decoder.folder, decoder.weights
        self._decoder = decoder
        self._loop = asyncio.get_running_loop()
        self.begun = asyncio.Event()
        self.calls = 0
        self.ended: list[Exception] = []

    def complete(self, ask: Ask, gone: Callable[[], bool]) -> Completion:
        self.calls += 1

        def asked() -> bool:
            self._loop.call_soon_threadsafe(self.begun.set)
            return gone()

        try:
            return self._decoder.complete(ask, asked)
        except Exception as error:
            self.ended.append(error)
            raise


def test_greedily_it_says_what_the_policy_s_own_decoding_says(random: Path) -> None:
    loaded = load(random)
    image = loaded.images.encode(PNG)
    parts = (Picture(image.digest), Text("tap the red button"))
    ids = loaded.chat.encode([Turn("system", (Text("fox"),)), Turn("user", parts)], [image.tokens])
    (other,) = generate(
        loaded,
        [Prompt(ids, [image], Sampling(temperature=0.0, max_new_tokens=24))],
        FeatureCache(1 << 20),
    )
    found = Decoder(random).complete(ask(24, temperature=0.0), now)
    assert found.tokens == len(other.token_ids)
    spoken = [token for token in other.token_ids if token not in loaded.end_ids]
    assert found.text == loaded.chat.decode(spoken)


def test_it_samples_as_the_checkpoint_says_and_by_the_seed(random: Path, tmp_path: Path) -> None:
    decoder = Decoder(random)
    sampled = {seed: decoder.complete(ask(16, seed=seed, temperature=1.0), now) for seed in (1, 2)}
    assert sampled[1] != sampled[2]
    assert decoder.complete(ask(16, seed=1, temperature=1.0), now) == sampled[1]
    # Of one candidate token sampling can only take the likeliest.
    for file in random.iterdir():
        (tmp_path / file.name).write_bytes(file.read_bytes())
    config = {"do_sample": True, "top_k": 1, "temperature": 0.9}
    (tmp_path / "generation_config.json").write_text(json.dumps(config))
    own = Decoder(tmp_path)
    assert own.complete(ask(16, seed=1), now) == decoder.complete(ask(16, temperature=0.0), now)
    assert own.weights != decoder.weights, "decoding is part of the revision"


async def test_a_page_is_a_state_and_its_end_is_no_part_of_it(page: Decoder) -> None:
    client = InProcess(page)
    for world in (Code2World(client), GWorld(client)):
        found = await world.predict_seen(Page(world.screen, html="x"), OpenApp("Clock"), 3, SCENE)
        assert found.value is not None
        assert found.value.html == HEAD + "next" + TAIL
        assert (found.finish_reason, found.tokens) == ("stop", 4)
        assert world.revision.startswith(world.name)
    await client.close()


SCENE = Scene(PNG, "Open the clock.")


async def test_an_answer_cut_at_its_limit_is_truncated(page: Decoder) -> None:
    client = InProcess(page)
    world = Code2World(client, Code2WorldOptions(max_tokens=3))
    found = await world.predict_seen(Page(world.screen, html="x"), Back(), 0, SCENE)
    # All of the document but the end of the turn: only the finish reason can tell.
    assert (found.value, found.reason) == (None, FailureReason.TRUNCATED)
    assert (found.finish_reason, found.tokens) == ("length", 3)
    await client.close()


async def test_a_caller_that_leaves_frees_the_model(endless: Decoder) -> None:
    watched = Watched(endless)
    client = InProcess(watched)  # type: ignore[arg-type]
    step = asyncio.create_task(client.complete(ask(15_000)))
    await watched.begun.wait()
    step.cancel()
    with pytest.raises(asyncio.CancelledError):
        await step
    # Fifteen thousand tokens would take longer than this test may.
    found = await client.complete(ask(2, temperature=0.0))
    assert found == Completion(HEAD + "bla", "length", 2)
    (given_up,) = watched.ended
    assert isinstance(given_up, EngineDown)
    await client.close()


async def test_one_works_some_wait_and_more_are_refused(endless: Decoder) -> None:
    watched = Watched(endless)
    client = InProcess(watched, waiting=2)  # type: ignore[arg-type]
    steps = [asyncio.create_task(client.complete(ask(15_000))) for _ in range(3)]
    await watched.begun.wait()
    with pytest.raises(Overloaded, match="3 requests wait") as caught:
        await client.complete(ask(1))
    assert caught.value.retry_after_s >= 1
    for step in steps:
        step.cancel()
    await asyncio.gather(*steps, return_exceptions=True)
    assert (await client.complete(ask(1))).tokens == 1
    assert watched.calls == 2, "those that left while they waited never reached the model"
    await client.close()


async def test_whose_time_was_up(endless: Decoder) -> None:
    impatient = InProcess(endless, timeout_s=0.05)
    with pytest.raises(EngineDown, match="did not answer within"):
        await impatient.complete(ask(15_000))
    await impatient.close()
    client = InProcess(endless)
    current.set(Call("t", asyncio.get_running_loop().time() + 0.05))
    with pytest.raises(DeadlineExpired):
        await client.complete(ask(15_000))
    await client.close()


async def test_closing_ends_what_is_being_answered(endless: Decoder) -> None:
    watched = Watched(endless)
    client = InProcess(watched)  # type: ignore[arg-type]
    step = asyncio.create_task(client.complete(ask(15_000)))
    await watched.begun.wait()
    await client.close()
    # Never an answer: a cut page would be remembered as truncated.
    with pytest.raises(EngineDown):
        await step
    assert "world-model_0" not in {thread.name for thread in threading.enumerate()}


async def test_a_schema_cannot_be_forced(page: Decoder) -> None:
    client = InProcess(page)
    with pytest.raises(Refused):
        await client.complete(ask(5, schema={"type": "object"}))
    await client.close()


def test_fewer_pixels_and_a_prompt_that_is_too_long(random: Path) -> None:
    """Tokens are merged patches of 32 x 32 pixels."""

    def prompt_tokens(max_pixels: int) -> int:
        decoder = Decoder(random, max_pixels=max_pixels)
        return decoder._loaded.images.encode(PNG).tokens

    assert prompt_tokens(0) == (96 // 32) * (160 // 32)
    assert prompt_tokens(4 * 32 * 32) <= 4
    with pytest.raises(EngineDown, match="context of 1024 tokens"):
        Decoder(random).complete(ask(4, "q" * 1100), now)


def settings(**more: Any) -> LearnedSettings:
    return LearnedSettings(**more)


def test_mistakes_in_the_settings_are_one_sentence(random: Path) -> None:
    with pytest.raises(InvalidRequest, match="both set"):
        loading.gworld(settings(gworld_checkpoint=str(random), gworld_url="http://a:1/v1"))
    with pytest.raises(BadCheckpoint, match="no checkpoint folder"):
        loading.code2world(settings(code2world_checkpoint="/no/such/folder"))
    with pytest.raises(InvalidRequest, match="WMR1_TRANSFORMERS_DEVICE=cuda:77"):
        loading.code2world(
            settings(code2world_checkpoint=str(random), transformers_device="cuda:77")
        )


async def test_equal_weights_are_one_model_wherever_they_lie(random: Path, tmp_path: Path) -> None:
    copy = tmp_path / "copy"
    copy.mkdir()
    for file in random.iterdir():
        (copy / file.name).write_bytes(file.read_bytes())
    one, two = (InProcess(Decoder(folder)) for folder in (random, copy))
    assert one.endpoint.same(two.endpoint)
    assert one.endpoint.model.split("@")[1] == two.endpoint.model.split("@")[1]
    other = tiny_checkpoints.make(tmp_path / "other", seed=1)
    assert not one.endpoint.same(InProcess(Decoder(other)).endpoint)
    server = Endpoint("http://localhost:1/v1", one.endpoint.model)
    assert not one.endpoint.same(server) and not server.same(one.endpoint)
