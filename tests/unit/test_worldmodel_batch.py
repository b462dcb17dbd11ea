"""BatchStep: answers as they finish, a bounded number at once, items that fail one by one."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import aclosing

import grpc
from wmr1.worldmodel.v1 import worldmodel_pb2 as pb

from services.worldmodel.servicer import WorldModelServicer
from tests.worldmodel_fakes import Counter, Process
from wmkit.domain.actions import Action
from wmkit.domain.tasks import TaskRef


async def state_ids(process: Process, count: int, backend: str = "") -> list[str]:
    return [
        (await process.world.create_state(TaskRef(template="count", seed=n), backend=backend))
        .state.state_id
        for n in range(count)
    ]  # fmt: skip


async def requests(*states: str) -> AsyncIterator[pb.BatchStepRequest]:
    for i, state in enumerate(states):
        step = pb.StepRequest(state_id=state, action={"home": {}}, purpose=pb.PURPOSE_COMMIT)
        yield pb.BatchStepRequest(key=f"k{i}", request=step)


async def settled() -> None:
    """Give every task that can go on the time to do so."""
    for _ in range(200):
        await asyncio.sleep(0)


async def test_answers_come_as_they_finish() -> None:
    slow, fast = Counter("slow", gate=asyncio.Event()), Counter("fast")
    process = Process(slow, fast)
    states = await state_ids(process, 1, "slow") + await state_ids(process, 1, "fast")
    keys = []
    async for answer in WorldModelServicer(process.world, 8).BatchStep(requests(*states), None):
        keys.append(answer.key)
        assert slow.gate is not None
        slow.gate.set()
    assert keys == ["k1", "k0"]


async def test_only_so_many_steps_are_worked_on_at_once() -> None:
    counter = Counter(gate=asyncio.Event())
    process = Process(counter)
    states = await state_ids(process, 5)
    servicer = WorldModelServicer(process.world, 2)

    async def collect() -> list[str]:
        return [answer.key async for answer in servicer.BatchStep(requests(*states), None)]

    collecting = asyncio.create_task(collect())
    await settled()
    assert counter.predicted == 2
    assert counter.gate is not None
    counter.gate.set()
    assert sorted(await collecting) == ["k0", "k1", "k2", "k3", "k4"]


async def test_answers_that_nobody_reads_hold_back_the_next_steps() -> None:
    counter = Counter()
    process = Process(counter)
    states = await state_ids(process, 5)
    batch = WorldModelServicer(process.world, 2).BatchStep(requests(*states), None)
    async with aclosing(batch):
        await anext(batch)
        await settled()
        assert counter.predicted == 2


async def test_who_leaves_takes_the_work_along() -> None:
    ended: list[str] = []

    class Stuck(Counter):
        async def predict(self, value: int, action: Action, seed: int) -> object:  # type: ignore[override]
            if value == 0:
                return await super().predict(value, action, seed)
            try:
                return await asyncio.Event().wait()
            except asyncio.CancelledError:
                ended.append("cancelled")
                raise

    process = Process(Stuck())
    states = await state_ids(process, 2)
    batch = WorldModelServicer(process.world, 8).BatchStep(requests(*states), None)
    assert (await anext(batch)).key == "k0"
    await settled()
    await batch.aclose()
    await settled()
    assert ended == ["cancelled"]


async def test_a_bug_in_one_step_is_internal_and_hidden_and_spoils_no_other() -> None:
    class Buggy(Counter):
        async def predict(self, value: int, action: Action, seed: int) -> object:  # type: ignore[override]
            if value == 1:
                raise RuntimeError("secret")
            return await super().predict(value, action, seed)

    process = Process(Buggy())
    states = await state_ids(process, 3)
    batch = WorldModelServicer(process.world, 8).BatchStep(requests(*states, "0" * 64), None)
    answers = {answer.key: answer async for answer in batch}
    assert set(answers) == {"k0", "k1", "k2", "k3"}
    assert answers["k0"].response.outcome == answers["k2"].response.outcome == pb.OUTCOME_UNCHANGED
    assert answers["k1"].error.code == grpc.StatusCode.INTERNAL.value[0]
    assert "secret" not in answers["k1"].error.message
    assert answers["k3"].error.code == grpc.StatusCode.NOT_FOUND.value[0]
    assert answers["k3"].error.message.startswith("there is no state 0000")
