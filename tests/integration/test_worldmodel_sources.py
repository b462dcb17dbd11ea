"""Screens, payloads, pins and recordings through the real service: gRPC, Redis, a blob folder."""

import asyncio
import json
from io import BytesIO
from pathlib import Path

import pytest
from PIL import Image as Pillow
from redis.asyncio import Redis

from tests.integration.test_worldmodel_service import TASK, Service, redis, service
from tests.openai_server import Answer, openai_server
from wmkit.clients import StepCall, to_pil
from wmkit.clients.sync import connect
from wmkit.domain.actions import Back, OpenApp, Tap
from wmkit.domain.errors import BadHtml, InvalidRequest, StateNotFound
from wmkit.domain.screen import Point, Screen
from wmkit.domain.sources import FromHtml, FromPayload, FromScreenshot
from wmkit.domain.tasks import TaskRef, Verdict
from wmkit.domain.transition import ImageRequest, Outcome, Purpose

__all__ = ["redis", "service"]

COMMIT = Purpose.COMMIT


@pytest.fixture
def recordings(tmp_path: Path) -> Path:
    """One episode of two HTML screens: a tap leads from the first to the second."""
    path = tmp_path / "recordings.jsonl"
    episode = {
        "episode": "one",
        "goal": "Open it.",
        "screens": [{"html": "<p>closed</p>"}, {"html": "<p>open</p>"}],
        "actions": [{"action": "tap", "point": [0.5, 0.5]}],
    }
    path.write_text(json.dumps(episode) + "\n", "utf-8")
    return path


async def test_an_episode_without_a_task_starts_from_pixels(
    service: Service, recordings: Path
) -> None:
    out = BytesIO()
    Pillow.effect_noise((1080, 2400), 90).convert("RGB").save(out, "PNG")
    data = out.getvalue()
    assert len(data) > 4 * 1024 * 1024, "more than gRPC lets through by default"
    async with service.run(backends="scripted,replay", replay=str(recordings)) as client:
        with pytest.raises(InvalidRequest, match="these backends start from screens: replay"):
            await client.create_state(FromScreenshot(data))
        created = await client.create_state(
            FromScreenshot(data), backend="replay", image=ImageRequest()
        )
        assert created.image is not None and created.image.data == data
        assert created.state.screen == Screen(1080, 2400)
        small = await client.get_screenshot(created.state.state_id, ImageRequest(scale=0.1))
        assert small.image is not None
        assert to_pil(small.image).size == (108, 240)
        assert await client.get_html(created.state.state_id) == ""
        assert service.easel.drawn == []


async def test_recordings_are_tasks_that_are_stepped_and_judged(
    service: Service, recordings: Path
) -> None:
    async with service.run(backends="replay", replay=str(recordings)) as client:
        ref = TaskRef(template="replay", seed=0)
        start = (await client.create_state(ref)).state
        calls = [
            StepCall("right", start.state_id, Tap(Point(0.55, 0.5)), image=ImageRequest()),
            StepCall("wrong", start.state_id, Back()),
        ]
        answers = {key: answer async for key, answer in client.batch_step(calls)}
        right, wrong = answers["right"], answers["wrong"]
        assert not isinstance(right, Exception) and not isinstance(wrong, Exception)
        assert (right.outcome, wrong.outcome) == (Outcome.CHANGED, Outcome.UNCHANGED)
        assert right.image is not None and right.image.data == b"<p>open</p>"
        assert right.state is not None
        end = await client.judge(ref, right.state.state_id, finish_status="success")
        assert (end.verdict, end.judge) == (Verdict.SUCCESS, "recording")
        same = await client.create_state(FromHtml("<p>closed</p>", Screen(1080, 2400)))
        assert same.state == start
        with pytest.raises(BadHtml, match="empty") as caught:
            await client.create_state(FromHtml(""))
        assert caught.value.field == "html.html"


async def test_a_state_is_brought_back_after_redis_forgot_it(service: Service) -> None:
    async with service.run() as client:
        start = (await client.create_state(TASK)).state
        end = (await client.step(start.state_id, OpenApp("Notes"), purpose=COMMIT)).state
        assert end is not None
        before = await client.step(end.state_id, Back(), purpose=COMMIT)
    async with Redis.from_url(service.redis.url) as bare:
        await bare.flushall()
    async with service.run() as client:
        with pytest.raises(StateNotFound, match="its lifetime has ended"):
            await client.step(end.state_id, Back(), purpose=COMMIT)
        back = await client.create_state(FromPayload(end.payload_digest, end.state_id))
        assert back.state == end
        onward = await client.step(end.state_id, Back(), purpose=COMMIT)
        assert onward.state == before.state
        assert onward.provenance.cache_hit is False
        with pytest.raises(StateNotFound, match=f"not {start.state_id}") as caught:
            await client.create_state(FromPayload(end.payload_digest, start.state_id))
        assert caught.value.resource == start.state_id


async def test_pinned_states_and_answers_outlive_the_others(service: Service) -> None:
    """Against a real Redis, whose lifetimes are looked at and not waited for."""
    async with service.run(state_ttl_s=100, pin_ttl_s=10_000) as client:
        start = (await client.create_state(TASK, pin=True)).state
        await client.step(start.state_id, OpenApp("Notes"), purpose=COMMIT, pin=True)
        await client.step(start.state_id, OpenApp("Clock"), purpose=COMMIT)
        async with Redis.from_url(service.redis.url) as bare:
            keys = await bare.keys("*")
            long = [key for key in keys if await bare.pttl(key) > 9_000_000]
    assert sorted(key.split(b":")[2] for key in long) == [b"state", b"state", b"step"]
    assert len(keys) == 5


async def test_without_asyncio_screens_and_payloads_are_one_call(
    service: Service, recordings: Path, tmp_path: Path
) -> None:
    def script(address: str) -> None:
        picture = Pillow.new("RGB", (90, 160), (10, 20, 30))
        picture.save(tmp_path / "shot.png")
        with connect(address) as world:
            page = world.from_html("<p>closed</p>")
            assert (page.html, page.goal) == ("<p>closed</p>", "")
            after = page.step(Tap(Point(0.5, 0.5)))
            assert after.html == "<p>open</p>"
            again = world.from_payload(after.state.payload_digest, state_id=after.state.state_id)
            assert again.state == after.state
            shots = [
                world.from_screenshot(source)
                for source in (picture, tmp_path / "shot.png", (tmp_path / "shot.png").read_bytes())
            ]
            assert len({shot.state.state_id for shot in shots}) == 1
            assert shots[0].pil().getpixel((5, 5)) == (10, 20, 30)
            with pytest.raises(ValueError, match="no task and no goal"):
                page.judge()

    async with service.run(backends="replay", replay=str(recordings)):
        await asyncio.to_thread(script, service.address)


async def test_a_screenshot_and_a_goal_are_played_and_judged_by_models(service: Service) -> None:
    """No task, no DOM: the goal reaches the world model, the whole way reaches the judge."""

    def script(address: str) -> Verdict:
        with connect(address) as world:
            phone = world.from_screenshot(Pillow.new("RGB", (90, 200)), goal="Open the inbox.")
            inbox = phone.step(Tap(Point(0.5, 0.5)))
            assert (inbox.goal, inbox.actions) == ("Open the inbox.", (Tap(Point(0.5, 0.5)),))
            assert inbox.html == page
            return inbox.judge(finish_status="success").verdict

    out = BytesIO()
    Pillow.new("RGB", (90, 200), "white").save(out, "PNG")
    service.easel.picture = out.getvalue()
    page = "<!DOCTYPE html><html><body><div id='render-target'>Inbox</div></body></html>"
    verdict = json.dumps({"reason": "the inbox is open", "verdict": "success"})
    async with openai_server(Answer(page)) as model, openai_server(Answer(verdict)) as judge:
        learned = {"code2world_url": model.url, "judge_url": judge.url, "judge_model": "judge"}
        async with service.run(backends="code2world", judge_votes=1, **learned):
            assert await asyncio.to_thread(script, service.address) is Verdict.SUCCESS
    assert "Open the inbox." in json.dumps(model.requests[0])
    (asked,) = judge.requests
    assert "Open the inbox." in json.dumps(asked)
    assert json.dumps(asked).count("data:image/") == 2
