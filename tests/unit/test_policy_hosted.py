"""A hosted model as a policy: against a server that answers well, cut, with faults, or too long."""

import base64
from collections.abc import AsyncIterator

import pytest

from services.policy.hosted import HostedPolicy, hosted_model
from services.policy.hosted_wire import HostedModel
from services.policy.settings import PolicySettings
from services.rollout.episode import play
from tests import tiny_checkpoints
from tests.openai_server import Answer, Fault, OpenAiServer, Raw, openai_server
from tests.rollout_cases import FINISH, L, R, a_job, a_world, acts, call
from wmkit.blobs import MemoryBlobs, digest
from wmkit.domain.episode import Ending
from wmkit.domain.errors import (
    EngineDown,
    InvalidRequest,
    NotFound,
    Overloaded,
    StalePolicyVersion,
)
from wmkit.domain.generation import FinishReason, Picture, Sampling, Text, Tokens, Turn

PNG = tiny_checkpoints.png(1)
TURNS = [
    Turn("system", (Text("be brief"),)),
    Turn("user", (Text("what now? "), Picture(digest(PNG)))),
]
STOP = Sampling(0.7, 50, ("</call_wm>",), seed=2**40 + 5)


@pytest.fixture
async def server() -> AsyncIterator[OpenAiServer]:
    async with openai_server() as running:
        yield running


def policy(server: OpenAiServer, **more: int) -> HostedPolicy:
    blobs = MemoryBlobs()
    model = HostedModel(server.url, "m", "secret", backoff_s=0.001, **more)
    return HostedPolicy(model, blobs)


async def test_turns_become_messages_and_the_answer_carries_no_log_probabilities(
    server: OpenAiServer,
) -> None:
    server.play(Answer("I tap \u2028 it 🙂"))
    hosted = policy(server)
    answer = await hosted.generate(TURNS, STOP, images={digest(PNG): PNG})
    assert answer.text == "I tap \u2028 it 🙂"
    assert answer.finish_reason is FinishReason.END
    assert answer.logprobs == ()
    (image,) = answer.images
    assert (image.width_px, image.height_px) == (96, 160)  # what the agent's points refer to
    (sent,) = server.requests
    assert sent["messages"][0] == {"role": "system", "content": "be brief"}
    text, picture = sent["messages"][1]["content"]
    assert text == {"type": "text", "text": "what now? "}
    kind, _, data = picture["image_url"]["url"].partition(",")
    assert (kind, base64.b64decode(data)) == ("data:image/png;base64", PNG)
    assert (sent["temperature"], sent["max_tokens"], sent["model"]) == (0.7, 50, "m")
    assert 0 <= sent["seed"] < 2**31
    assert server.headers[0]["authorization"] == "Bearer secret"
    info = await hosted.info()
    assert (info.engine, info.logprobs, info.version) == ("openai", False, 0)


async def test_an_answer_ends_behind_its_stop_string_and_the_server_is_let_go(
    server: OpenAiServer,
) -> None:
    said = "<think>" + "x" * 50 + "<call_wm>wait()</call_wm>"
    server.play(Answer(said + " and much more" * 50))
    hosted = policy(server)
    turns = [TURNS[0]]
    first = await hosted.generate(turns, STOP)
    assert first.text == said
    assert (first.finish_reason, first.stop) == (FinishReason.STOP, "</call_wm>")
    server.play(Answer("</think>ok"))
    continued = [*turns, Turn("assistant", (Tokens(first.token_ids),)), Turn("user", (Text("so"),))]
    second = await hosted.generate(continued, STOP)
    earlier = first.prompt_token_ids + first.token_ids
    assert second.prompt_token_ids[: len(earlier)] == earlier
    assert server.requests[-1]["messages"][1] == {"role": "assistant", "content": said}


async def test_an_answer_cut_at_its_limit_is_told_apart(server: OpenAiServer) -> None:
    server.play(Answer("and then", "length"))
    answer = await policy(server).generate([TURNS[0]], STOP)
    assert answer.finish_reason is FinishReason.LENGTH


async def test_faults_are_retried_and_then_typed(server: OpenAiServer) -> None:
    server.play(Fault(500), Answer("half", hang_up_after=0), Answer("well"))
    assert (await policy(server).generate([TURNS[0]], STOP)).text == "well"
    assert len(server.requests) == 3
    server.play(Fault(429, "slow down"))
    with pytest.raises(Overloaded, match="asked 2 times: HTTP 429"):
        await policy(server, attempts=2).generate([TURNS[0]], STOP)
    server.play(Raw(b"data: nonsense\n\n"))
    with pytest.raises(EngineDown, match="sent no completion"):
        await policy(server, attempts=1).generate([TURNS[0]], STOP)
    server.play(Fault(401, "who are you"))
    with pytest.raises(EngineDown, match="refuses us: HTTP 401"):
        await policy(server).generate([TURNS[0]], STOP)
    server.play(Fault(400, "too long"))
    with pytest.raises(InvalidRequest, match="does not take the request"):
        await policy(server).generate([TURNS[0]], STOP)


async def test_nobody_trains_a_hosted_model(server: OpenAiServer) -> None:
    hosted = policy(server)
    with pytest.raises(InvalidRequest, match="weights cannot be replaced"):
        await hosted.update_weights("run", 1, "0" * 64)
    with pytest.raises(StalePolicyVersion):
        await hosted.generate([TURNS[0]], STOP, policy_id="run")
    with pytest.raises(NotFound, match="there is no picture"):
        await hosted.generate(TURNS, STOP)


async def test_a_hosted_model_plays_an_episode_with_the_world_model(server: OpenAiServer) -> None:
    server.play(
        Answer(f"<think>{call(L)}"),
        Answer("No.</think>\nAction: " + R),
        Answer(acts("dance()")),
    )
    world = a_world()
    hosted = HostedPolicy(HostedModel(server.url, "m"), AnyPicture())
    trajectory = await play(a_job(policy_id=""), world=world, policy=hosted)
    assert trajectory.ending is Ending.UNPARSABLE
    assert trajectory.calls == 1
    assert all(set(step.segment.mask) == {0} for step in trajectory.steps)
    assert FINISH not in trajectory.steps[0].text


class AnyPicture(MemoryBlobs):
    """The fake world's pictures are names only; each is drawn here."""

    async def get(self, digest: str) -> bytes:
        return PNG


def test_without_an_address_it_says_what_is_missing() -> None:
    with pytest.raises(InvalidRequest, match="needs WMR1_OPENAI_URL"):
        hosted_model(PolicySettings(policy_engine="openai"))
