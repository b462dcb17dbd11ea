"""Code2World: a vision-language model that writes the next screen as HTML.

The contract is the published one: a system turn, then the screenshot with the action's cue
drawn on it and the interaction in words. The model samples with its checkpoint's own
generation config, so the transition seed decides which of its answers it is.
"""

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, cast

from services.worldmodel.backends.base import Prediction, Scene
from services.worldmodel.backends.pages import Page
from services.worldmodel.engine import Ask, ModelClient
from services.worldmodel.engine.wire import Message
from services.worldmodel.learned import cue, extract, phrases, shots
from services.worldmodel.learned.answer import prediction
from services.worldmodel.learned.pages import LearnedPages
from services.worldmodel.learned.phrases import ActionData
from services.worldmodel.learned.prompts import OWN, read
from services.worldmodel.learned.revision import revision
from services.worldmodel.learned.scenes import Scenes
from wmkit.domain.actions import Action
from wmkit.domain.screen import Point, Screen

PLACEHOLDERS = ("intent", "description", "action_data")
NEUTRAL_INTENT = "Show what the phone does after this interaction."
"""Stands in for the goal: a model that knows the goal is tempted to draw it as reached."""
MAX_TOKENS = 8192


@dataclass(frozen=True, slots=True)
class Code2WorldOptions:
    """`prompt_file` is empty for our own words; `include_goal` shows the goal to the model.

    `model_revision` tells apart weights that the server serves under one name.
    """

    prompt_file: str | Path = ""
    action_data: ActionData = "android_world"
    include_goal: bool = True
    max_tokens: int = MAX_TOKENS
    model_revision: str = ""


class Code2World(LearnedPages):
    """See `WorldBackend` and `Seeing` for the meaning of the methods.

    Raises InvalidRequest for a prompt file that cannot be used.
    """

    name = "code2world"
    deterministic = False
    screen = Screen(1080, 2400)

    def __init__(
        self,
        engine: ModelClient,
        options: Code2WorldOptions | None = None,
        scenes: Scenes | None = None,
    ) -> None:
        super().__init__(engine, scenes)
        self._options = options = options or Code2WorldOptions()
        self.reads_goal = options.include_goal
        self._prompt = read(
            options.prompt_file or OWN / "code2world.toml",
            needs=PLACEHOLDERS,
            setting="WMR1_CODE2WORLD_PROMPT_FILE",
        )
        self._grid = phrases.grid(options.action_data, self.screen)
        self.revision = revision(
            self.name,
            {
                "model": [engine.endpoint.model, options.model_revision],
                "prompt": [self._prompt.system, self._prompt.user],
                "action_data": options.action_data,
                "include_goal": options.include_goal,
                "max_tokens": options.max_tokens,
            },
        )

    def snap(self, action: Action) -> Action:
        """Points move to the middle of their cell on the grid of the action data."""
        moved: dict[str, Point] = {}
        for field in ("point", "to"):
            point = getattr(action, field, None)
            if isinstance(point, Point):
                x, y = self._grid.write(point)
                moved[field] = self._grid.read(x, y, (0, 0))
        snapped: Action = replace(cast(Any, action), **moved)
        return snapped

    async def predict_seen(
        self, value: Page, action: Action, seed: int, scene: Scene
    ) -> Prediction[Page]:
        messages = await asyncio.to_thread(self.messages, action, scene)
        ask = Ask(messages, self._options.max_tokens, seed=seed)
        return prediction(await self._engine.complete(ask), extract.document, self.screen)

    def messages(self, action: Action, scene: Scene) -> Sequence[Message]:
        """What the model is sent: system text, then the marked screenshot before the words.

        Raises InvalidAction for an action that ends an episode.
        """
        goal = scene.goal.strip() if self._options.include_goal else ""
        screen = shots.decode(scene.picture)
        device = Screen(*screen.size)
        prompt = self._prompt.fill(
            {
                "intent": goal or NEUTRAL_INTENT,
                "description": phrases.sentence(action),
                "action_data": phrases.data(self._options.action_data, action, device),
            }
        )
        user = {
            "role": "user",
            "content": [
                shots.image_part(cue.draw(screen, action)),
                {"type": "text", "text": prompt.user},
            ],
        }
        return [{"role": "system", "content": prompt.system}, user] if prompt.system else [user]
