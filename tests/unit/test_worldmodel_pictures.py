"""Equal looks are drawn once; what could not be drawn is tried again."""

import asyncio

import pytest

from tests.worldmodel_fakes import Counter, Process
from wmkit.domain.errors import BadHtml, BrowserCrashed, DeadlineExpired, Unavailable
from wmkit.domain.transition import FailureReason, ImageRequest, Rendering

DIGEST = ImageRequest(deliver="digest")
BYTES = ImageRequest(deliver="bytes")


async def picture(process: Process, number: int, request: ImageRequest) -> Rendering:
    counter = process.backends[0]
    state = await process.states.put(counter, number)
    return await process.pictures.get(counter, await process.states.get(state.state_id), request)


async def test_states_that_look_alike_share_one_drawing() -> None:
    process = Process(Counter())
    answers = await asyncio.gather(
        *(picture(process, number, DIGEST) for number in (5, -5) for _ in range(8))
    )
    assert process.easel.drawn == ["<!DOCTYPE html><div id=render-target>5</div>"]
    assert len({answer.image for answer in answers}) == 1
    assert [answer.cached for answer in answers].count(False) == 1
    again = await picture(process, 5, DIGEST)
    assert (again.cached, again.render_ms) == (True, 0.0)


async def test_what_is_asked_of_a_picture_tells_pictures_apart() -> None:
    process = Process(Counter())
    png = await picture(process, 5, DIGEST)
    small = await picture(process, 5, ImageRequest("digest", scale=0.25))
    await picture(process, 5, ImageRequest("digest", format="jpeg", quality=50))
    await picture(process, 5, ImageRequest("digest", format="jpeg", quality=60))
    assert len(process.easel.drawn) == 4
    await picture(process, 5, ImageRequest("digest", format="png", quality=60))
    assert len(process.easel.drawn) == 4, "PNG has no quality"
    for quality in (50, 60):
        await picture(process, 5, ImageRequest("digest", format="webp", quality=quality))
    assert len(process.easel.drawn) == 6, "WebP has"
    assert png.image is not None and small.image is not None
    assert (png.image.width_px, small.image.width_px) == (100, 25)


async def test_bytes_are_those_that_the_digest_names() -> None:
    process = Process(Counter())
    by_digest = await picture(process, 5, DIGEST)
    by_bytes = await picture(process, 5, BYTES)
    assert by_digest.image is not None and by_bytes.image is not None
    assert by_digest.image.data == b""
    assert by_bytes.image.data == b"easel-1 1.0 png <!DOCTYPE html><div id=render-target>5</div>"
    assert by_bytes.image.digest == by_digest.image.digest
    assert len(process.easel.drawn) == 1


async def test_lost_bytes_are_drawn_again() -> None:
    process = Process(Counter())
    before = await picture(process, 5, BYTES)
    process.blobs._blobs.clear()
    assert (await picture(process, 5, BYTES)).image == before.image
    assert before.image is not None
    assert await process.blobs.has(before.image.digest)


async def test_a_failure_is_not_remembered() -> None:
    process = Process(Counter())
    process.easel.fails = FailureReason.RENDER_TIMEOUT
    failed = await picture(process, 5, BYTES)
    assert (failed.image, failed.reason) == (None, FailureReason.RENDER_TIMEOUT)
    process.easel.fails = None
    assert (await picture(process, 5, BYTES)).image is not None


async def test_faults_of_the_renderer_are_not_the_callers() -> None:
    process = Process(Counter())
    process.easel.fails = BrowserCrashed("the browser died")
    with pytest.raises(BrowserCrashed):
        await picture(process, 5, BYTES)
    process.easel.fails = DeadlineExpired("too slow")
    with pytest.raises(Unavailable, match=r"^the renderer did not answer in time$"):
        await picture(process, 5, BYTES)
    process.easel.fails = BadHtml("empty")
    assert (await picture(process, 5, BYTES)).reason is FailureReason.NO_DOCUMENT


async def test_replicas_share_pictures_of_the_same_renderer_only() -> None:
    one = Process(Counter())
    await picture(one, 5, DIGEST)
    await picture(one, 6, DIGEST)
    two = Process(Counter(), shared=one)
    await picture(two, 5, DIGEST)  # makes the renderer known
    shared = await picture(two, 6, BYTES)
    assert len(two.easel.drawn) == 1
    assert shared.cached
    three = Process(Counter(), shared=one)
    three.easel.revision = "easel-2"
    await picture(three, 5, DIGEST)
    other = await picture(three, 6, BYTES)
    assert len(three.easel.drawn) == 2
    assert other.image != shared.image


async def test_a_new_renderer_makes_old_pictures_stale() -> None:
    process = Process(Counter())
    old = await picture(process, 5, DIGEST)
    process.easel.revision = "easel-2"
    await picture(process, 6, DIGEST)
    assert (await picture(process, 5, DIGEST)).image != old.image
