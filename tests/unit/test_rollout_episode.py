"""How an episode is played: what counts, what ends it, what the agent is told."""

import dataclasses
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from services.rollout.episode import play
from tests.rollout_cases import (
    FINISH,
    SCREEN,
    L,
    R,
    a_job,
    a_world,
    acts,
    an_agent,
    call,
    letters,
    state,
)
from wmkit.domain.episode import Ending, Trajectory
from wmkit.domain.generation import Generation
from wmkit.domain.tasks import Verdict
from wmkit.domain.transition import FailureReason, Outcome, Purpose
from wmkit.testing import FakePolicy, FakeWorldModel, read


async def run(*stretches: str, world: FakeWorldModel | None = None, **job: Any) -> Trajectory:
    return await play(
        a_job(**job),
        world=world or a_world(),
        policy=an_agent(*stretches),
        worker="w1",
        patience_s=0.0,
    )


def told(policy: FakePolicy, stretch: int) -> str:
    """The last turn that the agent saw before it wrote its n-th stretch (from 0)."""
    return read(policy.calls[stretch][0][-1:])


async def test_an_episode_commits_its_actions_and_ends_when_the_agent_says_so() -> None:
    job = a_job()
    trajectory = await run(acts(R), acts("wait()"), FINISH)
    assert trajectory.job == job
    assert [s.state_id for s in trajectory.steps] == [
        state("start"),
        state("startR"),
        state("startR"),
    ]
    assert [s.next_state_id for s in trajectory.steps] == [state("startR"), state("startR"), ""]
    assert [s.outcome for s in trajectory.steps] == [Outcome.CHANGED, Outcome.UNCHANGED, None]
    assert trajectory.steps[0].thought == "So."
    assert trajectory.steps[0].action == {"action": "tap", "point": [42.5 / 56, 28.5 / 56]}
    assert (trajectory.ending, trajectory.finish_status) == (Ending.FINISH, "success")
    assert trajectory.judgement.verdict is Verdict.SUCCESS
    assert trajectory.final_state_id == state("startR")
    assert (trajectory.length, trajectory.calls) == (2, 0)  # finish does not count, wait does
    assert trajectory.screen == {
        "width_px": 27,
        "height_px": 60,
        "scale": 1.0,
        "orientation": "portrait",
    }
    assert (trajectory.worker, trajectory.backend, trajectory.revision) == ("w1", "fake", "1")


@pytest.mark.parametrize(
    ("said", "ending", "answer", "status"),
    [
        ("finished()", Ending.FINISH, None, "success"),
        ("finished(status='infeasible')", Ending.FINISH, None, "infeasible"),
        ("finished(content='42')", Ending.ANSWER, "42", None),
    ],
)
async def test_the_judge_hears_how_the_agent_ended_the_episode(
    said: str, ending: Ending, answer: str | None, status: str | None
) -> None:
    heard: list[tuple[object, ...]] = []

    class Court(FakeWorldModel):
        async def judge(self, task: Any, final_state_id: str, **words: Any) -> Any:
            heard.append((str(task), final_state_id, words["answer"], words["finish_status"]))
            return await super().judge(task, final_state_id)

    world = Court(letters, screen=SCREEN)
    trajectory = await run(acts(L), acts(said), world=world)
    assert heard == [("fake:3", state("startL"), answer, status)]
    assert (trajectory.ending, trajectory.answer, trajectory.finish_status) == (
        ending,
        answer,
        status,
    )


async def test_the_step_limit_ends_an_episode_and_the_state_is_judged() -> None:
    trajectory = await run(acts(R), *[acts("wait()")] * 30)
    assert trajectory.ending is Ending.STEP_LIMIT
    assert (trajectory.length, len(trajectory.steps)) == (20, 20)
    assert trajectory.judgement.verdict is Verdict.SUCCESS  # the fake phone is at its goal
    assert trajectory.finish_status is None


@pytest.mark.parametrize(
    ("stretch", "said"),
    [
        ("<think>hm</think>\nAction: dance()", "dance"),
        ("<think>for ever", "not closed"),
        ("<think>hm</think>\n", "no action"),
        ("", "no action"),
        (acts("type(content='x')"), "no field to type into"),  # the world refuses it
    ],
)
async def test_an_answer_that_cannot_be_carried_out_ends_the_episode_as_the_agents_doing(
    stretch: str, said: str
) -> None:
    trajectory = await run(acts(L), stretch)
    last = trajectory.steps[-1]
    assert trajectory.ending is Ending.UNPARSABLE
    assert said in last.parse_error
    assert (last.action, last.outcome, last.next_state_id) == (None, None, "")
    assert trajectory.judgement.verdict is Verdict.FAILURE
    assert trajectory.final_state_id == state("startL")
    assert trajectory.length == 2  # an unparsable action counts


UNREADABLE = "<think>hm</think>\nAction: dance()"


async def test_a_second_try_is_granted_once_a_step_and_counts_as_one_step() -> None:
    policy = an_agent(UNREADABLE, acts(L), acts(R), UNREADABLE, FINISH)
    trajectory = await play(a_job(retry_unparsable=True), world=a_world(), policy=policy)
    assert trajectory.ending is Ending.FINISH
    assert [step.action["action"] for step in trajectory.steps if step.action] == [
        *("tap", "tap", "finish"),
    ]
    assert trajectory.length == 2
    first, second, third = trajectory.steps
    assert "unknown action 'dance'" in first.retried
    assert (first.parse_error, second.retried) == ("", "")
    assert first.text == UNREADABLE + acts(L)
    assert first.thought == "hm\nSo."
    assert third.retried == first.retried
    assert told(policy, 1).startswith("user: Your action could not be read: unknown action 'dance'")


async def test_after_a_second_unreadable_answer_the_episode_ends() -> None:
    trajectory = await run(UNREADABLE, UNREADABLE.replace("dance", "sing"), retry_unparsable=True)
    (step,) = trajectory.steps
    assert trajectory.ending is Ending.UNPARSABLE
    assert trajectory.length == 1
    assert "dance" in step.retried
    assert "sing" in step.parse_error


async def test_a_second_try_may_go_on_thinking_with_the_world_model() -> None:
    trajectory = await run(
        f"<think>{call(L)}",
        "</think>\nAction: dance()",
        f"<think>{call(R, parent=1)}",
        "</think>\nAction: " + R,
        FINISH,
        retry_unparsable=True,
    )
    calls = trajectory.steps[0].imagined
    assert [(c.k, c.parent, c.answered) for c in calls] == [(1, 0, True), (2, 1, True)]
    assert trajectory.calls == 2
    assert trajectory.steps[0].next_state_id == state("startR")


async def test_an_answer_cut_at_its_limit_is_unparsable_even_when_an_action_stands_in_it() -> None:
    trajectory = await run(acts(R) + " and then", max_new_tokens=len(acts(R)))
    assert trajectory.ending is Ending.UNPARSABLE
    assert f"cut at {len(acts(R))} tokens" in trajectory.steps[0].parse_error


async def test_calls_are_answered_from_the_real_screen_or_from_an_imagined_one() -> None:
    world = a_world()
    policy = an_agent(
        "<think>Try " + call(R),
        " or " + call(L),
        " then " + call(R, parent=2),
        " fine.</think>\nAction: " + R,
        FINISH,
    )
    trajectory = await play(a_job(), world=world, policy=policy)
    assert [(word, purpose) for word, _, purpose in world.steps] == [
        ("start", Purpose.IMAGINE),
        ("start", Purpose.IMAGINE),
        ("startL", Purpose.IMAGINE),
        ("start", Purpose.COMMIT),
    ]
    seen = trajectory.steps[0].imagined
    assert [(c.k, c.parent, c.state_id, c.answered) for c in seen] == [
        (1, 0, state("startR"), True),
        (2, 0, state("startL"), True),
        (3, 2, state("startLR"), True),
    ]
    assert trajectory.calls == 3
    assert trajectory.steps[1].imagined == ()
    assert "Imagined screen after " + R in told(policy, 3)
    assert "(3 of 5 calls)" in told(policy, 3)


async def test_budgets_are_per_thought_and_per_episode_and_reset_with_each() -> None:
    policy = an_agent(
        "<think>" + call(L), call(L), call(L), "</think>Action: wait()",  # 2 of 3
        "<think>" + call(L), call(L), "</think>Action: wait()",  # the third of 3
        "<think>" + call(L), "</think>Action: finished()",  # none is left
    )  # fmt: skip
    job = a_job(max_calls=3, max_calls_per_thought=2)
    trajectory = await play(job, world=a_world(), policy=policy)
    assert [[c.k for c in s.imagined] for s in trajectory.steps] == [[1, 2, 0], [1, 0], [0]]
    assert trajectory.calls == 3
    notes = [c.note for s in trajectory.steps for c in s.imagined if not c.answered]
    assert ["all 2 " in notes[0], "all 3 " in notes[1], "all 3 " in notes[2]] == [True] * 3
    assert "(1 of 1 calls)" in told(policy, 5)
    first_prompts = [read(policy.calls[i][0]) for i in (0, 4, 7)]
    for prompt, left in zip(first_prompts, (3, 1, 0), strict=True):
        assert f"calls left in this task: {left}\n" in prompt
    again = await play(
        job, world=a_world(), policy=an_agent("<think>" + call(L), "</think>Action: finished()")
    )
    assert again.calls == 1


@pytest.mark.parametrize(
    ("written", "told_why"),
    [
        (call("dance()"), "dance"),
        (call(""), "names no action"),
        (call(L, parent=1), "no imagined screen 1"),
        (call("finished()"), "ends the task"),
        (call("type(content='x')"), "no field to type into"),
        (call("scroll(direction='up')"), "could not draw"),
        ("done</think>\n" + call(L), "before </think>"),
    ],
)
async def test_a_call_without_a_screen_is_answered_by_a_sentence_and_does_not_count(
    written: str, told_why: str
) -> None:
    policy = an_agent("<think>" + written, "</think>\nAction: " + R, FINISH)
    trajectory = await play(a_job(), world=a_world(), policy=policy, patience_s=0.0)
    (refused,) = trajectory.steps[0].imagined
    assert told_why in refused.note
    assert told(policy, 1).removeprefix("user: ").strip() == refused.note
    assert (refused.k, refused.answered, refused.screenshot) == (0, False, "")
    assert trajectory.calls == 0
    assert trajectory.final_state_id == state("startR")


async def test_calls_without_a_screen_leave_the_budget_of_the_thought_alone() -> None:
    trajectory = await run(
        "<think>" + call("junk"), call("scroll(direction='up')"), call(R), call(L),
        "</think>Action: finished()",
        max_calls_per_thought=1,
    )  # fmt: skip
    assert [c.answered for c in trajectory.steps[0].imagined] == [False, False, True, False]


async def test_points_are_pixels_of_the_current_real_screen_as_the_model_saw_it() -> None:
    """Older and imagined screens may have been resized to another size."""

    class Resizing(FakePolicy):
        async def generate(self, *args: Any, **kwargs: Any) -> Generation:
            answer = await super().generate(*args, **kwargs)
            current = 1 if len(self.calls) > 1 else 0
            sizes = [56 if i == current else 20 for i in range(len(answer.images))]
            images = [
                dataclasses.replace(image, width_px=size, height_px=size)
                for image, size in zip(answer.images, sizes, strict=True)
            ]
            return dataclasses.replace(answer, images=tuple(images))

    script = an_agent(acts("wait()"), "<think>" + call(R), "</think>Action: " + L, FINISH)
    world = a_world()
    trajectory = await play(a_job(history=2), world=world, policy=Resizing(script._answer))
    (looked,) = trajectory.steps[1].imagined
    assert looked.action == {"action": "tap", "point": [42.5 / 56, 28.5 / 56]}
    assert trajectory.steps[1].action == {"action": "tap", "point": [14.5 / 56, 28.5 / 56]}


async def test_a_failed_imagination_names_its_reason_and_does_not_end_the_episode() -> None:
    trajectory = await run(
        "<think>" + call("scroll(direction='up')"), call(R), "</think>Action: finished()"
    )
    failed, seen = trajectory.steps[0].imagined
    assert (failed.outcome, failed.reason) == (Outcome.FAILED, FailureReason.TRUNCATED)
    assert (seen.k, seen.answered) == (1, True)
    assert trajectory.ending is Ending.FINISH


async def test_an_agent_that_only_keeps_calling_is_unreadable() -> None:
    trajectory = await run("<think>" + call("dance()"), *[call("dance()")] * 9)
    assert trajectory.ending is Ending.UNPARSABLE
    assert "4 calls to the world model were refused" in trajectory.steps[0].parse_error
    assert len(trajectory.steps[0].imagined) == 4


async def test_a_world_model_that_keeps_failing_is_not_asked_for_ever() -> None:
    world = a_world()
    scroll = call("scroll(direction='up')")
    trajectory = await run("<think>" + scroll, *[scroll] * 9, world=world)
    assert trajectory.ending is Ending.UNPARSABLE
    assert len(world.steps) == 3


async def test_the_older_spelling_of_a_call_is_answered_too() -> None:
    older = "call_wm(action=\"tap(start_box='(14,28)')\")"
    trajectory = await run("<think>" + older, "</think>Action: finished()")
    assert [c.state_id for c in trajectory.steps[0].imagined] == [state("startL")]


async def test_without_the_tool_calls_are_refused() -> None:
    policy = an_agent("<think>" + call(L), "</think>Action: finished()")
    job = a_job(max_calls_per_thought=0)
    trajectory = await play(job, world=a_world(), policy=policy)
    assert trajectory.calls == 0
    assert trajectory.ending is Ending.FINISH


async def test_the_prompt_holds_the_last_real_screens_and_the_log_of_actions() -> None:
    policy = an_agent(acts(R), acts(L), "<think>" + call(R), "</think>Action: finished()")
    trajectory = await play(a_job(history=2), world=a_world(), policy=policy)
    shots = [step.screenshot for step in trajectory.steps]
    pictures = [[i.digest for i in step.segment.images] for step in trajectory.steps]
    imagined = trajectory.steps[2].imagined[0].screenshot
    assert pictures == [shots[:1], shots[:2], [*shots[1:3], imagined]]
    prompt = read(policy.calls[2][0])
    assert prompt.index("1. " + R) < prompt.index("2. " + L)
    assert "<think>So.</think>" not in prompt.split("\nuser: ")[1]  # past thoughts are dropped


async def test_everything_needed_to_branch_is_in_the_trajectory() -> None:
    trajectory = await run("<think>" + call(L), "</think>Action: " + R, FINISH)
    words = ("start", "startL", "startR")
    assert trajectory.payloads == {state(w): state(w) for w in words}  # of the fake world


async def test_trajectories_survive_their_storage() -> None:
    trajectory = await run("<think>" + call(L), "</think>Action: " + R, FINISH)
    assert Trajectory.model_validate_json(trajectory.model_dump_json()) == trajectory


Actions = st.lists(st.sampled_from([L, R, "wait()", "press_back()"]), min_size=1, max_size=6)
Calls = st.lists(
    st.tuples(
        st.sampled_from([L, R, "wait()", "press_back()", "scroll(direction='up')", "junk"]),
        st.integers(0, 3),
    ),
    max_size=6,
)


@settings(deadline=None, max_examples=60)
@given(committed=Actions, data=st.data())
async def test_imagining_never_changes_the_committed_path(committed: list[str], data: Any) -> None:
    plain = await run(*[acts(a) for a in committed], FINISH)
    stretches: list[str] = []
    for action in committed:
        calls = data.draw(Calls)
        # Refusals are bounded per thought, so that only three may be asked for in vain.
        sound = [c for c in calls if c[1] == 0 and c[0] not in ("junk", "scroll(direction='up')")]
        odd = [c for c in calls if c not in sound][:3]
        written = [call(a, parent) for a, parent in sound + odd]
        stretches += [("<think>" if i == 0 else "") + w for i, w in enumerate(written)]
        stretches.append(("" if written else "<think>") + "</think>\nAction: " + action)
    looked = await run(*stretches, FINISH, max_calls=100, max_calls_per_thought=10)
    assert [s.state_id for s in looked.steps] == [s.state_id for s in plain.steps]
    assert looked.final_state_id == plain.final_state_id
    assert [s.action for s in looked.steps] == [s.action for s in plain.steps]
