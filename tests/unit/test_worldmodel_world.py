"""The service object: steps with pictures, purposes, verdicts, and the sentences of errors."""

import pytest
from prometheus_client import REGISTRY

from tests.worldmodel_fakes import TAP, Counter, Process
from wmkit.domain.actions import Answer, Finish, Type
from wmkit.domain.errors import (
    InvalidAction,
    InvalidRequest,
    StateNotFound,
    Unavailable,
    UnknownBackend,
    UnknownTask,
)
from wmkit.domain.tasks import TaskRef, Verdict
from wmkit.domain.transition import FailureReason, ImageRequest, Outcome, Purpose
from wmkit.ports import WorldModel

TASK = TaskRef(template="count", seed=5)
COMMIT = Purpose.COMMIT


def _is_the_port(process: Process) -> WorldModel:
    return process.world


async def test_a_task_gives_a_state_and_on_request_its_picture() -> None:
    process = Process(Counter())
    bare = await process.world.create_state(TASK)
    assert (bare.image, bare.elements, process.easel.drawn) == (None, (), [])
    assert bare.task is not None and bare.task.goal == "Count."
    full = await process.world.create_state(TASK, image=ImageRequest(with_elements=True))
    assert full.state == bare.state
    assert full.image is not None and full.image.data
    assert [element.text for element in full.elements] == ["5"]


async def test_a_step_tells_where_its_answer_came_from() -> None:
    process = Process(Counter())
    state = (await process.world.create_state(TASK)).state
    first = await process.world.step(state.state_id, TAP, purpose=COMMIT)
    second = await process.world.step(state.state_id, TAP, purpose=Purpose.IMAGINE)
    assert (first.outcome, first.state) == (second.outcome, second.state)
    assert [answer.provenance.cache_hit for answer in (first, second)] == [False, True]
    assert (first.provenance.backend, first.provenance.revision) == ("counter", "counter-1")
    assert first.image is None and first.provenance.render_ms == 0


async def test_a_step_whose_screen_cannot_be_drawn_failed_and_may_succeed_later() -> None:
    process = Process(Counter())
    state = (await process.world.create_state(TASK)).state
    image = ImageRequest(with_elements=True)
    process.easel.fails = FailureReason.RENDER_TIMEOUT
    failed = await process.world.step(state.state_id, TAP, purpose=COMMIT, image=image)
    assert (failed.outcome, failed.reason) == (Outcome.FAILED, FailureReason.RENDER_TIMEOUT)
    assert (failed.state, failed.image, failed.elements) == (None, None, ())
    with pytest.raises(Unavailable, match="first screen of count:5 could not be drawn"):
        await process.world.create_state(TASK, image=image)
    process.easel.fails = None
    answer = await process.world.step(state.state_id, TAP, purpose=COMMIT, image=image)
    assert answer.outcome is Outcome.CHANGED
    assert [element.text for element in answer.elements] == ["6"]


async def test_a_failed_prediction_is_an_outcome_without_state_or_picture() -> None:
    process = Process(Counter())
    state = (await process.world.create_state(TASK)).state
    answer = await process.world.step(
        state.state_id, Type("x"), purpose=COMMIT, image=ImageRequest()
    )
    assert (answer.outcome, answer.reason) == (Outcome.FAILED, FailureReason.TRUNCATED)
    assert (answer.state, answer.image) == (None, None)
    assert answer.provenance.tokens == 8192


async def test_steps_are_counted_by_purpose_outcome_and_source() -> None:
    def count(purpose: str, source: str) -> float:
        labels = {"purpose": purpose, "outcome": "changed", "source": source}
        return REGISTRY.get_sample_value("wmr1_worldmodel_steps_total", labels) or 0.0

    process = Process(Counter())
    state = (await process.world.create_state(TASK)).state
    asked = [("commit", "computed"), ("imagine", "process"), ("commit", "process")]
    before = [count(*labels) for labels in asked]
    await process.world.step(state.state_id, TAP, purpose=Purpose.COMMIT)
    await process.world.step(state.state_id, TAP, purpose=Purpose.IMAGINE)
    await process.world.step(state.state_id, TAP, purpose=Purpose.IMAGINE)
    after = [count(*labels) for labels in asked]
    assert [a - b for a, b in zip(after, before, strict=True)] == [1, 2, 0]


async def test_a_state_shows_its_html_payload_and_elements() -> None:
    process = Process(Counter())
    state = (await process.world.create_state(TASK)).state
    assert await process.world.get_state(state.state_id) == state
    assert "<div id=render-target>5</div>" in await process.world.html(state.state_id)
    assert await process.world.payload(state.state_id) == b"5"
    assert [e.text for e in await process.world.elements(state.state_id)] == ["5"]
    assert process.easel.drawn == []


async def test_the_judge_sees_the_task_and_the_final_state() -> None:
    process = Process(Counter())
    state = (await process.world.create_state(TASK)).state
    end = (await process.world.step(state.state_id, TAP, purpose=COMMIT)).state
    assert end is not None
    before = await process.world.judge(TASK, state.state_id, finish_status="success")
    after = await process.world.judge(TASK, end.state_id, finish_status="success")
    assert (before.verdict, after.verdict) == (Verdict.FAILURE, Verdict.SUCCESS)
    assert (after.judge, after.reason) == ("predicate", "it is 6")
    with pytest.raises(InvalidRequest, match="success, infeasible, not 'done'"):
        await process.world.judge(TASK, end.state_id, finish_status="done")


async def test_several_backends_stand_behind_one_server() -> None:
    process = Process(Counter(), Counter(name="other", revision="other-1"))
    world = process.world
    listed = [(b.name, b.revision, b.default) for b in await world.list_backends()]
    assert listed == [("counter", "counter-1", True), ("other", "other-1", False)]
    default = (await world.create_state(TASK)).state
    other = (await world.create_state(TASK, backend="other")).state
    assert default.state_id != other.state_id
    answer = await world.step(other.state_id, TAP, purpose=COMMIT)
    assert answer.state is not None
    assert answer.state.backend == answer.provenance.backend == "other"


async def test_mistakes_of_the_caller_are_one_sentence() -> None:
    world = Process(Counter()).world
    state = (await world.create_state(TASK)).state
    for action in (Finish("success"), Answer("5")):
        with pytest.raises(InvalidAction, match="ends an episode"):
            await world.step(state.state_id, action, purpose=COMMIT)
    with pytest.raises(UnknownTask):
        await world.create_state(TaskRef(template="cuont", seed=0))
    with pytest.raises(UnknownBackend, match="unknown backend 'countr'; did you mean 'counter'"):
        await world.create_state(TASK, backend="countr")
    with pytest.raises(UnknownBackend, match="there are: counter"):
        await world.create_state(TASK, backend="gworld")
    for call in (world.get_state, world.html, world.payload, world.elements):
        with pytest.raises(StateNotFound):
            await call("0" * 64)
