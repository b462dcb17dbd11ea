"""States from HTML, screenshots and payloads; what outlives a lifetime; pins."""

from io import BytesIO
from typing import Any

import pytest
from blake3 import blake3
from PIL import Image as Pillow

from services.worldmodel.backends import Prediction
from services.worldmodel.backends.pages import Page, PurePages, dump_page, load_page
from services.worldmodel.states import state_name
from tests.worldmodel_fakes import TAP, Counter, Process
from wmkit.domain.actions import Action, Home
from wmkit.domain.errors import (
    BadHtml,
    InvalidRequest,
    PayloadTooLarge,
    StateNotFound,
    Unavailable,
    UnknownTask,
)
from wmkit.domain.screen import Screen
from wmkit.domain.sources import FromHtml, FromPayload, FromScreenshot
from wmkit.domain.tasks import TaskRef
from wmkit.domain.transition import FailureReason, ImageRequest, Outcome, Purpose

HTML = "<!DOCTYPE html><html><body><div id=render-target>Hello</div></body></html>"
COMMIT = Purpose.COMMIT


class Echo(PurePages):
    """Answers a tap with one page and anything else with the screen that it was given."""

    name = "echo"
    revision = "echo-1"
    deterministic = True

    def snap(self, action: Action) -> Action:
        return action

    async def predict(self, value: Page, action: Action, seed: int) -> Prediction[Page]:
        if action == TAP:
            return Prediction(Page(value.screen, html="<p>tapped</p>"))
        return Prediction(value)

    def judge(self, *_: Any) -> Any:
        raise NotImplementedError


def png(size: tuple[int, int] = (60, 120), color: Any = (200, 30, 30), mode: str = "RGB") -> bytes:
    out = BytesIO()
    Pillow.new(mode, size, color).save(out, "PNG")
    return out.getvalue()


def opened(data: bytes) -> Pillow.Image:
    return Pillow.open(BytesIO(data))


async def test_html_becomes_a_state_named_by_the_html_its_screen_and_its_backend() -> None:
    process = Process(Echo())
    source = FromHtml(HTML, Screen(90, 180))
    created = await process.world.create_state(source, image=ImageRequest())
    payload = blake3(HTML.encode()).hexdigest()
    assert created.state.state_id == state_name("echo", Screen(90, 180), "html", payload)
    assert created.task is None
    assert created.image is not None
    assert (created.image.width_px, created.image.height_px) == (90, 180)
    assert HTML.encode() in created.image.data
    assert await process.world.html(created.state.state_id) == HTML
    wider = (await process.world.create_state(FromHtml(HTML, Screen(91, 180)))).state
    assert wider.state_id != created.state.state_id


async def test_a_screenshot_becomes_a_state_and_is_its_own_picture_byte_for_byte() -> None:
    process = Process(Echo())
    data = png()
    created = await process.world.create_state(FromScreenshot(data), image=ImageRequest())
    named = state_name("echo", Screen(60, 120), "image", blake3(data).hexdigest())
    assert created.state.state_id == named
    assert created.state.screen == Screen(60, 120)
    assert created.image is not None
    assert (created.image.data, created.image.digest) == (data, blake3(data).hexdigest())
    assert process.easel.drawn == []
    stepped = await process.world.step(named, TAP, purpose=COMMIT)
    stayed = await process.world.step(named, Home(), purpose=COMMIT)
    assert (stepped.outcome, stayed.outcome) == (Outcome.CHANGED, Outcome.UNCHANGED)
    assert stepped.state is not None
    assert await process.world.html(stepped.state.state_id) == "<p>tapped</p>"
    assert await process.world.html(named) == ""


@pytest.mark.parametrize("form", ["jpeg", "webp"])
async def test_a_screenshot_is_resized_once_and_found_by_another_process(form: Any) -> None:
    process = Process(Echo())
    state = (await process.world.create_state(FromScreenshot(png()))).state
    half = ImageRequest(scale=0.5, format=form)
    first = await process.world.get_screenshot(state.state_id, half)
    assert first.image is not None
    picture = opened(first.image.data)
    assert (picture.size, picture.format) == ((30, 60), form.upper())
    red, green, blue = picture.convert("RGB").getpixel((15, 30))  # type: ignore[misc]
    assert red > 180 and green < 60 and blue < 60
    other = Process(Echo(), shared=process)
    again = await other.world.get_screenshot(state.state_id, half)
    assert (first.cached, again.cached) == (False, True)
    assert again.image == first.image
    process.blobs._blobs.pop(first.image.digest)
    assert (await other.world.get_screenshot(state.state_id, half)).image == first.image


async def test_a_transparent_screenshot_lies_on_white() -> None:
    world = Process(Echo()).world
    state = (await world.create_state(FromScreenshot(png(color=(0, 0, 0, 0), mode="RGBA")))).state
    drawn = await world.get_screenshot(state.state_id, ImageRequest(scale=0.5))
    assert drawn.image is not None
    assert opened(drawn.image.data).getpixel((3, 3)) == (255, 255, 255)


@pytest.mark.parametrize(
    ("source", "error", "words"),
    [
        (FromHtml("  \n"), BadHtml, "empty"),
        (FromHtml("just words"), BadHtml, "no element"),
        (FromHtml("<p>" + "x" * 4_000_000), PayloadTooLarge, "4,000,003 characters"),
        (FromHtml(HTML, Screen(9000, 100)), InvalidRequest, "9000x100 is too large"),
        (FromScreenshot(b""), InvalidRequest, "empty"),
        (FromScreenshot(b"GIF89a"), InvalidRequest, "no whole PNG or JPEG"),
        (FromScreenshot(png()[: len(png()) // 2]), InvalidRequest, "no whole PNG or JPEG"),
        (FromScreenshot(png((8200, 4), 0, "L")), InvalidRequest, "8200x4 is too large"),
        (FromPayload("ab" * 32), StateNotFound, "there is no payload abab"),
        (FromPayload("nope"), InvalidRequest, "64 lower-case hex digits"),
        (TaskRef(template="count", seed=1), UnknownTask, "'echo' has no tasks"),
    ],
)
async def test_what_is_no_screen_is_the_caller_s_mistake(
    source: Any, error: type[Exception], words: str
) -> None:
    with pytest.raises(error, match=words):
        await Process(Echo()).world.create_state(source)


async def test_a_bomb_of_pixels_is_refused_before_it_is_decoded() -> None:
    # 25 KB that would become 400 million pixels.
    out = BytesIO()
    Pillow.new("1", (20_000, 20_000)).save(out, "PNG")
    with pytest.raises(PayloadTooLarge):
        await Process(Echo()).world.create_state(FromScreenshot(out.getvalue()))


async def test_a_phone_that_starts_from_tasks_says_which_backend_takes_screens() -> None:
    alone, both = Process(Counter()), Process(Counter(), Echo())
    with pytest.raises(InvalidRequest, match="no backend of this server starts from screens"):
        await alone.world.create_state(FromHtml(HTML))
    with pytest.raises(InvalidRequest, match="start from screens: echo"):
        await both.world.create_state(FromHtml(HTML))
    assert (await both.world.create_state(FromHtml(HTML), backend="echo")).state.backend == "echo"


async def test_html_that_cannot_be_drawn_is_the_caller_s_and_a_screenshot_s_is_not() -> None:
    process = Process(Echo())
    process.easel.fails = FailureReason.BLANK
    with pytest.raises(BadHtml, match="cannot be drawn: blank"):
        await process.world.create_state(FromHtml(HTML), image=ImageRequest())
    payload = (await process.world.create_state(FromHtml(HTML))).state.payload_digest
    with pytest.raises(Unavailable, match="first screen of state"):
        await process.world.create_state(FromPayload(payload), image=ImageRequest())


@pytest.mark.parametrize("source", [FromHtml(HTML), FromScreenshot(png())])
async def test_a_screen_outlives_its_lifetime_by_its_payload(source: Any) -> None:
    process = Process(Echo())
    state = (await process.world.create_state(source)).state
    await process.redis.flushall()
    after = Process(Echo(), shared=process)
    with pytest.raises(StateNotFound, match="CreateState from payload"):
        await after.world.step(state.state_id, TAP, purpose=COMMIT)
    back = await after.world.create_state(FromPayload(state.payload_digest, state.state_id))
    assert back.state == state
    assert (await after.world.step(state.state_id, TAP, purpose=COMMIT)).outcome is Outcome.CHANGED


async def test_a_payload_brings_back_the_hidden_state_of_a_task_s_phone() -> None:
    process = Process(Counter())
    start = (await process.world.create_state(TaskRef(template="count", seed=5))).state
    end = (await process.world.step(start.state_id, TAP, purpose=COMMIT)).state
    assert end is not None
    await process.redis.flushall()
    after = Process(Counter(), shared=process)
    back = await after.world.create_state(FromPayload(end.payload_digest, end.state_id))
    assert (back.state, back.task) == (end, None)
    with pytest.raises(StateNotFound, match=f"not {start.state_id}"):
        await after.world.create_state(FromPayload(end.payload_digest, start.state_id))


async def test_a_payload_of_another_backend_and_one_without_its_picture_are_refused() -> None:
    process = Process(Echo(), Counter())
    state = (await process.world.create_state(FromScreenshot(png()))).state
    with pytest.raises(InvalidRequest, match="no state of backend 'counter'"):
        await process.world.create_state(FromPayload(state.payload_digest), backend="counter")
    del process.blobs._blobs[blake3(png()).hexdigest()]
    with pytest.raises(StateNotFound, match="has lost its picture"):
        await process.world.create_state(FromPayload(state.payload_digest))


async def test_pinned_states_and_answers_live_longer_and_renewal_does_not_shorten_them() -> None:
    process = Process(Counter(), ttl_s=60, pin_ttl_s=3600)
    start = (await process.world.create_state(TaskRef(template="count", seed=5), pin=True)).state
    end = await process.world.step(start.state_id, TAP, purpose=COMMIT, pin=True)
    loose = await process.world.step(start.state_id, Home(), purpose=COMMIT)
    assert (end.outcome, loose.outcome) == (Outcome.CHANGED, Outcome.UNCHANGED)
    await process.index.renew()
    lives = {key: await process.redis.pttl(key) for key in await process.redis.keys("t:*")}
    assert len(lives) == 4
    assert sorted(life > 3_500_000 for life in lives.values()) == [False, True, True, True]
    assert all(life > 50_000 for life in lives.values())


async def test_a_pin_writes_a_record_that_redis_had_dropped() -> None:
    process = Process(Counter(), ttl_s=60, pin_ttl_s=3600)
    await process.index.pin("a", b"1")
    assert await process.index.get("a") == b"1"
    assert await process.redis.pttl("t:a") > 3_500_000
    process.index.touch("a", b"1")
    assert await process.index.renew() == 0


@pytest.mark.parametrize(
    "page",
    [
        Page(Screen(1, 2, 3.0), html="<p>ü\u2028</p>"),
        Page(Screen(1080, 2400), picture="ab" * 32, format="jpeg"),
    ],
)
def test_a_page_survives_its_bytes(page: Page) -> None:
    assert load_page(dump_page(page, episode="e")) == (page, {"episode": "e"})


@pytest.mark.parametrize(
    "data",
    [b"", b"\xff", b"[]", b"{}", b'{"page":2}', b'{"page":1,"kind":"html","screen":[1,2,1.0]}'],
)
def test_bytes_that_hold_no_page_are_refused(data: bytes) -> None:
    with pytest.raises(ValueError):
        load_page(data)
