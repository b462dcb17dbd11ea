"""The scripted phone as a backend: exact, instant, deterministic, the ground truth.

Glue only: what actions do is `services.worldmodel.phone`, what tasks want is
`services.worldmodel.tasks`.
"""

from collections.abc import Iterable
from dataclasses import replace
from functools import lru_cache
from pathlib import Path
from typing import Any, cast

from blake3 import blake3

from services.worldmodel import phone, tasks
from services.worldmodel.backends.base import Prediction
from services.worldmodel.phone import Phone
from wmkit.domain.actions import Action
from wmkit.domain.screen import Point, Screen
from wmkit.domain.tasks import Judgement, Task, TaskRef, TaskTemplate, Verdict
from wmkit.domain.transition import Element

_SCREEN = Screen(phone.WIDTH, phone.HEIGHT)


class Scripted:
    """See `WorldBackend` for the meaning of the methods."""

    name = "scripted"
    kind = "phone"
    deterministic = True
    screen = _SCREEN

    def __init__(self) -> None:
        self.revision = revision()

    def start(self, ref: TaskRef) -> tuple[Task, Phone]:
        task = _task(ref)
        described = Task(
            ref=ref,
            goal=task.goal,
            complexity=task.complexity,
            step_limit=task.step_limit,
            apps=task.apps,
            main_app=task.main_app,
            kind=task.kind,
            wants_answer=task.wants_answer,
        )
        return described, task.start

    def snap(self, action: Action) -> Action:
        """Points move to the centre of their pixel: the phone cannot tell them apart."""
        moved = {
            field: _pixel(point)
            for field in ("point", "to")
            if isinstance(point := getattr(action, field, None), Point)
        }
        if not moved:
            return action
        snapped: Action = replace(cast(Any, action), **moved)
        return snapped

    async def predict(self, value: Phone, action: Action, seed: int) -> Prediction[Phone]:
        return Prediction(phone.step(value, action))

    def digest(self, value: Phone) -> str:
        return phone.digest(value)

    def screen_digest(self, value: Phone) -> str:
        return phone.screen_digest(value)

    def dumps(self, value: Phone) -> bytes:
        return phone.dumps(value)

    def loads(self, data: bytes) -> Phone:
        return phone.loads(data)

    def html(self, value: Phone) -> str:
        return phone.html(value)

    def elements(self, value: Phone) -> tuple[Element, ...]:
        return described(phone.elements(value))

    def judge(
        self, ref: TaskRef, value: Phone, answer: str | None, finish_status: str | None
    ) -> Judgement:
        """The task's predicate over the final state: the truth, so never unsure."""
        task = _task(ref)
        if task.success(value, answer, finish_status):
            return Judgement(verdict=Verdict.SUCCESS, reason="the goal holds", judge="predicate")
        ended = "nothing was declared"
        if answer is not None:
            ended = f"the answer was {answer!r}"
        elif finish_status is not None:
            ended = f"{finish_status} was declared"
        reason = f"the final state does not meet the goal ({ended})"
        return Judgement(verdict=Verdict.FAILURE, reason=reason, judge="predicate")

    def templates(self) -> tuple[TaskTemplate, ...]:
        out = []
        for name in tasks.TEMPLATES:
            task = _task(TaskRef(template=name, seed=0))
            out.append(
                TaskTemplate(
                    name=name,
                    main_app=task.main_app,
                    apps=task.apps,
                    kind=task.kind,
                    example_goal=task.goal,
                )
            )
        return tuple(out)


def described(drawn: Iterable[phone.Element]) -> tuple[Element, ...]:
    """What can be tapped or read; shapes that only decorate are left out."""
    return tuple(
        Element(
            id=one.id,
            role=one.role,
            text=one.text,
            x_px=one.box[0],
            y_px=one.box[1],
            width_px=one.box[2],
            height_px=one.box[3],
            clickable=one.clickable,
            checked=one.checked,
            focused=one.focused,
            enabled=one.enabled,
        )
        for one in drawn
        if one.clickable or one.text or one.checked is not None
    )


@lru_cache(maxsize=4096)
def _task(ref: TaskRef) -> tasks.Task:
    return tasks.make(ref.template, ref.seed)


@lru_cache(maxsize=65_536)
def _pixel(point: Point) -> Point:
    x, y = point.to_px(_SCREEN.width_px, _SCREEN.height_px)
    return Point((x + 0.5) / _SCREEN.width_px, (y + 0.5) / _SCREEN.height_px)


def revision() -> str:
    """`scripted-` and a digest over every source file of the phone and its tasks.

    Not a version number by hand: the one edit that forgets to raise it would let answers of
    two different phones mix in one cache and one run. The price is that a changed comment
    counts as a new phone, which costs a few recomputed transitions.
    """
    here = Path(__file__).resolve()
    folders = [Path(package.__file__ or "").parent for package in (phone, tasks)]
    files = [here, *(f for folder in folders for f in folder.rglob("*") if f.is_file())]
    hasher = blake3()
    root = here.parent.parent
    for file in sorted(files):
        if file.suffix in (".py", ".j2"):
            hasher.update(f"{file.relative_to(root).as_posix()}\0".encode())
            hasher.update(blake3(file.read_bytes()).digest())
    return f"scripted-{hasher.hexdigest()[:16]}"
