"""A transition is a pure function that is computed once, wherever it is asked for."""

import asyncio

import pytest

from services.worldmodel.transitions import Next, Source
from tests.worldmodel_fakes import TAP, Counter, Process
from wmkit.domain.actions import Action, Back, Scroll, Tap, Type, Wait
from wmkit.domain.screen import Point
from wmkit.domain.transition import FailureReason, Outcome, State


async def ask(process: Process, state: State, action: Action, seed: int = 0) -> tuple[Next, Source]:
    live = await process.states.get(state.state_id)
    return await process.transitions.step(process.backends[0], live, action, seed)


async def start(process: Process, number: int = 5) -> State:
    return await process.states.put(process.backends[0], number)


async def value(process: Process, state: State | None) -> int:
    assert state is not None
    number: int = await process.states.value(await process.states.get(state.state_id))
    return number


@pytest.mark.parametrize(
    ("number", "action", "outcome", "after"),
    [
        (5, TAP, Outcome.CHANGED, 6),
        (5, Back(), Outcome.UNCHANGED, 5),
        (5, Scroll("down"), Outcome.CHANGED, -5),  # looks the same, is another state
        (0, Scroll("down"), Outcome.UNCHANGED, 0),
    ],
)
async def test_unchanged_means_exactly_the_same_state(
    number: int, action: Action, outcome: Outcome, after: int
) -> None:
    process = Process(Counter())
    state = await start(process, number)
    answer, _ = await ask(process, state, action)
    assert answer.outcome is outcome
    assert answer.state is not None
    assert (answer.state.state_id == state.state_id) == (outcome is Outcome.UNCHANGED)
    assert await value(process, answer.state) == after


async def test_an_answer_comes_from_memory_then_from_redis() -> None:
    counter, later = Counter(), Counter()
    process = Process(counter)
    state = await start(process)
    first, source = await ask(process, state, TAP)
    assert source is Source.COMPUTED
    assert await ask(process, state, TAP) == (first, Source.PROCESS)
    restarted = Process(later, shared=process)
    assert await ask(restarted, state, TAP) == (first, Source.REDIS)
    assert await ask(restarted, state, TAP) == (first, Source.PROCESS)
    assert (counter.predicted, later.predicted) == (1, 0)


async def test_actions_are_compared_on_the_backends_grid() -> None:
    counter = Counter()
    process = Process(counter)
    state = await start(process)
    await ask(process, state, Tap(Point(0.1, 0.2)))
    _, source = await ask(process, state, Tap(Point(0.9, 0.9)))
    assert (source, counter.predicted) == (Source.PROCESS, 1)


async def test_64_equal_steps_at_once_are_computed_once() -> None:
    counter = Counter(gate=asyncio.Event())
    process = Process(counter)
    state = await start(process)
    asking = [asyncio.create_task(ask(process, state, TAP)) for _ in range(64)]
    while not counter.predicted:
        await asyncio.sleep(0)
    assert counter.gate is not None
    counter.gate.set()
    answers = await asyncio.gather(*asking)
    assert counter.predicted == 1
    assert len({answer.state.state_id for answer, _ in answers if answer.state}) == 1
    sources = [source for _, source in answers]
    assert sources.count(Source.COMPUTED) == 1
    assert sources.count(Source.SHARED) == 63


async def test_the_seed_counts_only_where_the_backend_samples() -> None:
    exact, sampling = Counter(), Counter(deterministic=False)
    for counter, predictions in ((exact, 1), (sampling, 2)):
        process = Process(counter)
        state = await start(process)
        await ask(process, state, TAP, seed=1)
        await ask(process, state, TAP, seed=2)
        await ask(process, state, TAP, seed=1)
        assert counter.predicted == predictions


async def test_another_revision_is_asked_again() -> None:
    old, new = Counter(revision="counter-1"), Counter(revision="counter-2")
    process = Process(old)
    state = await start(process)
    await ask(process, state, TAP)
    _, source = await ask(Process(new, shared=process), state, TAP)
    assert (source, new.predicted) == (Source.COMPUTED, 1)


async def test_the_first_stored_answer_wins_on_every_replica() -> None:
    """Two replicas of an engine that does not repeat itself, asked at the same time."""
    one = Process(Counter(deterministic=False, gate=asyncio.Event()))
    two = Process(Counter(deterministic=False, gate=asyncio.Event(), drift=100), shared=one)
    state = await start(one)
    asking = [asyncio.create_task(ask(process, state, Wait(), 1)) for process in (one, two)]
    for process in (one, two):
        while not process.backends[0].predicted:
            await asyncio.sleep(0)
    two.backends[0].gate.set()
    (later, _) = await asking[1]
    one.backends[0].gate.set()
    (first, _) = await asking[0]
    assert await value(two, later.state) == 106
    assert first.state == later.state
    assert (await ask(one, state, Wait(), 1))[0].state == later.state


async def test_a_prediction_that_failed_has_a_reason_and_no_state_and_is_not_retried() -> None:
    counter = Counter()
    process = Process(counter)
    state = await start(process)
    answer, _ = await ask(process, state, Type("x"))
    assert (answer.outcome, answer.state) == (Outcome.FAILED, None)
    assert answer.reason is FailureReason.TRUNCATED
    assert (answer.tokens, answer.finish_reason) == (8192, "length")
    again, source = await ask(Process(counter, shared=process), state, Type("x"))
    assert (again, source, counter.predicted) == (answer, Source.REDIS, 1)


async def test_a_next_state_that_is_gone_is_made_again() -> None:
    counter = Counter()
    process = Process(counter)
    state = await start(process)
    answer, _ = await ask(process, state, TAP)
    assert answer.state is not None
    await process.redis.delete(f"t:state:{answer.state.state_id}")
    restarted = Process(Counter(), shared=process)
    again, source = await ask(restarted, state, TAP)
    assert (again.state, source) == (answer.state, Source.COMPUTED)
    assert await value(Process(Counter(), shared=process), again.state) == 6


async def test_use_keeps_a_transition_and_its_next_state_alive() -> None:
    process = Process(Counter())
    state = await start(process)
    answer, _ = await ask(process, state, TAP)
    await process.redis.flushall()
    await ask(process, state, TAP)
    assert await process.index.renew() == 3  # both states and the transition
    restarted = Process(Counter(), shared=process)
    assert await ask(restarted, state, TAP) == (answer, Source.REDIS)
