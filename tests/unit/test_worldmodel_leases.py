"""One computation across replicas: who works, who waits, who takes over."""

import asyncio

import pytest

from services.worldmodel.index import Index
from services.worldmodel.leases import Leases
from tests.worldmodel_fakes import Counter, Process
from wmkit.domain.errors import EngineDown


def two() -> tuple[Index, Index]:
    """The indexes of two replicas over one Redis."""
    first = Process(Counter())
    return first.index, Process(Counter(), shared=first).index


class Answers:
    """What replicas ask for: a value that is in Redis once somebody has worked for it."""

    def __init__(self, index: Index, word: str) -> None:
        self.index = index
        self.word = word
        self.begun = asyncio.Event()
        self.go = asyncio.Event()
        self.fails = False

    async def look(self) -> bytes | None:
        return await self.index.get("answer")

    async def work(self) -> bytes:
        self.begun.set()
        await self.go.wait()
        if self.fails:
            raise EngineDown("the model is down")
        return await self.index.put_first("answer", self.word.encode())


async def test_one_works_and_the_others_find_its_answer() -> None:
    a, b = (Answers(index, word) for index, word in zip(two(), "ab", strict=True))
    first = asyncio.create_task(Leases(a.index).once("k", a.look, a.work))
    await a.begun.wait()
    waiting = [asyncio.create_task(Leases(b.index).once("k", b.look, b.work)) for _ in range(3)]
    a.go.set()
    assert await first == (b"a", True)
    assert await asyncio.gather(*waiting) == [(b"a", False)] * 3
    assert not b.begun.is_set()


async def test_a_holder_that_fails_passes_the_work_on() -> None:
    a, b = (Answers(index, word) for index, word in zip(two(), "ab", strict=True))
    a.fails = True
    first = asyncio.create_task(Leases(a.index).once("k", a.look, a.work))
    await a.begun.wait()
    b.go.set()
    second = asyncio.create_task(Leases(b.index).once("k", b.look, b.work))
    a.go.set()
    with pytest.raises(EngineDown):
        await first
    assert await second == (b"b", True)


async def test_a_holder_that_is_cancelled_lets_go() -> None:
    a, b = (Answers(index, word) for index, word in zip(two(), "ab", strict=True))
    leases = Leases(a.index, ttl_s=3600)
    first = asyncio.create_task(leases.once("k", a.look, a.work))
    await a.begun.wait()
    first.cancel()
    b.go.set()
    assert await Leases(b.index).once("k", b.look, b.work) == (b"b", True)


async def test_only_the_owner_keeps_and_releases() -> None:
    a, b = two()
    assert await a.acquire("k", "a", 60)
    assert not await b.acquire("k", "b", 60)
    assert not await b.keep("k", "b", 60)
    await b.release("k", "b")
    assert await a.keep("k", "a", 60)
    await a.release("k", "a")
    assert await b.acquire("k", "b", 60)
    assert not await a.keep("k", "a", 60)
