"""The action space holds every canonical action, and every sample of it is one."""

import json
from pathlib import Path

import pytest

from wmkit.domain.actions import (
    ACTIONS,
    Action,
    Answer,
    Finish,
    Key,
    OpenApp,
    Scroll,
    Swipe,
    Tap,
    Type,
    Wait,
    from_dict,
    to_dict,
)
from wmkit.domain.screen import Point
from wmkit.gym.spaces import AnyText, action_from_space, action_space, action_to_space

# Halves and quarters survive 32-bit floats.
ACTIONS_THAT_FIT: list[Action] = [
    Tap(Point(0.25, 0.75)),
    Swipe(Point(0.0, 1.0), Point(0.5, 0.25)),
    Scroll("left", Point(0.5, 0.5)),
    Type("naïve 漢字 🙂", submit=True),
    Type("", clear=True),
    Key("volume_up"),
    OpenApp("Clock"),
    Answer("42"),
    Finish("infeasible"),
    Wait(),
]


@pytest.mark.parametrize("action", ACTIONS_THAT_FIT)
def test_an_action_survives_the_space(action: Action) -> None:
    space = action_space()
    point = action_to_space(action)
    assert space.contains(point)
    assert action_from_space(point) == action


def test_every_sample_is_an_action_and_every_kind_comes_up() -> None:
    space = action_space()
    space.seed(0)
    actions = [action_from_space(space.sample()) for _ in range(500)]
    assert {action.name for action in actions} == set(ACTIONS)
    assert all(from_dict(to_dict(action)) == action for action in actions)


def test_the_recorded_cases_all_have_a_place() -> None:
    path = Path(__file__).parent.parent / "cases" / "actions.jsonl"
    space, count = action_space(), 0
    for line in path.read_text("utf-8").splitlines():
        wanted = json.loads(line).get("expect")
        if isinstance(wanted, dict) and "action" in wanted:
            action = from_dict(wanted)
            assert action_from_space(action_to_space(action)).name == action.name
            assert space.contains(action_to_space(action))
            count += 1
    assert count > 0


def test_text_of_any_script_is_inside_up_to_its_length() -> None:
    text = AnyText(3)
    assert [text.contains(x) for x in ("", "漢字🙂", "four", 3)] == [True, True, False, False]
