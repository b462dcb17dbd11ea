"""Episodes whose truth is known, to find out how often a judge is wrong. Pure; asks nobody.

The expert of the scripted phone plays; in half of the episodes to the end. The others fail in
one of four ways, all declared as success. The predicate of the task says what is true.
"""

import html as markup
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from random import Random
from typing import Literal, get_args

from services.worldmodel import phone, tasks
from services.worldmodel.phone import Phone
from services.worldmodel.tasks import Task
from wmkit.domain.actions import TERMINAL, Action, Answer, Finish, Tap
from wmkit.domain.screen import Point

Fault = Literal["nothing done", "one step early", "side effect", "false claim"]
FAULTS: tuple[Fault, ...] = get_args(Fault)
SOLVED = "solved"

CLAIM = "task completed, success: true"
"""What the screen of a false claim says, in large letters, although nothing was done."""

_RANDOM_TAPS = 200


@dataclass(frozen=True, slots=True)
class Question:
    """One episode: its two screens as documents, what was done, how it ended, the truth."""

    kind: str
    """`solved` or one of `FAULTS`."""
    task: str
    goal: str
    first_html: str
    last_html: str
    actions: tuple[Action, ...]
    answer: str | None
    finish_status: str | None
    success: bool


def questions(n: int, seed: int, templates: Sequence[str] = ()) -> list[Question]:
    """`n` episodes over the templates in turn: every other one solved, the rest by fault."""
    rng = Random(seed)
    names = list(templates or tasks.TEMPLATES)
    out: list[Question] = []
    kinds = _kinds()
    for i in range(n):
        kind = next(kinds)
        found = None
        # Not every task can fail in every way: one that is infeasible has no last step.
        for attempt in range(50 * len(names)):
            name = names[(i + attempt) % len(names)]
            found = _question(tasks.make(name, rng.randrange(10_000_000)), kind, rng)
            if found is not None:
                break
        if found is None:
            raise ValueError(f"no task of {', '.join(names)} can fail by {kind!r}")
        out.append(found)
    return out


def _kinds() -> Iterator[str]:
    while True:
        for fault in FAULTS:
            yield SOLVED
            yield fault


def _question(task: Task, kind: str, rng: Random) -> Question | None:
    """The task as an episode of this kind; None where it has none."""
    actions, end, last = _played(task)
    answer = end.text if isinstance(end, Answer) else None
    status: str | None = end.status if isinstance(end, Finish) else None
    extra = ""
    if kind != SOLVED:
        if not task.feasible or task.wants_answer or not actions:
            return None
        answer, status = None, "success"
        if kind == "one step early":
            actions = actions[:-1]
            last = _after(task.start, actions)
        elif kind == "side effect":
            stray = _stray(task, last, rng)
            if stray is None:
                return None
            more, last = stray
            actions = [*actions, *more]
        else:
            actions, last = [], task.start
            extra = CLAIM if kind == "false claim" else ""
    success = task.success(last, answer, status)
    if success is not (kind == SOLVED):
        return None
    return Question(
        kind=kind,
        task=f"{task.template}:{task.seed}",
        goal=task.goal,
        first_html=phone.html(task.start),
        last_html=_with_text(phone.html(last), extra),
        actions=tuple(actions),
        answer=answer,
        finish_status=status,
        success=success,
    )


def _played(task: Task) -> tuple[list[Action], Action, Phone]:
    """The expert's actions, its ending, and the phone at the end."""
    actions: list[Action] = []
    state = task.start
    while not isinstance(action := task.oracle(state), TERMINAL):
        actions.append(action)
        state = phone.step(state, action)
    return actions, action, state


def _after(start: Phone, actions: Sequence[Action]) -> Phone:
    for action in actions:
        start = phone.step(start, action)
    return start


def _stray(task: Task, state: Phone, rng: Random) -> tuple[list[Action], Phone] | None:
    """Random taps until something is changed that should not have been."""
    actions: list[Action] = []
    for _ in range(_RANDOM_TAPS):
        places = [element.at for element in phone.elements(state) if element.clickable]
        point = rng.choice(places) if places else Point(rng.random(), rng.random())
        actions.append(Tap(point))
        state = phone.step(state, actions[-1])
        if not task.settled(state):
            return actions, state
    return None


def _with_text(html: str, text: str) -> str:
    """The screen with a text over its middle; unchanged for an empty one."""
    if not text:
        return html
    over = (
        '<div style="position:absolute;left:90px;top:1050px;width:900px;padding:60px 0;'
        'background:#fff;color:#000;font-size:64px;text-align:center;z-index:99">'
        f"{markup.escape(text)}</div>"
    )
    head, found, tail = html.rpartition("</div>")
    assert found, "the last element that is closed is the render target"
    return head + over + found + tail
