"""A trajectory as a filmstrip: screens as data URIs, markers where the agent acted.

The screens that the agent saw may be tiny; where the world model still knows a state, it
is asked for a sharper picture of the same screen.
"""

import asyncio
import base64
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

import structlog

from services.trainer.groups import succeeded
from services.trainer.report.showcase import Choice
from wmkit.domain.episode import Imagined, Step, Trajectory
from wmkit.domain.errors import WMError
from wmkit.domain.transition import ImageRequest
from wmkit.ports import BlobStore, WorldModel

log = structlog.get_logger(__name__)

SHARP = ImageRequest(deliver="bytes", format="jpeg", scale=0.25, quality=82)
FETCHES = 8
SCROLL_FINGER = {"down": (0, -1), "up": (0, 1), "right": (-1, 0), "left": (1, 0)}
"""Where the finger goes to reveal a direction."""
_CALL = re.compile(r"<call_wm\b[^>]*>.*?</call_wm>", re.DOTALL)
"""A call inside a thought: its branch is drawn below, so its words are left out."""


@dataclass(frozen=True, slots=True)
class Marker:
    """Where an action touched, as fractions of the screen; `to` for swipes and scrolls."""

    x: float
    y: float
    to: tuple[float, float] | None = None
    label: str = ""


@dataclass(frozen=True, slots=True)
class Branch:
    """An imagined step. `marker` belongs on the screen it starts from."""

    k: int
    action: str
    picture: str
    note: str
    marker: Marker | None
    committed: bool
    """The agent then did exactly this."""
    children: tuple["Branch", ...]


@dataclass(frozen=True, slots=True)
class Frame:
    number: int
    picture: str
    thought: str
    text: str
    action: str
    outcome: str
    marker: Marker | None
    branches: tuple[Branch, ...]


@dataclass(frozen=True, slots=True)
class Film:
    goal: str
    task: str
    app: str
    caption: str
    success: bool
    verdict: str
    ending: str
    complexity: int
    length: int
    calls: int
    aspect: float
    """Height over width of the screen."""
    frames: tuple[Frame, ...]
    final: str
    """Picture of the end; empty where the last action left the screen as it was."""


async def film(choice: Choice, blobs: BlobStore, world: WorldModel) -> Film:
    """Load a trajectory and its pictures. Raises the errors of the blob store."""
    trajectory = Trajectory.model_validate_json(await blobs.get(choice.row.trajectory))
    pictures = await _pictures(trajectory, blobs, world)
    width, height = (
        trajectory.screen.get("width_px", 1080),
        trajectory.screen.get("height_px", 2400),
    )
    return Film(
        goal=trajectory.task.goal,
        task=str(trajectory.task.ref),
        app=trajectory.task.main_app,
        caption=choice.caption,
        success=succeeded(trajectory),
        verdict=trajectory.judgement.reason,
        ending=trajectory.ending.value.replace("_", " "),
        complexity=trajectory.task.complexity,
        length=trajectory.length,
        calls=trajectory.calls,
        aspect=height / width,
        frames=tuple(_frame(step, pictures) for step in trajectory.steps),
        final=(
            pictures.get(trajectory.final_state_id, "")
            if trajectory.final_state_id != trajectory.steps[-1].state_id
            else ""
        ),
    )


def action_text(action: Mapping[str, Any] | None) -> str:
    """A canonical action in few words."""
    if action is None:
        return "unreadable"
    name = str(action["action"]).replace("_", " ")
    parts = []
    for key, value in action.items():
        if key in ("point", "to"):
            parts.append("({:.2f}, {:.2f})".format(*value))
        elif key in ("text", "app", "key"):
            parts.append(f"“{value}”")
        elif key in ("reveal", "status"):
            parts.append(str(value))
        elif key in ("submit", "clear") and value:
            parts.append(key)
    return " ".join([name, *parts])


def marker(action: Mapping[str, Any] | None, label: str = "") -> Marker | None:
    """Where `action` touches the screen; None for those that do not."""
    match action:
        case {"action": "scroll", "reveal": str(reveal)}:
            x, y = dict(action or {}).get("point", (0.5, 0.55))
            dx, dy = SCROLL_FINGER[reveal]
            return Marker(x, y, (x + 0.22 * dx, y + 0.16 * dy), label)
        case {"point": (x, y), "to": (x2, y2)}:
            return Marker(x, y, (x2, y2), label)
        case {"point": (x, y)}:
            return Marker(x, y, None, label)
        case _:
            return None


def _frame(step: Step, pictures: Mapping[str, str]) -> Frame:
    return Frame(
        number=step.index + 1,
        picture=pictures.get(step.state_id, ""),
        thought=_CALL.sub(" … ", step.thought).strip(),
        text=step.text.strip(),
        action=action_text(step.action),
        outcome=step.parse_error or (step.outcome.value if step.outcome else ""),
        marker=marker(step.action),
        branches=_branches(step, 0, pictures),
    )


def _branches(step: Step, parent: int, pictures: Mapping[str, str]) -> tuple[Branch, ...]:
    return tuple(
        Branch(
            k=call.k,
            action=action_text(call.action) if call.action else call.text.strip(),
            picture=pictures.get(call.state_id, "") if call.answered else "",
            note=call.note or ("no change" if _unchanged(call, step) else ""),
            marker=marker(call.action, str(call.k)),
            committed=parent == 0 and call.action is not None and call.action == step.action,
            children=_branches(step, call.k, pictures) if call.k else (),
        )
        for call in step.imagined
        if call.parent == parent
    )


def _unchanged(call: Imagined, step: Step) -> bool:
    return call.answered and call.state_id == step.state_id


async def _pictures(trajectory: Trajectory, blobs: BlobStore, world: WorldModel) -> dict[str, str]:
    """A data URI per state of the trajectory; a state without any picture is left out."""
    stored = {step.state_id: step.screenshot for step in trajectory.steps}
    stored[trajectory.final_state_id] = trajectory.final_screenshot
    for step in trajectory.steps:
        stored |= {c.state_id: c.screenshot for c in step.imagined if c.answered}
    gate = asyncio.Semaphore(FETCHES)

    async def uri(state_id: str, digest: str) -> str:
        async with gate:
            try:
                rendering = await world.get_screenshot(state_id, SHARP)
                if rendering.image is not None and rendering.image.data:
                    return data_uri(rendering.image.data)
            except WMError as error:
                log.debug("no sharp picture", state_id=state_id, error=error.message)
            try:
                return data_uri(await blobs.get(digest)) if digest else ""
            except WMError as error:
                log.warning("no picture for the report", state_id=state_id, error=error.message)
                return ""

    uris = await asyncio.gather(*(uri(state, digest) for state, digest in stored.items()))
    return dict(_with_picture(zip(stored, uris, strict=True)))


def _with_picture(pairs: Iterable[tuple[str, str]]) -> Iterable[tuple[str, str]]:
    return (pair for pair in pairs if pair[1])


def data_uri(data: bytes) -> str:
    kind = "png" if data.startswith(b"\x89PNG") else "jpeg"
    return f"data:image/{kind};base64,{base64.b64encode(data).decode()}"
