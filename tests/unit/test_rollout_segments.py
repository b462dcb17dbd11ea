"""Token-exactness of segments: a golden episode, exact positions, and what must not pass."""

import dataclasses
import os
from itertools import groupby
from pathlib import Path
from typing import Any

import pytest

from services.rollout.episode import play
from services.rollout.failures import EpisodeFailed
from services.rollout.segments import BrokenSegment, SegmentBuilder
from tests.rollout_cases import FINISH, L, R, a_job, a_world, acts, an_agent, call
from wmkit.domain.episode import Segment, Step, Trajectory
from wmkit.domain.generation import EncodedImage, FinishReason, Generation
from wmkit.testing import FakePolicy
from wmkit.testing.policy import END, IMAGE, START

RETRY = Path(__file__).parents[1] / "golden" / "rollout" / "retry.txt"
GOLDEN = Path(__file__).parents[1] / "golden" / "rollout" / "three_calls.txt"

LOOKS = (
    "<think>Left or right? " + call(L),
    " No. And the right half? " + call(R),
    " Good; and once more there? " + call(R, parent=2),
    " No need. One more look: " + call(L),
    " Right it is.</think>\nAction: " + R,
)


def shown(ids: tuple[int, ...]) -> str:
    """Tokens of the fake policy as text: bytes, turn marks, one `▩` for each patch."""
    special = {START: "⟦", END: "⟧", IMAGE: "▩"}
    out = b"".join(special[i].encode() if i in special else bytes([i]) for i in ids)
    return out.decode()


def runs(segment: Segment) -> str:
    """A segment for reading: what was given (`|`) and what was sampled (`>`), run by run."""
    lines = []
    rows = list(zip(segment.token_ids, segment.mask, segment.versions, strict=True))
    for (mask, version), run in groupby(rows, key=lambda row: row[1:]):
        ids = tuple(row[0] for row in run)
        mark = f"sampled, version {version}" if mask else "given"
        lines.append(f"--- {len(ids)} tokens {mark}")
        lines += [("> " if mask else "| ") + line for line in shown(ids).split("\n")]
    return "\n".join(lines)


def pages(trajectory: Trajectory) -> str:
    def page(step: Step) -> str:
        head = f"=== step {step.index}: {len(step.segment.images)} pictures"
        calls = [f"call k={c.k} from={c.parent}: {c.text} {c.note}" for c in step.imagined]
        return "\n".join([head, *(line.rstrip() for line in calls), runs(step.segment)])

    return "\n".join(page(step) for step in trajectory.steps) + "\n"


async def test_golden_episode_with_three_calls_one_chained_and_one_over_budget() -> None:
    """Read the file: it shows which tokens of which turn would be trained on.

    WMR1_UPDATE_GOLDEN=1 writes it anew; read the difference before you keep it.
    """
    policy = an_agent(*LOOKS, FINISH)
    job = a_job(max_calls=3, max_calls_per_thought=3, history=2)
    found = pages(await play(job, world=a_world(), policy=policy))
    if os.environ.get("WMR1_UPDATE_GOLDEN"):
        GOLDEN.write_text(found)
    assert found == GOLDEN.read_text()


async def test_a_second_try_is_the_same_segment_from_prompt_to_masks() -> None:
    """As above, for a step whose first answer could not be read."""
    policy = an_agent("<think>Left?</think>\nAction: tap the left one", acts(L), FINISH)
    found = pages(await play(a_job(retry_unparsable=True), world=a_world(), policy=policy))
    if os.environ.get("WMR1_UPDATE_GOLDEN"):
        RETRY.write_text(found)
    assert found == RETRY.read_text()


async def test_exactly_the_sampled_tokens_are_marked_with_their_own_log_probabilities() -> None:
    policy = an_agent(*LOOKS, FINISH)
    policy.version = 4
    trajectory = await play(a_job(), world=a_world(), policy=policy)
    segment = trajectory.steps[0].segment
    written = []
    for start, end in spans(segment):
        ids = segment.token_ids[start:end]
        written.append(bytes(i for i in ids if i < 256).decode())
        # The fake policy's log-probability of a token is -(id % 8 + 1) / 8.
        assert segment.logprobs[start:end] == tuple(-(i % 8 + 1) / 8 for i in ids)
        assert set(segment.versions[start:end]) == {4}
        assert shown(segment.token_ids[:start]).endswith("⟦assistant\n")
    assert tuple(written) == LOOKS
    given = [i for i, sampled in enumerate(segment.mask) if not sampled]
    assert {segment.logprobs[i] for i in given} == {0.0}
    assert {segment.versions[i] for i in given} == {-1}
    assert segment.token_ids.count(IMAGE) == 4 * len(segment.images) == 4 * (1 + 4)
    # Only the last stretch ended its own turn; the marks after the calls are glue.
    ends = [i for i, token in enumerate(segment.token_ids) if token == END]
    assert [segment.mask[i] for i in ends if i >= spans(segment)[0][0]] == [0] * 8 + [1]


async def test_a_weight_update_within_a_thought_is_told_apart_token_by_token() -> None:
    policy = an_agent("<think>" + call(L), "</think>Action: wait()", FINISH)

    class Updated(FakePolicy):
        async def generate(self, *args: Any, **kwargs: Any) -> Generation:
            policy.version += 1
            return await policy.generate(*args, **kwargs)

    job = a_job(mixed_versions=True)
    trajectory = await play(job, world=a_world(), policy=Updated(policy._answer))
    first, second = (step.segment for step in trajectory.steps)
    assert [set(first.versions[a:b]) for a, b in spans(first)] == [{1}, {2}]
    assert [set(second.versions[a:b]) for a, b in spans(second)] == [{3}]


def spans(segment: Segment) -> list[tuple[int, int]]:
    """Start and end of each run of sampled tokens."""
    edges = (0, *segment.mask, 0)
    starts = [i for i in range(len(edges) - 1) if (edges[i], edges[i + 1]) == (0, 1)]
    ends = [i for i in range(len(edges) - 1) if (edges[i], edges[i + 1]) == (1, 0)]
    return list(zip(starts, ends, strict=True))


PICTURE = EncodedImage("aa", 56, 56, (1, 4, 4))
FIRST = Generation((1, 2), (3, 4), (-0.5, -0.25), "", FinishReason.STOP, "p", 0, (PICTURE,), "x")
SECOND = dataclasses.replace(
    FIRST, prompt_token_ids=(1, 2, 3, 4, 5), token_ids=(6,), logprobs=(-1.0,), version=1
)


def test_a_segment_by_hand() -> None:
    builder = SegmentBuilder()
    builder.add(FIRST, ["aa"])
    builder.add(SECOND, ["aa"])
    segment = builder.build()
    assert segment.token_ids == (1, 2, 3, 4, 5, 6)
    assert segment.mask == (0, 0, 1, 1, 0, 1)
    assert segment.logprobs == (0.0, 0.0, -0.5, -0.25, 0.0, -1.0)
    assert segment.versions == (-1, -1, 0, 0, -1, 1)


def test_answers_without_log_probabilities_are_never_marked_for_training() -> None:
    builder = SegmentBuilder()
    builder.add(dataclasses.replace(FIRST, logprobs=()), ["aa"])
    builder.add(dataclasses.replace(SECOND, logprobs=()), ["aa"])
    segment = builder.build()
    assert segment.token_ids == (1, 2, 3, 4, 5, 6)
    assert set(segment.mask) == {0}
    mixed = SegmentBuilder()
    mixed.add(dataclasses.replace(FIRST, logprobs=()), ["aa"])
    mixed.add(SECOND, ["aa"])
    assert mixed.build().mask == (0, 0, 0, 0, 0, 1)


@pytest.mark.parametrize(
    ("change", "complaint"),
    [
        ({"prompt_token_ids": (1, 2, 3, 9, 5)}, "does not start with the tokens"),
        ({"prompt_token_ids": (1, 9, 3, 4, 5)}, "does not start with the tokens"),
        ({"prompt_token_ids": (1, 2, 3)}, "does not start with the tokens"),
        ({"logprobs": ()}, "1 tokens but 0 log-probabilities"),
        ({"logprobs": (float("nan"),)}, "not finite"),
        ({"logprobs": (float("-inf"),)}, "not finite"),
        ({"processor": "y"}, "another processor"),
        ({"images": ()}, "not those that were sent"),
        ({"images": (dataclasses.replace(PICTURE, grid_thw=(1, 2, 2)),)}, "encoded anew"),
    ],
)
def test_stretches_that_do_not_fit_together_are_an_error_and_no_data(
    change: dict[str, Any], complaint: str
) -> None:
    builder = SegmentBuilder()
    builder.add(FIRST, ["aa"])
    with pytest.raises(BrokenSegment, match=complaint):
        builder.add(dataclasses.replace(SECOND, **change), ["aa"])


async def test_a_policy_that_tokenises_again_loses_the_episode_not_the_truth() -> None:
    policy = an_agent("<think>" + call(L), "</think>Action: wait()")

    class Retokenising(FakePolicy):
        async def generate(self, *args: Any, **kwargs: Any) -> Generation:
            answer = await policy.generate(*args, **kwargs)
            ids = list(answer.prompt_token_ids)
            ids[10:12] = [300]
            changed = len(policy.calls) > 1
            return dataclasses.replace(answer, prompt_token_ids=tuple(ids)) if changed else answer

    with pytest.raises(EpisodeFailed, match="does not start with") as failure:
        await play(a_job(), world=a_world(), policy=Retokenising(policy._answer))
    assert (failure.value.retryable, failure.value.hopeless) == (False, False)


async def test_a_step_without_calls_is_one_sampled_run_that_ends_the_sequence() -> None:
    trajectory = await play(a_job(), world=a_world(), policy=an_agent(acts(R), FINISH))
    for step in trajectory.steps:
        ((start, end),) = spans(step.segment)
        assert end == len(step.segment.token_ids)
        assert shown(step.segment.token_ids[start:end]) == step.text + "⟧"
