"""The clients against a real server: typed answers, batches, the synchronous facade."""

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from tests.toy_service import ToyServicer, register
from wmkit.clients import StepCall, WorldModelClient
from wmkit.clients.sync import StepFailed, connect
from wmkit.domain.actions import Back, Enter, Finish, Home, Tap
from wmkit.domain.errors import InvalidAction, StateNotFound, UnknownTask, WMError
from wmkit.domain.screen import Point
from wmkit.domain.tasks import TaskRef, Verdict
from wmkit.domain.transition import FailureReason, ImageRequest, Outcome, Transition
from wmkit.rpc.server import running
from wmkit.settings import ServiceSettings

TASK = TaskRef(template="fake", seed=3)


def serving(servicer: ToyServicer) -> Any:
    settings = ServiceSettings(drain_pause_s=0.0, drain_grace_s=1.0)
    return running(settings, "toy", register(servicer))


async def test_a_state_is_created_stepped_and_judged() -> None:
    async with serving(ToyServicer()) as server, WorldModelClient(server.address) as world:
        small = ImageRequest("bytes", "png", 0.1)
        created = await world.create_state(TASK, image=small)
        assert created.task is not None
        assert created.task.ref == TASK
        assert created.image is not None
        assert (created.image.width_px, created.image.height_px) == (108, 240)
        moved = await world.step(created.state.state_id, Enter())
        assert moved.outcome is Outcome.CHANGED
        stayed = await world.step(created.state.state_id, Home())
        assert stayed.outcome is Outcome.UNCHANGED
        assert stayed.state == created.state == await world.get_state(created.state.state_id)
        failed = await world.step(created.state.state_id, Back())
        assert (failed.outcome, failed.reason) == (Outcome.FAILED, FailureReason.TRUNCATED)
        verdict = await world.judge(TASK, created.state.state_id)
        assert verdict.verdict is Verdict.FAILURE


async def test_a_batch_answers_every_key_and_one_fault_stays_one() -> None:
    async with serving(ToyServicer()) as server, WorldModelClient(server.address) as world:
        start = (await world.create_state(TASK)).state.state_id
        calls = [
            StepCall("moves", start, Enter()),
            StepCall("unknown", "nowhere", Enter()),
            StepCall("ends", start, Finish()),
            StepCall("fails", start, Back()),
        ]
        answers = {key: answer async for key, answer in world.batch_step(calls)}
    assert set(answers) == {"moves", "unknown", "ends", "fails"}
    moved, failed = answers["moves"], answers["fails"]
    assert isinstance(moved, Transition)
    assert moved.outcome is Outcome.CHANGED
    assert isinstance(failed, Transition)
    assert failed.reason is FailureReason.TRUNCATED
    assert type(answers["unknown"]) is StateNotFound
    assert answers["unknown"].resource == "nowhere"
    assert type(answers["ends"]) is InvalidAction


async def test_answers_come_while_the_batch_is_still_being_asked() -> None:
    async with serving(ToyServicer()) as server, WorldModelClient(server.address) as world:
        start = (await world.create_state(TASK)).state.state_id
        answered = asyncio.Event()

        async def calls() -> AsyncIterator[StepCall]:
            yield StepCall("1", start, Enter())
            await answered.wait()
            yield StepCall("2", start, Enter())

        keys = []
        async for key, _ in world.batch_step(calls()):
            keys.append(key)
            answered.set()
    assert keys == ["1", "2"]


async def test_a_fault_of_the_caller_s_own_iterable_is_raised_as_it_is() -> None:
    async with serving(ToyServicer()) as server, WorldModelClient(server.address) as world:
        start = (await world.create_state(TASK)).state.state_id

        async def calls() -> AsyncIterator[StepCall]:
            yield StepCall("1", start, Enter())
            raise KeyError("mine")

        async with asyncio.timeout(10) as limit:
            with pytest.raises(KeyError, match="mine"):
                async for _ in world.batch_step(calls()):
                    pass
    assert not limit.expired()


async def test_leaving_a_batch_early_ends_it_on_the_server() -> None:
    servicer = ToyServicer()
    async with serving(servicer) as server, WorldModelClient(server.address) as world:
        start = (await world.create_state(TASK)).state.state_id

        async def forever() -> AsyncIterator[StepCall]:
            yield StepCall("1", start, Enter())
            await asyncio.Event().wait()

        batch = world.batch_step(forever())
        assert (await anext(batch))[0] == "1"
        await batch.aclose()  # type: ignore[attr-defined]
        await asyncio.wait_for(servicer.batches_closed.wait(), 5)


async def test_an_error_that_ends_the_stream_is_raised() -> None:
    async def before(method: str) -> None:
        raise RuntimeError("bug")

    async with serving(ToyServicer(before)) as server, WorldModelClient(server.address) as world:
        with pytest.raises(WMError, match="internal error, request id"):
            async for _ in world.batch_step([StepCall("1", "s", Enter())]):
                pass


async def test_the_synchronous_client_needs_no_event_loop(tmp_path: Path) -> None:
    def script(address: str) -> None:
        with connect(worldmodel=address) as world:
            assert [template.name for template in world.tasks()] == ["fake"]
            phone = world.create_state("fake", seed=7)
            assert phone.goal == "reach goal"
            assert phone.task is not None
            assert phone.task.ref.seed == 7
            after = phone.step(Tap(Point(0.5, 0.5)))
            assert after.outcome is Outcome.CHANGED
            assert after.state != phone.state
            assert phone.imagine(Home()).state == phone.state
            assert world.open_state(after.state.state_id).state == after.state
            after.save(tmp_path / "after.png")
            assert after.pil().size == (1080, 2400)
            assert after.judge().verdict is Verdict.FAILURE
            with pytest.raises(StepFailed, match="truncated"):
                phone.step(Back())
            with pytest.raises(UnknownTask):
                world.create_state("other")
        world.close()

    async with serving(ToyServicer()) as server:
        await asyncio.to_thread(script, server.address)
    assert (tmp_path / "after.png").read_bytes().startswith(b"\x89PNG")
