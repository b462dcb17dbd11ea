"""Playing ahead: how far, in which order, and what a resumed run asks for again."""

import asyncio

import pytest

from services.trainer.ahead import Ahead, Draws, Mark
from services.trainer.jobs import TaskSampler
from services.trainer.recipe import Tasks
from services.trainer.summary import Transitions

TASKS = Tasks(templates=("a", "b", "c"), train_seeds=(0, 100))


class Stage:
    """Iterations that end when the test says so."""

    def __init__(self) -> None:
        self.begun: list[int] = []
        self.gates: dict[int, asyncio.Event] = {}
        self.news = asyncio.Event()

    async def play(self, iteration: int) -> str:
        self.begun.append(iteration)
        self.news.set()
        await self.gates.setdefault(iteration, asyncio.Event()).wait()
        return f"episodes {iteration}"

    def end(self, iteration: int) -> None:
        self.gates.setdefault(iteration, asyncio.Event()).set()

    async def until(self, iteration: int) -> None:
        while iteration not in self.begun:
            self.news.clear()
            await self.news.wait()

    def mark(self) -> Mark:
        return Mark(str(len(self.begun)), 0, Transitions())


async def test_on_policy_begins_nothing_ahead() -> None:
    stage = Stage()
    ahead = Ahead(stage.play, stage.mark, depth=0, last=9)
    for iteration in (1, 2):
        stage.end(iteration)
        assert await ahead.get(iteration) == f"episodes {iteration}"
        await ahead.settle()
        assert stage.begun[-1] == iteration
        assert ahead.begun(iteration + 1) is None


async def test_two_ahead_one_after_the_other_and_none_after_the_last() -> None:
    stage = Stage()
    ahead = Ahead(stage.play, stage.mark, depth=2, last=3)
    stage.end(1)
    await ahead.get(1)
    await stage.until(2)
    assert stage.begun == [1, 2]  # 3 waits until 2 has ended
    assert ahead.begun(2) == Mark("1", 0, Transitions())
    stage.end(2)
    await stage.until(3)
    stage.end(3)
    assert [await ahead.get(i) for i in (2, 3)] == ["episodes 2", "episodes 3"]
    await ahead.settle()
    assert stage.begun == [1, 2, 3]


async def test_a_failure_ahead_comes_out_when_its_episodes_are_asked_for() -> None:
    async def play(iteration: int) -> str:
        if iteration == 2:
            raise ValueError("broken")
        return "fine"

    ahead = Ahead(play, Stage().mark, depth=1, last=3)
    assert await ahead.get(1) == "fine"
    await ahead.settle()
    with pytest.raises(ValueError, match="broken"):
        await ahead.get(2)
    await ahead.stop()


def test_drawn_tasks_are_recalled_before_new_ones_are_drawn() -> None:
    whole = Draws(TaskSampler(TASKS, seed=3))
    first = [whole.take(i, 4) for i in (1, 2)]
    refill = whole.take(2, 1)
    assert whole.after(1) == {2: [*first[1], *refill]}
    state = whole.sampler.state()

    resumed = Draws(TaskSampler(TASKS, seed=8))
    resumed.sampler.restore(state)
    resumed.recall({2: [*first[1], *refill]})
    # Saved again before iteration 2 was played, it is still known.
    assert resumed.after(1) == {2: [*first[1], *refill]}
    assert resumed.take(2, 4) == first[1]
    assert resumed.take(2, 2) == [*refill, *whole.take(2, 1)]
    assert resumed.take(3, 3) == whole.take(3, 3)
