"""gWorld: a vision-language model that reasons about the next screen and writes it as HTML.

The contract is the published one: one user turn, screenshot before text, no system turn; the
action as JSON with coordinates from 0 to 1000; greedy decoding. It knows four actions (tap,
type, scroll, open an app); any other is refused, never bent into one of them.
"""

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Literal, cast

from services.worldmodel.backends.base import Prediction, Scene
from services.worldmodel.backends.pages import Page
from services.worldmodel.engine import Ask, ModelClient
from services.worldmodel.engine.wire import Message
from services.worldmodel.learned import extract, shots
from services.worldmodel.learned.answer import prediction
from services.worldmodel.learned.frameworks import drop_remote
from services.worldmodel.learned.pages import LearnedPages
from services.worldmodel.learned.prompts import OWN, read
from services.worldmodel.learned.revision import revision
from services.worldmodel.learned.scenes import Scenes
from services.worldmodel.learned.viewport import gworld_screen
from wmkit.domain.actions import Action
from wmkit.domain.dialects.gworld import GWorld as Dialect
from wmkit.domain.resize import ResizeRule
from wmkit.domain.screen import Point, View

PLACEHOLDERS = ("action",)
TEMPERATURE = 0.0
SEED = 42
MAX_TOKENS = 15_000
CONTEXT_TOKENS = 19_384
"""Context that the server must be started with: the picture's tokens and the answer's."""
PICTURE = ResizeRule(factor=32, min_pixels=3136, max_pixels=4_233_600)

_ANY_VIEW = View((1080, 2400), (1080, 2400))
"""Coordinates from 0 to 1000 are the same in every one."""


@dataclass(frozen=True, slots=True)
class GWorldOptions:
    """`action_key` is `action` in the published evaluation code, `action_type` in the card."""

    prompt_file: str | Path = ""
    action_key: Literal["action", "action_type"] = "action"
    max_tokens: int = MAX_TOKENS
    model_revision: str = ""


class GWorld(LearnedPages):
    """See `WorldBackend` and `Seeing` for the meaning of the methods.

    Raises InvalidRequest for a prompt file that cannot be used.
    """

    name = "gworld"
    deterministic = True
    screen = gworld_screen(1080, 2400)
    reads_goal = False

    def __init__(
        self,
        engine: ModelClient,
        options: GWorldOptions | None = None,
        scenes: Scenes | None = None,
    ) -> None:
        super().__init__(engine, scenes)
        self._options = options = options or GWorldOptions()
        self._dialect = Dialect(options.action_key)
        self._grid = self._dialect.grid(_ANY_VIEW)
        self._prompt = read(
            options.prompt_file or OWN / "gworld.toml",
            needs=PLACEHOLDERS,
            setting="WMR1_GWORLD_PROMPT_FILE",
        )
        self.revision = revision(
            self.name,
            {
                "model": [engine.endpoint.model, options.model_revision],
                "prompt": [self._prompt.system, self._prompt.user],
                "action_key": options.action_key,
                "decoding": [TEMPERATURE, SEED, options.max_tokens],
            },
        )

    def snap(self, action: Action) -> Action:
        """Points move to the nearest mark from 0 to 1000."""
        point = getattr(action, "point", None)
        if not isinstance(point, Point):
            return action
        x, y = self._grid.write(point)
        snapped: Action = replace(cast(Any, action), point=self._grid.read(x, y, (0, 0)))
        return snapped

    async def predict_seen(
        self, value: Page, action: Action, seed: int, scene: Scene
    ) -> Prediction[Page]:
        """The seed is ignored. Raises InvalidAction for an action gWorld has no word for."""
        messages = await asyncio.to_thread(self.messages, action, scene)
        ask = Ask(messages, self._options.max_tokens, temperature=TEMPERATURE, seed=SEED)
        # A page has the size of the screen before it, whatever viewport that was written for.
        screen = gworld_screen(value.screen.width_px, value.screen.height_px)
        answer = await self._engine.complete(ask)
        found = prediction(answer, extract.document_after_heading, screen)
        if found.value is None:
            return found
        html, dropped = drop_remote(found.value.html)
        return replace(found, value=Page(screen, html=html), warnings=(*found.warnings, *dropped))

    def messages(self, action: Action, scene: Scene) -> Sequence[Message]:
        """What the model is sent: one user turn, the screenshot before the words.

        Raises InvalidAction for an action that gWorld has no word for.
        """
        words = self._dialect.render(action, _ANY_VIEW)
        prompt = self._prompt.fill({"action": words})
        picture = shots.fit(shots.decode(scene.picture), PICTURE)
        content = [shots.image_part(picture), {"type": "text", "text": prompt.user}]
        user = {"role": "user", "content": content}
        return [{"role": "system", "content": prompt.system}, user] if prompt.system else [user]
