"""The renderer's memory: what is kept, what is shared, what is let go."""

import asyncio

import pytest

from services.renderer.cache import RenderCache
from wmkit.domain.errors import Unavailable
from wmkit.domain.transition import FailureReason, Image, Rendering


def picture(size: int) -> Rendering:
    return Rendering(Image("d", 1, 1, "png", b"x" * size))


class Maker:
    """Makes renderings when it is let to, and counts."""

    def __init__(self, result: Rendering | Exception) -> None:
        self.result = result
        self.made = 0
        self.cancelled = 0
        self.go = asyncio.Event()

    async def __call__(self) -> Rendering:
        self.made += 1
        try:
            await self.go.wait()
        except asyncio.CancelledError:
            self.cancelled += 1
            raise
        if isinstance(self.result, Exception):
            raise self.result
        return self.result


async def test_equal_work_at_the_same_time_is_done_once_and_then_kept() -> None:
    cache, make = RenderCache(10_000), Maker(picture(10))
    calls = [asyncio.create_task(cache.get("a", 9.0, make)) for _ in range(3)]
    await asyncio.sleep(0)
    make.go.set()
    assert [shared for _, shared in await asyncio.gather(*calls)] == [False, True, True]
    assert await cache.get("a", 9.0, make) == (make.result, True)
    assert make.made == 1


async def test_nobody_inherits_the_shorter_time_of_another() -> None:
    cache = RenderCache(10_000)
    hasty, patient = Maker(Rendering(None, FailureReason.RENDER_TIMEOUT)), Maker(picture(10))
    calls = [
        asyncio.create_task(cache.get("a", seconds, make))
        for seconds, make in ((0.1, hasty), (9.0, patient))
    ]
    await asyncio.sleep(0)
    hasty.go.set()
    patient.go.set()
    assert await asyncio.gather(*calls) == [(hasty.result, False), (patient.result, False)]
    assert await cache.get("a", 0.1, hasty) == (patient.result, True)


async def test_the_least_recently_used_goes_first() -> None:
    cache, make = RenderCache(25_000), Maker(picture(9_000))
    make.go.set()
    for key in ("a", "b", "a", "c"):
        await cache.get(key, 9.0, make)
    assert make.made == 3
    assert (await cache.get("a", 9.0, make))[1] is True
    assert (await cache.get("b", 9.0, make))[1] is False


@pytest.mark.parametrize(
    "result", [Rendering(None, FailureReason.RENDER_TIMEOUT), Unavailable("down")]
)
async def test_failures_are_handed_out_but_not_kept(result: Rendering | Exception) -> None:
    cache, make = RenderCache(10_000), Maker(result)
    make.go.set()
    for _ in range(2):
        if isinstance(result, Exception):
            with pytest.raises(Unavailable):
                await cache.get("a", 9.0, make)
        else:
            assert await cache.get("a", 9.0, make) == (result, False)
    assert make.made == 2


async def test_work_ends_when_its_last_caller_has_gone_and_not_before() -> None:
    cache, make = RenderCache(10_000), Maker(picture(1))
    first, second = (asyncio.create_task(cache.get("a", 9.0, make)) for _ in range(2))
    await asyncio.sleep(0)
    first.cancel()
    await asyncio.gather(first, return_exceptions=True)
    assert make.cancelled == 0
    second.cancel()
    await asyncio.gather(second, return_exceptions=True)
    await asyncio.sleep(0)
    assert make.cancelled == 1
    make.go.set()
    assert await cache.get("a", 9.0, make) == (make.result, False)


async def test_without_capacity_nothing_is_kept() -> None:
    cache, make = RenderCache(0), Maker(picture(1))
    make.go.set()
    await cache.get("a", 9.0, make)
    await cache.get("a", 9.0, make)
    assert make.made == 2
