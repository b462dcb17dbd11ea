"""One person at one phone, as plain values that a page can show. No HTTP here."""

from typing import Any

from wmkit.clients.sync import Phone, StepFailed
from wmkit.domain.actions import Action, Answer, Finish, from_dict
from wmkit.domain.errors import InvalidAction
from wmkit.domain.transition import Outcome


class WebSession:
    """The way from the start to the screen in front; states never change, so undo is a pop.

    `pictures` holds every screen that was shown, imagined ones included, by number.
    """

    def __init__(self, start: Phone) -> None:
        assert start.task is not None
        self._task = start.task
        self._path = [start]
        self._numbers = [0]
        self.pictures = [start]
        self._ended = False

    def view(self, **more: Any) -> dict[str, Any]:
        """What the page draws; `picture` is the number of the screen in front."""
        screen = self._path[-1].state.screen
        return {
            "goal": self._task.goal,
            "steps": len(self._path) - 1,
            "complexity": self._task.complexity,
            "step_limit": self._task.step_limit,
            "wants_answer": self._task.wants_answer,
            "width_px": screen.width_px,
            "height_px": screen.height_px,
            "picture": self._numbers[-1],
            "ended": self._ended,
            **more,
        }

    def act(self, data: dict[str, Any], *, imagine: bool) -> dict[str, Any]:
        """Do, or only imagine, an action in its dictionary form.

        Raises InvalidAction for what is no action, or after the end.
        """
        action = from_dict(data)
        if self._ended:
            raise InvalidAction("this task is over; undo goes back to the screen before the end")
        if isinstance(action, Answer | Finish):
            if imagine:
                raise InvalidAction("the end of a task cannot be imagined")
            return self._judge(action)
        return self._imagine(action) if imagine else self._step(action)

    def undo(self) -> dict[str, Any]:
        """One step back; out of the verdict first."""
        if self._ended:
            self._ended = False
        elif len(self._path) > 1:
            self._path.pop()
            self._numbers.pop()
        return self.view()

    def _step(self, action: Action) -> dict[str, Any]:
        try:
            phone = self._path[-1].step(action)
        except StepFailed as failed:
            return self.view(note=str(failed))
        self._path.append(phone)
        self._numbers.append(self._shown(phone))
        unchanged = phone.outcome is Outcome.UNCHANGED
        return self.view(note=f"{action.name}: nothing changed" if unchanged else action.name)

    def _imagine(self, action: Action) -> dict[str, Any]:
        try:
            phone = self._path[-1].imagine(action)
        except StepFailed as failed:
            return self.view(note=str(failed))
        note = f"{action.name}, imagined only: the phone is where it was"
        return self.view(note=note, imagined=self._shown(phone))

    def _judge(self, end: Answer | Finish) -> dict[str, Any]:
        answer = end.text if isinstance(end, Answer) else None
        status = end.status if isinstance(end, Finish) else None
        judgement = self._path[-1].judge(answer=answer, finish_status=status)
        self._ended = True
        return self.view(verdict=judgement.verdict.value, note=judgement.reason)

    def _shown(self, phone: Phone) -> int:
        self.pictures.append(phone)
        return len(self.pictures) - 1
