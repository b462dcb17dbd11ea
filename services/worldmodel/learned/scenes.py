"""Screenshots with goals as tasks: an episode that begins on a picture and has no phone behind it.

Task `scenes` with seed k is the k-th line of a packed file of recordings, its first screen and
its goal; what was recorded after that, if anything, is not looked at. So what a data set of
demonstrations begins with can be trained on in a learned world, judged by a model.
"""

from collections.abc import Sequence
from pathlib import Path

from services.worldmodel.backends.pages import Page
from services.worldmodel.replay.recording import Recording, read_recordings
from wmkit.domain.errors import InvalidRequest, UnknownTask
from wmkit.domain.tasks import Task, TaskRef, TaskTemplate

TEMPLATE = "scenes"


class Scenes:
    """Tasks of a file; empty where none is configured."""

    def __init__(self, recordings: Sequence[Recording] = ()) -> None:
        self._recordings = tuple(recordings)
        for recording in self._recordings:
            if not recording.goal.strip():
                raise InvalidRequest(
                    f"scene {recording.episode!r} has no goal", field="learned_scenes"
                )

    @classmethod
    def open(cls, path: str) -> "Scenes":
        """Those of a packed file, none for an empty path. Raises InvalidRequest."""
        return cls(read_recordings(Path(path).expanduser())) if path else cls()

    def start(self, ref: TaskRef) -> tuple[Task, Page]:
        """A scene's task and its first screen. Raises UnknownTask.

        Nobody knows how many steps it takes; a recording's own number is the best guess.
        """
        if not 0 <= ref.seed < len(self._recordings):
            raise UnknownTask(
                f"there is no scene {ref.seed}; WMR1_LEARNED_SCENES holds "
                f"{len(self._recordings)}, numbered from 0",
                field="task",
            )
        recording = self._recordings[ref.seed]
        length = len(recording.actions)
        task = Task(
            ref=ref,
            goal=recording.goal,
            complexity=length,
            step_limit=max(20, 2 * length),
            apps=(),
            main_app="",
            kind=TEMPLATE,
            wants_answer=recording.answer is not None,
        )
        return task, recording.pages[0]

    def templates(self) -> tuple[TaskTemplate, ...]:
        if not self._recordings:
            return ()
        goal = self._recordings[0].goal
        return (
            TaskTemplate(name=TEMPLATE, main_app="", apps=(), kind=TEMPLATE, example_goal=goal),
        )
