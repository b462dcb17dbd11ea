"""Small stand-ins behind the world-model service: a counting world, a renderer, a process.

`Process` is everything one server process holds; two of them over one Redis and one blob
store are two replicas, or one before and after a restart.
"""

import asyncio
from dataclasses import dataclass, field
from typing import Any

import fakeredis

from services.worldmodel.backends import Prediction, Registry
from services.worldmodel.index import Index
from services.worldmodel.pictures import Pictures
from services.worldmodel.states import States
from services.worldmodel.transitions import Transitions
from services.worldmodel.world import World
from wmkit.blobs import MemoryBlobs, digest
from wmkit.domain.actions import Action, Scroll, Tap, Type, Wait
from wmkit.domain.errors import UnknownTask, WMError
from wmkit.domain.screen import Point, Screen
from wmkit.domain.tasks import Judgement, Task, TaskRef, TaskTemplate, Verdict
from wmkit.domain.transition import Element, FailureReason, Image, ImageRequest, Rendering
from wmkit.ports import BlobStore

TAP = Tap(Point(0.5, 0.5))
SCREEN = Screen(100, 200)


@dataclass
class Counter:
    """A world whose state is a number.

    Tap adds one, `type` is an answer cut at its token limit, `wait` adds the seed, `scroll`
    flips the sign (which cannot be seen), anything else changes nothing.
    """

    name: str = "counter"
    revision: str = "counter-1"
    kind: str = "number"
    deterministic: bool = True
    screen: Screen = SCREEN
    drift: int = 0
    """Added to every sampled answer: an engine that does not repeat itself."""
    predicted: int = 0
    dumped: int = 0
    gate: asyncio.Event | None = None

    def start(self, ref: TaskRef) -> tuple[Task, int]:
        if ref.template != "count":
            raise UnknownTask(f"unknown task {ref.template!r}", field="task")
        task = Task(
            ref=ref, goal="Count.", complexity=1, step_limit=20, apps=("Counter",),
            main_app="Counter", kind="count",
        )  # fmt: skip
        return task, ref.seed

    def snap(self, action: Action) -> Action:
        return TAP if isinstance(action, Tap) else action

    async def predict(self, value: int, action: Action, seed: int) -> Prediction[int]:
        self.predicted += 1
        if self.gate is not None:
            await self.gate.wait()
        match action:
            case Tap():
                return Prediction(value + 1)
            case Scroll():
                return Prediction(-value)
            case Type():
                return Prediction(None, FailureReason.TRUNCATED, 8192, "length")
            case Wait():
                return Prediction(value + seed + self.drift, tokens=7, finish_reason="stop")
            case _:
                return Prediction(value)

    def digest(self, value: int) -> str:
        return digest(str(value).encode())

    def screen_digest(self, value: int) -> str:
        return digest(str(abs(value)).encode())

    def dumps(self, value: int) -> bytes:
        self.dumped += 1
        return str(value).encode()

    def loads(self, data: bytes) -> int:
        return int(data)

    def html(self, value: int) -> str:
        return f"<!DOCTYPE html><div id=render-target>{abs(value)}</div>"

    def elements(self, value: int) -> tuple[Element, ...]:
        return (Element("number", "text", str(abs(value)), 0, 0, 100, 50),)

    def judge(
        self, ref: TaskRef, value: int, answer: str | None, finish_status: str | None
    ) -> Judgement:
        verdict = Verdict.SUCCESS if value == ref.seed + 1 else Verdict.FAILURE
        return Judgement(verdict=verdict, reason=f"it is {value}", judge="predicate")

    def templates(self) -> tuple[TaskTemplate, ...]:
        return ()


@dataclass
class Easel:
    """A renderer that draws the text of the HTML as bytes, and counts."""

    blobs: BlobStore
    revision: str = "easel-1"
    drawn: list[str] = field(default_factory=list)
    fails: FailureReason | WMError | None = None

    async def render(
        self, html: str, width_px: int, height_px: int, image: ImageRequest
    ) -> Rendering:
        assert not image.with_elements, "boxes come from the backend"
        if isinstance(self.fails, WMError):
            raise self.fails
        if self.fails is not None:
            return Rendering(None, self.fails)
        self.drawn.append(html)
        data = f"{self.revision} {image.scale} {image.format} {html}".encode()
        name = await self.blobs.put(data)
        width, height = round(width_px * image.scale), round(height_px * image.scale)
        sent = data if image.deliver == "bytes" else b""
        return Rendering(Image(name, width, height, image.format, sent), revision=self.revision)


class Process:
    """One server process. `shared` is what outlives it."""

    def __init__(
        self,
        *backends: Any,
        shared: "Process | None" = None,
        ttl_s: float = 60.0,
        live: int = 1000,
        pin_ttl_s: float | None = None,
    ) -> None:
        self.backends = backends
        self.server: Any = shared.server if shared else fakeredis.FakeServer()
        self.blobs: MemoryBlobs = shared.blobs if shared else MemoryBlobs()
        self.redis = fakeredis.FakeAsyncRedis(server=self.server)
        self.registry = Registry(backends)
        self.index = Index(self.redis, prefix="t:", ttl_s=ttl_s, pin_ttl_s=pin_ttl_s)
        self.states = States(self.registry, self.index, self.blobs, live)
        self.transitions = Transitions(self.states, self.index, 1000)
        self.easel = Easel(self.blobs)
        self.pictures = Pictures(self.easel, self.states, self.index, self.blobs, 1000)
        self.world = World(self.registry, self.states, self.transitions, self.pictures, self.blobs)
