"""The reactive expert: the next right action from any state, without memory.

First it looks at what the goal needs to know, then it puts the data right, then it ends.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from services.worldmodel.phone.reducer import step
from services.worldmodel.phone.state import Part, Phone
from services.worldmodel.tasks.repairs import REPAIRS
from services.worldmodel.tasks.touch import GIVE_UP, Look, look_at, press
from wmkit.domain.actions import TERMINAL, Action, Answer, Back, Finish

if TYPE_CHECKING:
    from services.worldmodel.tasks.task import Task


def next_action(task: Task, phone: Phone) -> Action:
    """Clear the system's dialogs, look where the goal needs knowledge, act, end."""
    action = clear_way(task, phone)
    if action is not None:
        return action
    for look in task.looks:
        if look.noted and _needed(task, phone, look) and not _noted(phone, look):
            action = look_at(phone, look)
            if action is not None:
                return action
    action = repair(task, phone)
    for look in task.looks:
        if action is None and not look.noted:
            action = look_at(phone, look)
    if action is not None:
        return action
    if not task.feasible:
        return GIVE_UP
    return Finish("success") if task.answer is None else Answer(task.answer)


def clear_way(task: Task, phone: Phone) -> Action | None:
    """Answer what the system asks and close the shade; None when nothing is in the way.

    A permission is granted when, without it, the next thing to do would be to ask again.
    """
    nav = phone.nav
    if nav.popup:
        return press(phone, "os.popup:close")
    if nav.prompt is not None:
        denied = press(phone, "os.deny")
        without = step(phone, denied)
        again = repair(task, without)
        wanted = again is not None and not isinstance(again, TERMINAL)
        if wanted and again is not None and step(without, again).nav.prompt == nav.prompt:
            return press(phone, "os.allow")
        return denied
    return Back() if nav.shade else None


def repair(task: Task, phone: Phone) -> Action | None:
    """The next action that brings the data closer to `task.want`; None when it is there.

    The app in front comes first, then the others; what the task puts in order comes last.
    """
    wanted, current = dict(task.want), dict(task.current(phone))
    ranks = {app: rank for rank, app in enumerate(task.order)}
    for app in sorted(wanted, key=lambda name: (ranks.get(name, -1), name != phone.nav.front)):
        if current[app] == wanted[app]:
            continue
        action = REPAIRS.get(app, _hands_off)(phone, current[app], wanted[app])
        if action is not None:
            return action
    return None


def _hands_off(_phone: Phone, now: Part, want: Part) -> Action | None:
    """For an app without repairs: what changed there cannot be put right."""
    return None if now.facts() == want.facts() else GIVE_UP


def _needed(task: Task, phone: Phone, look: Look) -> bool:
    """Whether what is noted there still has a use."""
    if not look.use:
        return not task.settled(phone)
    return dict(task.current(phone))[look.use].facts() != dict(task.want)[look.use].facts()


def _noted(phone: Phone, look: Look) -> bool:
    """Whether what had to be looked up already stands in the form in front."""
    frame = phone.frame()
    return frame is not None and look.noted in [text for _, text in frame.fields]
