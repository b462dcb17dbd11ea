"""The gate before an engine that batches by itself: places, order, updates, callers that leave."""

import asyncio

import pytest

from services.policy.gate import Gate
from wmkit.domain.errors import Overloaded


class Visitor:
    def __init__(self, gate: Gate, name: str, log: list[str]) -> None:
        self.leave = asyncio.Event()
        self.name, self._gate, self._log = name, gate, log
        self.task = asyncio.create_task(self._visit())

    async def _visit(self) -> None:
        async with self._gate.place():
            self._log.append(self.name)
            await self.leave.wait()


async def settle() -> None:
    for _ in range(5):
        await asyncio.sleep(0)


async def test_places_are_given_in_order_and_one_too_many_is_refused() -> None:
    gate, log = Gate(places=2, queue=2), list[str]()
    visitors = [Visitor(gate, name, log) for name in "abcd"]
    await settle()
    assert (log, gate.waiting) == (["a", "b"], 2)
    with pytest.raises(Overloaded, match="2 requests are waiting") as refused:
        async with gate.place():
            pass
    assert refused.value.retry_after_s > 0
    visitors[1].leave.set()
    await settle()
    assert log == ["a", "b", "c"]
    for visitor in visitors:
        visitor.leave.set()
    await asyncio.gather(*(visitor.task for visitor in visitors))
    assert log == ["a", "b", "c", "d"]


async def test_an_update_is_alone_and_those_who_came_later_wait_for_it() -> None:
    gate, log = Gate(places=8, queue=8), list[str]()
    first = Visitor(gate, "first", log)
    await settle()
    done = asyncio.Event()

    async def update() -> None:
        async with gate.alone():
            log.append("update")
            await done.wait()

    task = asyncio.create_task(update())
    await settle()
    second = Visitor(gate, "second", log)
    await settle()
    assert log == ["first"]
    first.leave.set()
    await settle()
    assert log == ["first", "update"]
    done.set()
    second.leave.set()
    await asyncio.gather(task, second.task)
    assert log == ["first", "update", "second"]


async def test_callers_that_leave_take_no_place_with_them() -> None:
    gate, log = Gate(places=1, queue=8), list[str]()
    a, b, c = (Visitor(gate, name, log) for name in "abc")
    await settle()
    b.task.cancel()
    a.leave.set()
    c.leave.set()
    await asyncio.gather(a.task, b.task, c.task, return_exceptions=True)
    assert log == ["a", "c"]
    # Given a place and cancelled in the same moment.
    d = Visitor(gate, "d", log)
    await settle()
    e = Visitor(gate, "e", log)
    await settle()
    d.leave.set()
    await d.task
    e.task.cancel()
    await asyncio.gather(e.task, return_exceptions=True)
    async with asyncio.timeout(5), gate.alone():
        pass
    f = Visitor(gate, "f", log)
    f.leave.set()
    await f.task
    assert log[-1] == "f"
