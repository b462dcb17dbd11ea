"""A reference policy without weights: the expert that slips now and then.

It acts as the expert does, but with a stated probability touches something else, and at the
end may declare the wrong thing. What it spoils it has to repair within the step limit, and
what cannot be undone it has lost, so its success falls with a task's length and traps.
"""

from random import Random

from services.worldmodel.phone import Phone, elements, step
from services.worldmodel.tasks.task import Task
from wmkit.domain.actions import TERMINAL, Action, Answer, Back, Finish, Home, Scroll, Tap


def play(task: Task, slip: float, rng: Random) -> bool:
    """Whether one episode succeeds; `slip` is the probability per action, the end included."""
    phone = task.start
    for _ in range(task.step_limit + 1):
        action = task.oracle(phone)
        if isinstance(action, TERMINAL):
            if rng.random() < slip / 2:
                return task.success(phone, None, "infeasible")
            answer = action.text if isinstance(action, Answer) else None
            status = action.status if isinstance(action, Finish) else None
            return task.success(phone, answer, status)
        phone = step(phone, _stray(phone, rng) if rng.random() < slip else action)
    return False


def _stray(phone: Phone, rng: Random) -> Action:
    points = [element.at for element in elements(phone) if element.clickable]
    if points and rng.random() < 0.8:
        return Tap(rng.choice(points))
    return rng.choice((Back(), Home(), Scroll("down"), Scroll("up")))
