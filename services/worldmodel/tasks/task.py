"""A task: a start, a goal in words, a predicate over the end, and an expert that gets there.

What must hold at the end is stated as data (`want`), written by hand from the start data
and never by running the phone. The predicate compares all of it, so every side effect is
a failure.
"""

from dataclasses import dataclass, replace
from typing import Literal

from services.worldmodel.phone.apps import APPS
from services.worldmodel.phone.reducer import step
from services.worldmodel.phone.state import Part, Phone
from services.worldmodel.tasks import oracle
from services.worldmodel.tasks.answers import AnswerType, same_answer
from services.worldmodel.tasks.touch import Look
from wmkit.domain.actions import TERMINAL, Action

Kind = Literal[
    "toggle",
    "list",
    "form",
    "lookup",
    "cross_app",
    "conditional",
    "infeasible",
    "distractor",
    "look_ahead",
]
Data = tuple[tuple[str, Part], ...]
MAX_PLAN = 60


@dataclass(frozen=True)
class Task:
    """One task instance.

    `before` is the data that the episode starts from, `want` what it should be at the end.
    `order` names apps that the expert puts right one after the other, because what it does
    in the later ones depends on the earlier ones.

    `complexity` is the length of the expert's plan from the start, `finish` and `answer`
    not counted: the least number of taps, long presses, scrolls, typed texts, back and
    home, with the looking that the goal asks for. Shortcuts (`open_app`, `type` with a
    point or submit) may be shorter and are not counted on.
    """

    template: str
    seed: int
    goal: str
    start: Phone
    before: Data
    want: Data
    apps: tuple[str, ...]
    kind: Kind
    looks: tuple[Look, ...] = ()
    answer: str | None = None
    answer_type: AnswerType = "text"
    feasible: bool = True
    order: tuple[str, ...] = ()
    complexity: int = 0

    @property
    def main_app(self) -> str:
        """The app that results are grouped by."""
        return self.apps[0]

    @property
    def wants_answer(self) -> bool:
        """Whether the episode should end with `answer`."""
        return self.answer is not None

    @property
    def step_limit(self) -> int:
        """Actions allowed."""
        return max(20, 2 * self.complexity)

    def success(self, phone: Phone, answer: str | None, status: str | None) -> bool:
        """Whether an episode that ended on `phone` has succeeded.

        `answer` is the text of `answer`, `status` that of `finish`; None where the episode
        ended otherwise. Success must be declared, and nothing but what the goal asks for
        may have changed.
        """
        if not self.feasible:
            return status == "infeasible" and answer is None and self.settled(phone)
        if self.answer is not None:
            return (
                answer is not None
                and status != "infeasible"
                and same_answer(answer, self.answer, self.answer_type)
                and self.settled(phone)
            )
        return status == "success" and answer is None and self.settled(phone)

    def settled(self, phone: Phone) -> bool:
        """Whether the phone's data is what it should be at the end, all of it."""
        return facts(self.current(phone)) == facts(self.want)

    def current(self, phone: Phone) -> Data:
        """The phone's data without what does not matter to this task."""
        return tuple(
            (name, part.eased(before, want))
            for (name, part), (_, before), (_, want) in zip(
                phone.data, self.before, self.want, strict=True
            )
        )

    def oracle(self, phone: Phone) -> Action:
        """The expert's next action from any state of the phone."""
        return oracle.next_action(self, phone)


def facts(data: Data) -> Data:
    """What is compared: what runs by itself, such as a timer, is left out."""
    return tuple((name, part.facts()) for name, part in data)


def with_plan(task: Task) -> Task:
    """The task with its complexity measured by playing the expert."""
    phone = task.start
    for length in range(MAX_PLAN):
        action = task.oracle(phone)
        if isinstance(action, TERMINAL):
            return replace(task, complexity=length)
        phone = step(phone, action)
    raise AssertionError(f"{task.template} {task.seed}: the expert does not arrive")


def edited(data: Data, **parts: Part) -> Data:
    """The data with some apps' parts replaced; keyword = the app's name."""
    assert set(parts) <= set(APPS)
    return tuple((name, parts.get(name, part)) for name, part in data)
