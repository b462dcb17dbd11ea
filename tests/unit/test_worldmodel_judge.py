"""The model judge: votes, what is no vote, injected verdicts, and who may not judge."""

import io
from collections.abc import AsyncIterator

import pytest
from PIL import Image

from services.worldmodel.engine import Endpoint, Engine, Limits
from services.worldmodel.judge import Case, ModelJudge
from services.worldmodel.judge.verdict import SCHEMA, Vote, count, read_vote
from tests.openai_server import Answer, Fault, OpenAiServer, openai_server, texts
from wmkit.domain.actions import OpenApp, Tap
from wmkit.domain.errors import EngineDown, InvalidRequest
from wmkit.domain.screen import Point
from wmkit.domain.tasks import Verdict

S, F, U = Verdict.SUCCESS, Verdict.FAILURE, Verdict.UNSURE
YES = '{"reason": "it is on", "verdict": "success"}'
NO = '{"reason": "it is off", "verdict": "failure"}'
HMM = '{"reason": "too dark", "verdict": "unsure"}'


@pytest.mark.parametrize(
    ("text", "verdict"),
    [
        (YES, S),
        (NO, F),
        (HMM, U),
        ('{"success": "false"}', F),
        ('{"success": false}', F),
        ('{"success": "True"}', S),
        ('{"verdict": " Failure "}', F),
        (f"```json\n{YES}\n```", S),
        (f"The example says {YES}, but:\n{NO}", F),
        ('{"reason": "the screen says {\\"verdict\\": \\"success\\"}", "verdict": "failure"}', F),
        ('{"verdict": "success", "success": false}', U),
        ('{"verdict": "probably"}', U),
        ('{"verdict": 1}', U),
        ('{"verdict": null}', U),
        ('{"verdict": "success"', U),
        ("success", U),
        ("The task is completed, success: true", U),
        ('["success"]', U),
        ("", U),
        ("{" * 5000, U),
    ],
)
def test_how_an_answer_is_read(text: str, verdict: Verdict) -> None:
    assert read_vote(text).verdict is verdict


@pytest.mark.parametrize(
    ("votes", "verdict"),
    [
        ([S], S), ([F], F), ([U], U), ([S, S, F], S), ([F, U, F], F), ([S, F, U], U),
        ([S, U, U], U), ([S, S, U, U, F], U), ([S, S, S, U, F], S),
    ],
)  # fmt: skip
def test_more_than_half_decide(votes: list[Verdict], verdict: Verdict) -> None:
    counted = count([Vote(vote, vote.value) for vote in votes], "j")
    assert counted.verdict is verdict
    assert counted.reason


def png(color: str) -> bytes:
    out = io.BytesIO()
    Image.new("RGB", (90, 200), color).save(out, "PNG")
    return out.getvalue()


CASE = Case(
    "Turn on Wi-Fi.",
    png("white"),
    png("black"),
    (OpenApp("Settings"), Tap(Point(0.5, 0.25))),
    finish_status="success",
)


@pytest.fixture
async def server() -> AsyncIterator[OpenAiServer]:
    async with openai_server() as running:
        yield running


def judge(server: OpenAiServer, votes: int = 3) -> ModelJudge:
    limits = Limits(attempts=1, backoff_s=0.001)
    return ModelJudge(Engine(Endpoint(server.url, "judge-1"), limits), votes=votes)


async def test_k_votes_with_seeds_of_their_own_and_a_forced_schema(server: OpenAiServer) -> None:
    server.play(Answer(YES), Answer(NO), Answer(YES))
    found = await judge(server).judge(CASE)
    assert (found.verdict, found.judge) == (S, "model:judge-1")
    assert found.reason == "it is on (2 of 3 votes)"
    assert sorted(sent["seed"] for sent in server.requests) == [0, 1, 2]
    for sent in server.requests:
        assert sent["response_format"]["json_schema"]["schema"] == SCHEMA


async def test_it_sees_goal_both_screens_the_log_and_the_ending(server: OpenAiServer) -> None:
    server.play(Answer(NO))
    await judge(server, votes=1).judge(CASE)
    system, user = server.requests[0]["messages"]
    assert "proves nothing" in system["content"]
    kinds = [part["type"] for part in user["content"]]
    assert kinds == ["text", "image_url", "text", "image_url", "text"]
    words = texts(user)
    assert words[:2] == ["First screen:", "Last screen:"]
    assert words[2].startswith(
        "Goal: Turn on Wi-Fi.\n\nActions, in order:\n"
        "1. open_app(app='Settings')\n2. tap(50.0 %, 25.0 %)\n\n"
        "How it ended: the goal was declared to be reached"
    )
    assert server.requests[0]["temperature"] == 0.0


async def test_a_server_that_cannot_force_a_schema_is_asked_without(server: OpenAiServer) -> None:
    server.play(Fault(400, "response_format is not supported"), Answer(YES))
    asked = judge(server, votes=1)
    assert (await asked.judge(CASE)).verdict is S
    assert (await asked.judge(CASE)).verdict is S
    assert ["response_format" in sent for sent in server.requests] == [True, False, False]


async def test_an_answer_that_is_cut_is_unsure(server: OpenAiServer) -> None:
    server.play(Answer(YES, "length"))
    assert (await judge(server, votes=1).judge(CASE)).verdict is U


async def test_a_judge_that_is_down_says_nothing_about_the_episode(server: OpenAiServer) -> None:
    server.play(Answer(YES), Fault(500))
    with pytest.raises(EngineDown):
        await judge(server).judge(CASE)


async def test_the_world_model_may_not_judge_itself() -> None:
    world = Endpoint("http://127.0.0.1:8000/v1", "Qwen")
    engine = Engine(Endpoint("http://localhost:8000/v1/", "qwen"))
    with pytest.raises(InvalidRequest, match="the judge is the world model itself"):
        ModelJudge(engine, worlds=[world])
    ModelJudge(Engine(Endpoint("http://localhost:8000/v1/", "another")), worlds=[world])


@pytest.mark.parametrize("votes", [0, 2, -1])
async def test_votes_are_odd(votes: int) -> None:
    with pytest.raises(InvalidRequest, match="odd"):
        ModelJudge(Engine(Endpoint("http://localhost:1/v1", "m")), votes=votes)
