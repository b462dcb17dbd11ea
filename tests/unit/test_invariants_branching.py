"""Invariant 1: a state is an immutable value, so imagining never disturbs what is committed."""

import asyncio

from hypothesis import given, settings

from services.worldmodel.backends.scripted import Scripted
from tests.walks import Walk, walks
from tests.worldmodel_fakes import Process
from wmkit.domain.transition import Outcome, Purpose
from wmkit.ports import WorldModel

SCRIPTED = Scripted()


async def play(world: WorldModel, walk: Walk, *, imagine: bool, at_once: bool = False) -> list[str]:
    """Play a walk; the committed state ids. `at_once` leaves the dreams running meanwhile."""
    state = (await world.create_state(walk.task)).state.state_id
    committed, dreams = [state], []

    async def dream(real: str, index: int) -> None:
        imagined = real
        for deeper, action in walk.commits[index].imagined:
            start = imagined if deeper else real
            answer = await world.step(start, action, purpose=Purpose.IMAGINE)
            assert answer.state is not None
            imagined = answer.state.state_id

    for index, commit in enumerate(walk.commits):
        if imagine:
            dreams.append(asyncio.ensure_future(dream(state, index)))
            if not at_once:
                await dreams[-1]
        answer = await world.step(state, commit.action, purpose=Purpose.COMMIT)
        assert answer.state is not None
        unchanged = answer.state.state_id == state
        assert answer.outcome is (Outcome.UNCHANGED if unchanged else Outcome.CHANGED)
        state = answer.state.state_id
        committed.append(state)
    await asyncio.gather(*dreams)
    return committed


@settings(max_examples=40, deadline=None)
@given(walk=walks())
async def test_committed_states_are_the_same_with_and_without_imagination(walk: Walk) -> None:
    expected = list(walk.expected)
    assert await play(Process(SCRIPTED).world, walk, imagine=False) == expected
    dreamer = Process(SCRIPTED)
    assert await play(dreamer.world, walk, imagine=True) == expected
    assert await play(dreamer.world, walk, imagine=False) == expected, "what it left in the cache"
    restarted = Process(SCRIPTED, shared=dreamer)
    assert await play(restarted.world, walk, imagine=False) == expected


@settings(max_examples=15, deadline=None)
@given(walk=walks())
async def test_imagining_while_committing_and_forgetting_changes_nothing(walk: Walk) -> None:
    """Dreams run beside the commits, on a process that keeps two states in memory."""
    process = Process(SCRIPTED, live=2)
    ids = await play(process.world, walk, imagine=True, at_once=True)
    assert ids == list(walk.expected)


@settings(max_examples=15, deadline=None)
@given(walk=walks(max_length=5))
async def test_any_state_can_start_a_branch_again(walk: Walk) -> None:
    process = Process(SCRIPTED)
    ids = await play(process.world, walk, imagine=True)
    for before, commit, after in zip(ids, walk.commits, ids[1:], strict=False):
        answer = await process.world.step(before, commit.action, purpose=Purpose.IMAGINE)
        assert answer.state is not None
        assert answer.state.state_id == after
