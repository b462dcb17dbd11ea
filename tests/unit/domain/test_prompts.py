"""Prompts as golden files, and the exact text that the tiny policy was trained on."""

import os
from pathlib import Path

import pytest

from wmkit.domain import dialects, prompts
from wmkit.domain.actions import Scroll, Swipe, Tap, Type, Wait
from wmkit.domain.episode import EpisodeSpec
from wmkit.domain.generation import Picture, Text, Turn
from wmkit.domain.screen import Point, View
from wmkit.domain.tasks import Task, TaskRef

GOLDEN = Path(__file__).parents[2] / "golden" / "prompts"
VIEW = View((1080, 2400), (672, 1484))
TASK = Task(
    ref=TaskRef(template="wifi", seed=1),
    goal="Turn on Wi-Fi, then note the name of the network.",
    complexity=4,
    step_limit=20,
    apps=("Settings", "Notes"),
    main_app="Settings",
    kind="toggle",
)
LOG: list[prompts.LogEntry] = [
    Tap(Point(0.5, 0.5)),
    "tap the blue button\nplease",
    Scroll("down"),
    Type("it's"),
]


def as_text(turns: tuple[Turn, ...]) -> str:
    lines = []
    for turn in turns:
        lines.append(f"=== {turn.role}")
        for part in turn.parts:
            if isinstance(part, Picture):
                lines.append(f"[picture {part.digest}]")
            else:
                assert isinstance(part, Text)
                lines.append(part.text)
    return "\n".join(lines) + "\n"


def compare(name: str, turns: tuple[Turn, ...]) -> None:
    """To accept a deliberate change: WMR1_WRITE_GOLDEN=1 pytest tests/unit/domain."""
    path, text = GOLDEN / f"{name}.txt", as_text(turns)
    if os.environ.get("WMR1_WRITE_GOLDEN"):
        path.write_text(text)
    assert text == path.read_text()


@pytest.mark.parametrize("name", [name for name in dialects.NAMES if name != "gworld"])
def test_the_full_prompt_of_each_dialect(name: str) -> None:
    spec = EpisodeSpec(dialect=name, max_calls=5, max_calls_per_thought=2)
    turns = prompts.step_turns(spec, TASK, LOG, ["before", "now"], 3, view=VIEW)
    compare(name, turns)


def test_the_first_step_and_the_answers_of_the_tool() -> None:
    spec = EpisodeSpec()
    compare(
        "first-step",
        (
            *prompts.step_turns(spec, TASK, [], ["now"], 5),
            prompts.imagined_turn(spec, 1, 5, "press_back()", "dream"),
            prompts.refused_turn(spec, prompts.over_budget(5)),
            prompts.refused_turn(spec, prompts.unparsable_call("this is not a call")),
            prompts.refused_turn(spec, prompts.FAILED_IMAGINATION),
        ),
    )


@pytest.mark.parametrize("taken_away", [{"max_calls": 0}, {"max_calls_per_thought": 0}])
def test_without_the_tool_nothing_mentions_it(taken_away: dict[str, int]) -> None:
    spec = EpisodeSpec.model_validate(taken_away)
    text = as_text(prompts.step_turns(spec, TASK, LOG, ["now"], 0, view=VIEW)).lower()
    for word in ("call_wm", "world model", "world-model", "imagine"):
        assert word not in text
    assert "<think>" in text


def test_the_goal_stands_before_every_picture() -> None:
    turns = prompts.step_turns(EpisodeSpec(), TASK, LOG, ["a", "b", "c"], 5)
    first, *pictures = turns[-1].parts
    assert isinstance(first, Text)
    assert TASK.goal in first.text
    assert pictures == [Picture("a"), Picture("b"), Picture("c")]


def test_the_example_in_the_prompt_is_a_valid_answer() -> None:
    for name in dialects.NAMES:
        system = prompts.step_turns(EpisodeSpec(dialect=name), TASK, [], ["now"], 5)[0].parts[0]
        assert isinstance(system, Text)
        answer = system.text.rpartition("</think>")[2]
        read = dialects.get(name).parse(answer, View((1080, 2400), (1080, 2400)))
        assert isinstance(read, dialects.ParsedAction)
        assert isinstance(read.action, Tap)


def test_an_action_that_the_dialect_cannot_write_is_logged_in_canonical_words() -> None:
    swipe = Swipe(Point(0, 0.25), Point(1, 1))
    turns = prompts.step_turns(EpisodeSpec(), TASK, [swipe], ["now"], 5, view=VIEW)
    assert "1. swipe(0.0 %, 25.0 %, 100.0 %, 100.0 %)\n" in as_text(turns)


def test_the_compact_prompt_to_the_letter() -> None:
    spec = EpisodeSpec(prompt="compact")
    log: list[prompts.LogEntry] = [Wait(), *LOG]
    assert prompts.step_turns(spec, TASK, log, ["a", "b"], 2) == (
        Turn(
            "user",
            (
                Text(
                    "Goal: Turn on Wi-Fi, then note the name of the network.\n"
                    "Done: tap ? scroll type\n"
                    "Calls: 2\n"
                ),
                Picture("a"),
                Picture("b"),
            ),
        ),
    )
    start = prompts.step_turns(spec, TASK, [], ["a"], 0)[0].parts[0]
    assert isinstance(start, Text)
    assert start.text.endswith("\nDone: -\nCalls: 0\n")


def test_the_compact_answers_of_the_tool_to_the_letter() -> None:
    spec = EpisodeSpec(prompt="compact")
    imagined = prompts.imagined_turn(spec, 2, 3, "press_back()", "dream")
    assert imagined == Turn("user", (Text("Imagined 2\n"), Picture("dream")))
    refused = prompts.refused_turn(spec, prompts.over_budget(3))
    assert refused == Turn("user", (Text("Refused\n"),))
