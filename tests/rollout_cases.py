"""Episodes for the tests of the rollout worker: a small world, an agent that reads a script.

The world's states are words: `start`, then a letter for each tap (L or R half of the screen).
A scroll breaks the world model (its answer was cut), a long press times the renderer out,
waiting changes nothing, typing is an action that this world does not know.
"""

from collections.abc import Sequence
from typing import Any

from wmkit.blobs import digest
from wmkit.domain.actions import Action, LongPress, Scroll, Tap, Type, Wait
from wmkit.domain.episode import EpisodeSpec, Job
from wmkit.domain.errors import InvalidAction
from wmkit.domain.generation import Sampling, Turn
from wmkit.domain.screen import Screen
from wmkit.domain.tasks import TaskRef
from wmkit.domain.transition import FailureReason
from wmkit.testing import FakePolicy, FakeWorldModel

SCREEN = Screen(27, 60)
IMAGE_PX = (56, 56)
L = "tap(start_box='<|box_start|>(14,28)<|box_end|>')"
R = "tap(start_box='<|box_start|>(42,28)<|box_end|>')"


def state(word: str) -> str:
    """The id of a state of the world below."""
    return digest(word.encode())


def letters(word: str, action: Action) -> str | FailureReason:
    match action:
        case Tap(point):
            return word + ("L" if point.x < 0.5 else "R")
        case Wait():
            return word
        case Scroll():
            return FailureReason.TRUNCATED
        case LongPress():
            return FailureReason.RENDER_TIMEOUT
        case Type():
            raise InvalidAction("there is no field to type into")
    return word + "?"


def a_world(goal: str = "startR") -> FakeWorldModel:
    return FakeWorldModel(letters, goal=goal, screen=SCREEN)


def a_job(**changes: Any) -> Job:
    """A job whose fields, or those of its spec, are as given."""
    spec = {key: changes.pop(key) for key in list(changes) if key in EpisodeSpec.model_fields}
    fields: dict[str, Any] = {
        "job_id": "r1/train-0/1/2",
        "run_id": "r1",
        "phase": "train-0",
        "task": TaskRef(template="fake", seed=3),
        "group": 1,
        "member": 2,
        "seed": 7,
        "spec": EpisodeSpec(**spec),
    }
    return Job(**(fields | changes))


class Script:
    """An agent that writes these stretches, whatever it is shown."""

    def __init__(self, *stretches: str) -> None:
        self._stretches = iter(stretches)

    def __call__(self, turns: Sequence[Turn], sampling: Sampling) -> str:
        return next(self._stretches)


def an_agent(*stretches: str) -> FakePolicy:
    return FakePolicy(Script(*stretches), policy_id="r1", image_px=IMAGE_PX)


def call(action: str, parent: int = 0) -> str:
    return (
        f'<call_wm from="{parent}">{action}</call_wm>' if parent else f"<call_wm>{action}</call_wm>"
    )


def acts(action: str) -> str:
    """A step without calls."""
    return f"<think>So.</think>\nAction: {action}"


FINISH = acts("finished()")
