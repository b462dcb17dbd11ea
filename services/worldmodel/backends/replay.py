"""Recorded episodes as a world model: real screens without any model.

The recorded next screen where the action matches the recorded one (`replay.matching`),
else nothing changes. Task `replay` with seed k is the k-th episode of the file, from 0.
"""

import json
from dataclasses import dataclass
from pathlib import Path

from services.worldmodel.backends.base import Prediction
from services.worldmodel.backends.pages import Page, PageBackend, dump_page, load_page
from services.worldmodel.replay.matching import RULE, matches
from services.worldmodel.replay.recording import Recording, read_recordings
from wmkit.blobs import digest
from wmkit.domain.actions import Action
from wmkit.domain.errors import InvalidRequest, UnknownTask
from wmkit.domain.tasks import Judgement, Task, TaskRef, TaskTemplate, Verdict

TEMPLATE = "replay"


@dataclass(frozen=True, slots=True)
class Place:
    """A screen and where it stands in a recording; `episode` is empty for one from outside."""

    page: Page
    episode: str = ""
    index: int = 0


class Replay(PageBackend[Place]):
    """See `WorldBackend` for the meaning of the methods."""

    name = "replay"
    deterministic = True

    def __init__(self, recordings: tuple[Recording, ...]) -> None:
        self._recordings = recordings
        self._by_name = {recording.episode: recording for recording in recordings}
        self._seen: dict[tuple[str, str], Place] = {}
        for recording in recordings:
            for index, page in enumerate(recording.pages):
                key = (page.kind, page.digest)
                self._seen.setdefault(key, Place(page, recording.episode, index))
        self.screen = recordings[0].pages[0].screen
        said = "\n".join(recording.model_dump_json() for recording in recordings)
        self.revision = f"replay-{RULE}-{digest(said.encode())[:16]}"

    @classmethod
    def open(cls, path: str) -> "Replay":
        """The recordings of a packed file. Raises InvalidRequest."""
        if not path:
            raise InvalidRequest(
                "the replay backend needs recordings; set WMR1_REPLAY to a packed file",
                field="replay",
            )
        return cls(read_recordings(Path(path).expanduser()))

    def start(self, ref: TaskRef) -> tuple[Task, Place]:
        recording = self._recording(ref)
        length = len(recording.actions)
        task = Task(
            ref=ref,
            goal=recording.goal,
            complexity=length,
            step_limit=max(20, 2 * length),
            apps=(),
            main_app="",
            kind="replay",
            wants_answer=recording.answer is not None,
        )
        return task, Place(recording.pages[0], recording.episode, 0)

    def templates(self) -> tuple[TaskTemplate, ...]:
        goal = self._recordings[0].goal
        return (
            TaskTemplate(name=TEMPLATE, main_app="", apps=(), kind="replay", example_goal=goal),
        )

    def snap(self, action: Action) -> Action:
        return action

    async def predict(self, value: Place, action: Action, seed: int) -> Prediction[Place]:
        recording = self._by_name.get(value.episode)
        if recording is None or value.index == len(recording.moves):
            return Prediction(value)
        if not matches(action, recording.moves[value.index]):
            return Prediction(value)
        index = value.index + 1
        return Prediction(Place(recording.pages[index], value.episode, index))

    def judge(
        self, ref: TaskRef, value: Place, answer: str | None, finish_status: str | None
    ) -> Judgement:
        """Did the episode come to the recording's end and close as it did?

        Unsure where the recording itself is no proof, or the answer is worded otherwise:
        whether two texts say the same is not for this judge.
        """
        recording = self._recording(ref)
        length = len(recording.moves)
        if value.episode != recording.episode or value.index < length:
            at = f"step {value.index} of {length}" if value.episode else "a screen of its own"
            return _judged(Verdict.FAILURE, f"it ended at {at} of the recording")
        if recording.succeeded is not True:
            return _judged(Verdict.UNSURE, "the recording is not known to be a success")
        if recording.answer is not None:
            if answer is None:
                return _judged(Verdict.FAILURE, "no answer was given")
            same = " ".join(answer.casefold().split()) == " ".join(
                recording.answer.casefold().split()
            )
            if same:
                return _judged(Verdict.SUCCESS, "the recording's end and its answer")
            return _judged(Verdict.UNSURE, f"the recorded answer is {recording.answer!r}")
        if finish_status == (recording.finish_status or "success"):
            return _judged(Verdict.SUCCESS, "the recording's end")
        return _judged(Verdict.FAILURE, f"at the recording's end {finish_status} was declared")

    def page(self, value: Place) -> Page:
        return value.page

    def accept(self, page: Page) -> Place:
        """The first place in the recordings that looks like this, else one outside of them."""
        return self._seen.get((page.kind, page.digest), Place(page))

    def digest(self, value: Place) -> str:
        where = json.dumps([value.page.digest, value.episode, value.index])
        return digest(where.encode())

    def dumps(self, value: Place) -> bytes:
        return dump_page(value.page, episode=value.episode, index=value.index)

    def loads(self, data: bytes) -> Place:
        page, more = load_page(data)
        if set(more) != {"episode", "index"}:
            raise ValueError("a page that is no place in a recording")
        place = Place(page, str(more["episode"]), int(more["index"]))
        if place.episode:
            recording = self._by_name.get(place.episode)
            if recording is None or recording.pages[place.index : place.index + 1] != (page,):
                raise ValueError(f"episode {place.episode!r} is not recorded like this here")
        return place

    def _recording(self, ref: TaskRef) -> Recording:
        if ref.template != TEMPLATE:
            raise UnknownTask(
                f"unknown task {ref.template!r}; the replay backend has {TEMPLATE!r}", field="task"
            )
        if not 0 <= ref.seed < len(self._recordings):
            raise UnknownTask(
                f"there is no recording {ref.seed}; seeds are 0 to {len(self._recordings) - 1}",
                field="task.seed",
            )
        return self._recordings[ref.seed]


def _judged(verdict: Verdict, reason: str) -> Judgement:
    return Judgement(verdict=verdict, reason=reason, judge="recording")
