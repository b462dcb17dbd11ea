"""The world model without asyncio, for scripts and notebooks.

    from wmkit.clients.sync import connect

    with connect(worldmodel="localhost:50051") as world:
        phone = world.create_state("clock_alarm_on", seed=7)
        phone.save("before.png")
        phone.step(Home()).save("after.png")

A `Phone` is one immutable state: `step` and `imagine` return another one and leave it as it
is. Calls run on a thread of their own with an event loop, so this works inside Jupyter.
"""

import asyncio
import threading
from collections.abc import Coroutine, Sequence
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self, TypeVar

from wmkit.clients.pictures import encoded, to_pil
from wmkit.clients.worldmodel import WorldModelClient
from wmkit.domain.actions import Action, Tap
from wmkit.domain.errors import Unavailable
from wmkit.domain.screen import Screen
from wmkit.domain.sources import FromHtml, FromPayload, FromScreenshot, StateSource
from wmkit.domain.tasks import Judgement, Task, TaskRef, TaskTemplate
from wmkit.domain.transition import (
    Backend,
    Element,
    FailureReason,
    Image,
    ImageRequest,
    Outcome,
    Purpose,
    State,
)

if TYPE_CHECKING:
    from PIL.Image import Image as PilImage

T = TypeVar("T")


def connect(
    worldmodel: str = "localhost:50051", *, timeout_s: float = 60.0, token: str | None = None
) -> "World":
    """A connection to a world-model service; use it in a `with` block or `close` it."""
    return World(worldmodel, timeout_s, token)


class World:
    """What a world-model service offers, as blocking calls."""

    def __init__(self, address: str, timeout_s: float, token: str | None) -> None:
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(
            target=self._loop.run_forever, name="wmr1-client", daemon=True
        )
        self._thread.start()
        self.client = WorldModelClient(address, timeout_s=timeout_s, token=token)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        if self._loop.is_closed():
            return
        self.wait(self.client.close())
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()
        self._loop.close()

    def tasks(self) -> Sequence[TaskTemplate]:
        return self.wait(self.client.list_tasks())

    def backends(self) -> Sequence[Backend]:
        return self.wait(self.client.list_backends())

    def create_state(self, template: str, seed: int = 0, *, backend: str = "") -> "Phone":
        """The phone as a task finds it. Raises UnknownTask, UnknownBackend."""
        return self._begun(TaskRef(template=template, seed=seed), backend, "")

    def open_state(self, state_id: str, *, goal: str = "") -> "Phone":
        """A state by its id. Raises StateNotFound."""
        return Phone(self, self.wait(self.client.get_state(state_id)), None, goal=goal)

    def from_html(
        self,
        html: str,
        *,
        goal: str = "",
        width_px: int = 1080,
        height_px: int = 2400,
        backend: str = "",
    ) -> "Phone":
        """A state that shows a document. Raises BadHtml, InvalidRequest, UnknownBackend.

        `goal` stands in for a task's: models read it, and `judge` asks whether it is reached.
        """
        source = FromHtml(html, Screen(width_px, height_px))
        return self._begun(source, backend, goal)

    def from_screenshot(
        self, picture: "bytes | str | Path | PilImage", *, goal: str = "", backend: str = ""
    ) -> "Phone":
        """A state that shows a screenshot: encoded PNG or JPEG, a file's path, or Pillow's.

        `goal` as of `from_html`. Raises InvalidRequest for what is no picture, UnknownBackend.
        """
        return self._begun(FromScreenshot(encoded(picture)), backend, goal)

    def from_payload(
        self, payload_digest: str, *, state_id: str = "", goal: str = "", backend: str = ""
    ) -> "Phone":
        """A state of before, for as long as its payload lies in the blob store.

        Trajectories record the payload of every state. Raises StateNotFound when it is gone
        or gives another state than `state_id`.
        """
        return self._begun(FromPayload(payload_digest, state_id), backend, goal)

    def _begun(self, source: StateSource, backend: str, goal: str) -> "Phone":
        created = self.wait(self.client.create_state(source, backend=backend))
        return Phone(self, created.state, created.task, goal=goal)

    def wait(self, call: Coroutine[Any, Any, T]) -> T:
        """Run a call of `client`, the asynchronous client behind this one, to its end."""
        return asyncio.run_coroutine_threadsafe(call, self._loop).result()


class StepFailed(Exception):
    """The simulated world has no next screen for this action; `reason` says why."""

    def __init__(self, action: Action, reason: FailureReason | None) -> None:
        super().__init__(f"{action.name} has no next screen: {reason}")
        self.reason = reason


class Phone:
    """One immutable state of a phone and the way to it from where it was created or opened.

    `outcome` tells how a step led here, None at the start; `goal` is the task's, else what the
    caller named.
    """

    def __init__(
        self,
        world: World,
        state: State,
        task: Task | None,
        outcome: Outcome | None = None,
        *,
        goal: str = "",
        first: State | None = None,
        actions: tuple[Action, ...] = (),
    ) -> None:
        self._world = world
        self.state = state
        self.task = task
        self.outcome = outcome
        self.goal = task.goal if task else goal
        self.first = first or state
        self.actions = actions

    @cached_property
    def elements(self) -> tuple[Element, ...]:
        """What is on the screen, boxes in CSS pixels."""
        return self._world.wait(self._world.client.get_elements(self.state.state_id))

    @cached_property
    def html(self) -> str:
        """The screen as a document; empty for a state that is a picture."""
        return self._world.wait(self._world.client.get_html(self.state.state_id))

    @cached_property
    def screenshot(self) -> Image:
        """The screen as PNG bytes at full size. Raises Unavailable when it cannot be drawn."""
        drawn = self._world.wait(
            self._world.client.get_screenshot(self.state.state_id, ImageRequest())
        )
        if drawn.image is None:
            raise Unavailable(f"the screen cannot be drawn: {drawn.reason}")
        return drawn.image

    def pil(self) -> "PilImage":
        """The screen as a Pillow image."""
        return to_pil(self.screenshot)

    def save(self, path: str | Path) -> None:
        """Write the screen as PNG."""
        Path(path).write_bytes(self.screenshot.data)

    def step(self, action: Action, *, purpose: Purpose = Purpose.COMMIT, seed: int = 0) -> "Phone":
        """The phone after `action`; this one stays as it is.

        Raises StepFailed, InvalidAction for a point outside the screen.
        """
        world, state_id = self._world, self.state.state_id
        found = world.wait(
            world.client.step(state_id, action, purpose=purpose, seed=seed, goal=self.goal)
        )
        if found.state is None:
            raise StepFailed(action, found.reason)
        return Phone(
            world,
            found.state,
            self.task,
            found.outcome,
            goal=self.goal,
            first=self.first,
            actions=(*self.actions, action),
        )

    def imagine(self, action: Action, *, seed: int = 0) -> "Phone":
        """As `step`; the service counts it as imagined."""
        return self.step(action, purpose=Purpose.IMAGINE, seed=seed)

    def tap(self, element: Element) -> "Phone":
        """Tap the middle of an element."""
        return self.step(Tap(element.center(self.state.screen)))

    def judge(self, *, answer: str | None = None, finish_status: str | None = None) -> Judgement:
        """Is the task done here, or the goal reached? Raises ValueError where there is neither."""
        if self.task is None and not self.goal:
            raise ValueError("this state has no task and no goal to judge")
        return self._world.wait(
            self._world.client.judge(
                self.task.ref if self.task else None,
                self.state.state_id,
                answer=answer,
                finish_status=finish_status,
                goal="" if self.task else self.goal,
                first_state_id=self.first.state_id,
                actions=self.actions,
            )
        )
