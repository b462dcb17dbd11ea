"""The fakes keep the promises of the ports that agents are built on."""

import pytest

from wmkit.domain.actions import Action, Back, Tap
from wmkit.domain.errors import StalePolicyVersion, StateNotFound, UnknownTask
from wmkit.domain.generation import FinishReason, Picture, Sampling, Text, Tokens, Turn
from wmkit.domain.screen import Point
from wmkit.domain.tasks import TaskRef, Verdict
from wmkit.domain.transition import FailureReason, ImageRequest, Outcome, Purpose
from wmkit.testing import FakePolicy, FakeWorldModel, read
from wmkit.testing.policy import END, IMAGE, START

QUESTION = (Turn("user", (Picture("d1"), Text("go"))),)


async def test_a_prompt_is_framed_turn_by_turn() -> None:
    policy = FakePolicy(lambda *_: "ok")
    answer = await policy.generate(QUESTION, Sampling())
    opened = [START, *b"user\n", *[IMAGE] * 4, *b"go", END, *b"\n", START, *b"assistant\n"]
    assert list(answer.prompt_token_ids) == opened
    assert list(answer.token_ids) == [*b"ok", END]
    assert answer.finish_reason is FinishReason.END
    assert len(answer.logprobs) == 3
    assert all(value < 0 for value in answer.logprobs)


async def test_a_continued_thought_starts_with_what_was_generated() -> None:
    policy = FakePolicy(lambda *_: "<call>x</call> more")
    first = await policy.generate(QUESTION, Sampling(stop=("</call>",)))
    assert (first.text, first.stop) == ("<call>x</call>", "</call>")
    said = Turn("assistant", (Tokens(first.token_ids),))
    second = await policy.generate((*QUESTION, said, *QUESTION), Sampling())
    begin = first.prompt_token_ids + first.token_ids
    assert second.prompt_token_ids[: len(begin)] == begin


async def test_a_turn_that_ended_itself_is_not_closed_twice() -> None:
    policy = FakePolicy(lambda *_: "ok")
    first = await policy.generate(QUESTION, Sampling())
    said = Turn("assistant", (Tokens(first.token_ids),))
    second = await policy.generate((*QUESTION, said), Sampling())
    glue = second.prompt_token_ids[len(first.prompt_token_ids) :]
    assert list(glue) == [*b"ok", END, *b"\n", START, *b"assistant\n"]


async def test_the_token_limit_counts() -> None:
    answer = await FakePolicy(lambda *_: "abcdef").generate(QUESTION, Sampling(max_new_tokens=4))
    assert (answer.text, answer.finish_reason) == ("abcd", FinishReason.LENGTH)
    assert len(answer.token_ids) == 4


async def test_versions_only_grow() -> None:
    policy = FakePolicy(lambda *_: "")
    assert await policy.update_weights("run", 0, "w") == 0
    assert await policy.update_weights("run", 1, "w") == 1
    with pytest.raises(StalePolicyVersion):
        await policy.update_weights("run", 1, "w")
    with pytest.raises(StalePolicyVersion):
        await policy.generate(QUESTION, Sampling(), policy_id="run", min_version=2)
    assert (await policy.generate(QUESTION, Sampling(), policy_id="run")).version == 1


def test_a_conversation_reads_as_text() -> None:
    turns = (*QUESTION, Turn("assistant", (Tokens((*b"ok", END)),)))
    assert read(turns) == "user: [picture]go\nassistant: ok"


def _walk(state: str, action: Action) -> str | FailureReason:
    match action:
        case Tap():
            return "goal"
        case Back():
            return FailureReason.TRUNCATED
        case _:
            return state


async def test_the_world_moves_as_its_function_says() -> None:
    world, task = FakeWorldModel(_walk), TaskRef(template="fake", seed=1)
    start = (await world.create_state(task)).state.state_id
    tap = Tap(Point(0.5, 0.5))
    moved = await world.step(start, tap, purpose=Purpose.IMAGINE, image=ImageRequest())
    assert moved.outcome is Outcome.CHANGED
    assert moved.state is not None
    assert moved.image is not None
    assert moved.image.data.startswith(b"\x89PNG")
    assert await world.blobs.get(moved.image.digest) == moved.image.data
    failed = await world.step(start, Back(), purpose=Purpose.COMMIT)
    assert (failed.outcome, failed.reason, failed.state) == (
        Outcome.FAILED,
        FailureReason.TRUNCATED,
        None,
    )
    assert world.steps == [("start", tap, Purpose.IMAGINE), ("start", Back(), Purpose.COMMIT)]
    assert (await world.judge(task, start)).verdict is Verdict.FAILURE
    assert (await world.judge(task, moved.state.state_id)).verdict is Verdict.SUCCESS


async def test_the_world_knows_its_states_and_tasks_only() -> None:
    world = FakeWorldModel(_walk)
    with pytest.raises(StateNotFound):
        await world.get_state("nowhere")
    with pytest.raises(UnknownTask):
        await world.create_state(TaskRef(template="other", seed=1))
