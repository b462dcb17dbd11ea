"""What the learned world models have in common besides their states, which are pages.

Their tasks are the scripted phone's, and screenshots with goals (`scenes`): an episode starts
on the first screen and is played by the model from there. So only a judge that looks at screens
can tell how it ended.
"""

from services.worldmodel.backends.base import Prediction, Seeing
from services.worldmodel.backends.pages import Page, PurePages
from services.worldmodel.engine import Identity, ModelClient
from services.worldmodel.learned.scenes import TEMPLATE, Scenes
from wmkit.domain.actions import Action
from wmkit.domain.errors import InvalidRequest
from wmkit.domain.tasks import Judgement, Task, TaskRef, TaskTemplate


class LearnedPages(PurePages, Seeing[Page]):
    """A backend that asks a model through a client. See `WorldBackend` for the methods."""

    name: str
    revision: str
    deterministic: bool

    def __init__(self, engine: ModelClient, scenes: Scenes | None = None) -> None:
        self._engine = engine
        self._scenes = scenes or Scenes()

    @property
    def endpoint(self) -> Identity:
        """The model that makes the pages; the judge must be another."""
        return self._engine.endpoint

    def start(self, ref: TaskRef) -> tuple[Task, Page]:
        if ref.template == TEMPLATE:
            return self._scenes.start(ref)
        from services.worldmodel.backends.scripted import Scripted

        phone = Scripted()
        task, value = phone.start(ref)
        return task, Page(phone.screen, html=phone.html(value))

    def templates(self) -> tuple[TaskTemplate, ...]:
        from services.worldmodel.backends.scripted import Scripted

        return (*Scripted().templates(), *self._scenes.templates())

    async def predict(self, value: Page, action: Action, seed: int) -> Prediction[Page]:
        raise AssertionError(f"{self.name} looks at the screen: ask predict_seen")

    def judge(
        self, ref: TaskRef, value: Page, answer: str | None, finish_status: str | None
    ) -> Judgement:
        """Raises InvalidRequest: nobody but a model that looks at it can judge a page."""
        raise InvalidRequest(
            f"{self.name} has no predicate over its pages; a model judge is needed: set "
            "WMR1_JUDGE_URL and WMR1_JUDGE_MODEL",
            field="task",
        )

    async def close(self) -> None:
        await self._engine.close()
