"""A world model whose states are words and whose transitions come from a function."""

from collections.abc import Callable, Sequence
from io import BytesIO

from wmkit.blobs import MemoryBlobs, digest
from wmkit.domain.actions import Action
from wmkit.domain.errors import InvalidRequest, StateNotFound, UnknownTask
from wmkit.domain.screen import Screen
from wmkit.domain.sources import FromPayload, StateSource
from wmkit.domain.tasks import Judgement, Task, TaskRef, TaskTemplate, Verdict
from wmkit.domain.transition import (
    Backend,
    FailureReason,
    Image,
    ImageRequest,
    Outcome,
    Provenance,
    Purpose,
    Rendering,
    State,
    Transition,
)
from wmkit.ports import BlobStore, Created

Next = Callable[[str, Action], str | FailureReason]

_BACKEND = Backend("fake", "1", deterministic=True, default=True)


class FakeWorldModel:
    """Implements `wmkit.ports.WorldModel`.

    `transition(state, action)` gives the next state's word, or the reason why there is
    none. The task succeeds in the state `goal`. `steps` keeps what was asked: (state,
    action, purpose). Pictures are small plain PNGs, put into `blobs`, one colour a state; so
    are the words, as payloads from which another instance can bring a state back.
    """

    def __init__(
        self,
        transition: Next,
        *,
        start: str = "start",
        goal: str = "goal",
        template: str = "fake",
        blobs: BlobStore | None = None,
        screen: Screen | None = None,
    ) -> None:
        self._transition = transition
        self._goal = goal
        self._start = start
        self._template = template
        self._screen = screen or Screen()
        self._words: dict[str, str] = {}
        self.blobs: BlobStore = blobs if blobs is not None else MemoryBlobs()
        self.steps: list[tuple[str, Action, Purpose]] = []

    async def create_state(
        self,
        task: StateSource,
        /,
        *,
        backend: str = "",
        image: ImageRequest | None = None,
        pin: bool = False,
    ) -> Created:
        if isinstance(task, FromPayload):
            word = (await self.blobs.get(task.payload_digest)).decode()
            return Created(self._state(word), None, await self._draw(word, image))
        if not isinstance(task, TaskRef):
            raise InvalidRequest("the fake world model starts from tasks and payloads", "source")
        if task.template != self._template:
            raise UnknownTask(f"there is no task {task.template!r}", "task.template")
        made = Task(
            ref=task,
            goal=f"reach {self._goal}",
            complexity=1,
            step_limit=20,
            apps=("fake",),
            main_app="fake",
            kind="navigate",
        )
        await self.blobs.put(self._start.encode())
        return Created(self._state(self._start), made, await self._draw(self._start, image))

    async def step(
        self,
        state_id: str,
        action: Action,
        *,
        purpose: Purpose,
        seed: int = 0,
        image: ImageRequest | None = None,
        pin: bool = False,
        goal: str = "",
    ) -> Transition:
        word = self._word(state_id)
        self.steps.append((word, action, purpose))
        found = self._transition(word, action)
        origin = Provenance(_BACKEND.name, _BACKEND.revision)
        if isinstance(found, FailureReason):
            return Transition(Outcome.FAILED, origin, reason=found)
        await self.blobs.put(found.encode())
        outcome = Outcome.UNCHANGED if found == word else Outcome.CHANGED
        return Transition(outcome, origin, self._state(found), image=await self._draw(found, image))

    async def get_state(self, state_id: str) -> State:
        return self._state(self._word(state_id))

    async def get_screenshot(self, state_id: str, image: ImageRequest) -> Rendering:
        return Rendering(await self._draw(self._word(state_id), image))

    async def judge(
        self,
        task: TaskRef | None,
        final_state_id: str,
        *,
        answer: str | None = None,
        finish_status: str | None = None,
        goal: str = "",
        first_state_id: str = "",
        actions: Sequence[Action] | None = None,
        request_id: str = "",
    ) -> Judgement:
        word = self._word(final_state_id)
        verdict = Verdict.SUCCESS if word == self._goal else Verdict.FAILURE
        return Judgement(verdict=verdict, reason=f"the phone is at {word}", judge="fake")

    async def list_backends(self) -> Sequence[Backend]:
        return [_BACKEND]

    async def list_tasks(self) -> Sequence[TaskTemplate]:
        return [
            TaskTemplate(
                name=self._template,
                main_app="fake",
                apps=("fake",),
                kind="navigate",
                example_goal=f"reach {self._goal}",
            )
        ]

    def _state(self, word: str) -> State:
        name = digest(word.encode())
        self._words[name] = word
        return State(name, name, _BACKEND.name, _BACKEND.revision, self._screen, name)

    def _word(self, state_id: str) -> str:
        try:
            return self._words[state_id]
        except KeyError:
            raise StateNotFound(f"there is no state {state_id}", state_id) from None

    async def _draw(self, word: str, request: ImageRequest | None) -> Image | None:
        if request is None:
            return None
        from PIL import Image as pil

        size = (
            max(round(self._screen.width_px * request.scale), 1),
            max(round(self._screen.height_px * request.scale), 1),
        )
        out = BytesIO()
        red, green, blue = bytes.fromhex(digest(word.encode())[:6])
        pil.new("RGB", size, (red, green, blue)).save(out, request.format)
        data = out.getvalue()
        name = await self.blobs.put(data)
        kept = data if request.deliver == "bytes" else b""
        return Image(name, *size, request.format, kept)
