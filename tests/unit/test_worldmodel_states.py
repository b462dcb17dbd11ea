"""States are immutable values named by their content; they outlive the process."""

import pytest
from blake3 import blake3

from services.worldmodel.states import screen_name, state_name
from tests.worldmodel_fakes import Counter, Process
from wmkit.domain.errors import StateNotFound
from wmkit.domain.screen import Screen

SCREEN = Screen(100, 200)


def test_a_name_is_blake3_over_schema_backend_screen_kind_and_payload() -> None:
    expected = blake3(b"state/1\ncounter\n100x200@1.0\nnumber\nabc").hexdigest()
    assert state_name("counter", SCREEN, "number", "abc") == expected
    others = {
        state_name("other", SCREEN, "number", "abc"),
        state_name("counter", Screen(200, 100), "number", "abc"),
        state_name("counter", Screen(100, 200, 2.0), "number", "abc"),
        state_name("counter", SCREEN, "html", "abc"),
        state_name("counter", SCREEN, "number", "abd"),
        screen_name("counter", SCREEN, "abc"),
    }
    assert len(others | {expected}) == 7


async def test_equal_values_are_one_state_and_are_written_once() -> None:
    counter = Counter()
    process = Process(counter)
    first = await process.states.put(counter, 5)
    assert await process.states.put(counter, 5) == first
    assert counter.dumped == 1
    assert first.state_id == state_name("counter", SCREEN, "number", blake3(b"5").hexdigest())
    assert await process.blobs.get(first.payload_digest) == b"5"


async def test_what_looks_alike_shares_its_screen_and_not_its_state() -> None:
    counter = Counter()
    process = Process(counter)
    plus, minus = await process.states.put(counter, 5), await process.states.put(counter, -5)
    assert plus.screen_id == minus.screen_id
    assert plus.state_id != minus.state_id


async def test_a_state_outlives_the_process() -> None:
    counter = Counter()
    before = Process(counter)
    state = await before.states.put(counter, 5)
    after = Process(Counter(), shared=before)
    live = await after.states.get(state.state_id)
    assert live.state == state
    assert await after.states.value(live) == 5


async def test_a_state_that_fell_out_of_memory_is_found_again() -> None:
    counter = Counter()
    process = Process(counter, live=1)
    state = await process.states.put(counter, 5)
    await process.states.put(counter, 6)
    live = await process.states.get(state.state_id)
    assert live.value is None
    assert await process.states.value(live) == 5


async def test_use_renews_a_state_and_restores_its_record() -> None:
    counter = Counter()
    process = Process(counter)
    state = await process.states.put(counter, 5)
    await process.redis.flushall()
    await process.states.get(state.state_id)
    assert await process.index.renew() == 1
    assert (await Process(Counter(), shared=process).states.get(state.state_id)).state == state


@pytest.mark.parametrize(
    ("state_id", "words"),
    [("ab" * 32, "lifetime has ended"), ("nope", "64 hex digits"), ("", "64 hex digits")],
)
async def test_a_state_that_does_not_exist(state_id: str, words: str) -> None:
    with pytest.raises(StateNotFound, match=words) as caught:
        await Process(Counter()).states.get(state_id)
    assert caught.value.resource == state_id


async def test_a_state_without_its_payload_says_so() -> None:
    counter = Counter()
    before = Process(counter)
    state = await before.states.put(counter, 5)
    after = Process(Counter(), shared=before)
    after.blobs._blobs.clear()
    with pytest.raises(StateNotFound, match="lost its payload"):
        await after.states.value(await after.states.get(state.state_id))


class Renumbered(Counter):
    """A later version that reads old payloads as something else."""

    def loads(self, data: bytes) -> int:
        return int(data) + 1


class Rewritten(Counter):
    """A later version that cannot read old payloads."""

    def loads(self, data: bytes) -> int:
        raise ValueError("not a number")


@pytest.mark.parametrize("later", [Renumbered, Rewritten])
async def test_a_payload_that_means_something_else_now_is_refused(later: type[Counter]) -> None:
    counter = Counter()
    before = Process(counter)
    state = await before.states.put(counter, 5)
    after = Process(later(revision="counter-2"), shared=before)
    with pytest.raises(StateNotFound, match="made by counter-1, which counter-2 cannot read"):
        await after.states.value(await after.states.get(state.state_id))
