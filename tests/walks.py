"""Random walks over the scripted phone, for property tests.

A walk is a list of committed actions, each with the actions that were imagined before it. It
is made on the bare phone, without any service, so that its states are known beforehand.
"""

from collections.abc import Callable
from dataclasses import dataclass

from hypothesis import strategies as st

from services.worldmodel import phone, tasks
from services.worldmodel.backends.scripted import Scripted
from services.worldmodel.phone import Phone
from services.worldmodel.states import state_name
from wmkit.domain.actions import (
    Action,
    Back,
    DoubleTap,
    Enter,
    Home,
    Key,
    LongPress,
    OpenApp,
    Recents,
    Scroll,
    Swipe,
    Tap,
    Type,
    Wait,
)
from wmkit.domain.screen import Point
from wmkit.domain.tasks import TaskRef


@dataclass(frozen=True)
class Commit:
    """One committed action; each imagined one starts from the real state or continues the last."""

    action: Action
    imagined: tuple[tuple[bool, Action], ...]


@dataclass(frozen=True)
class Walk:
    """`expected` holds the state ids along the way, the start's first."""

    task: TaskRef
    commits: tuple[Commit, ...]
    expected: tuple[str, ...]


_unit = st.floats(0, 1, allow_nan=False)
_points = st.builds(Point, _unit, _unit)
_blind: st.SearchStrategy[Action] = st.one_of(
    st.builds(Tap, _points),
    st.builds(DoubleTap, _points),
    st.builds(Swipe, _points, _points),
    st.builds(Scroll, st.sampled_from(["up", "down", "left", "right"])),
    st.builds(Type, st.text(max_size=8), submit=st.booleans()),
    st.builds(Key, st.sampled_from(["a", "enter", "backspace"])),
    st.builds(Wait, st.integers(0, 100_000)),
    st.builds(OpenApp, st.sampled_from(sorted(phone.APPS))),
    st.sampled_from([Enter(), Back(), Home(), Recents()]),
)


@st.composite
def _action(draw: st.DrawFn, at: Phone) -> Action:
    """Half of the time something that can be hit, so that walks get somewhere."""
    targets = [element.at for element in phone.elements(at) if element.clickable]
    if not targets or draw(st.booleans()):
        return draw(_blind)
    point = draw(st.sampled_from(targets))
    return LongPress(point) if draw(st.integers(0, 4)) == 0 else Tap(point)


@st.composite
def walks(draw: st.DrawFn, max_length: int = 8) -> Walk:
    scripted = Scripted()
    name: Callable[[Phone], str] = lambda value: state_name(  # noqa: E731
        scripted.name, scripted.screen, scripted.kind, phone.digest(value)
    )
    template = draw(st.sampled_from(sorted(tasks.TEMPLATES)))
    task = TaskRef(template=template, seed=draw(st.integers(0, 50)))
    value = tasks.make(task.template, task.seed).start
    expected, commits = [name(value)], []
    for _ in range(draw(st.integers(1, max_length))):
        imagined, dream = [], value
        for _ in range(draw(st.integers(0, 3))):
            deeper = draw(st.booleans())
            dream = dream if deeper else value
            imagined.append((deeper, draw(_action(dream))))
            dream = phone.step(dream, scripted.snap(imagined[-1][1]))
        commits.append(Commit(draw(_action(value)), tuple(imagined)))
        value = phone.step(value, scripted.snap(commits[-1].action))
        expected.append(name(value))
    return Walk(task, tuple(commits), tuple(expected))
