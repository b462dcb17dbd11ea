"""Recorded episodes as JSON lines: n actions between n + 1 screens. One line, one episode.

    {"episode": "17", "goal": "Turn on Bluetooth",
     "screens": [{"file": "17/0.png"}, {"html": "<!DOCTYPE html>..."}, {"picture": "ab12..."}],
     "actions": [{"action": "tap", "point": [0.5, 0.25], "box": [0.0, 0.2, 1.0, 0.3]},
                 {"action": "back"}],
     "finish_status": "success"}

A screen is HTML, the digest of a picture in the blob store, or an image file beside the
recording, which `packing` puts into the store. Actions are canonical (`wmkit.domain.actions`);
`box` = left, top, right, bottom of what was touched, as fractions of the screen, where known.
"""

import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any, Literal

from pydantic import BaseModel, ConfigDict, ValidationError, model_validator

from services.worldmodel.backends.pages import Page
from wmkit.domain.actions import TERMINAL, Action, from_dict
from wmkit.domain.errors import InvalidAction, InvalidRequest
from wmkit.domain.screen import Screen

Box = tuple[float, float, float, float]


class RecordedScreen(BaseModel):
    """Exactly one of `html`, `picture` (a digest) and `file` (a path beside the recording).

    `width_px` x `height_px` is the viewport of HTML and the size of a picture.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    html: str = ""
    picture: str = ""
    file: str = ""
    format: Literal["png", "jpeg"] = "png"
    width_px: int = 0
    height_px: int = 0

    @model_validator(mode="after")
    def _is_one_thing(self) -> "RecordedScreen":
        if sum(map(bool, (self.html, self.picture, self.file))) != 1:
            raise ValueError("a screen has exactly one of html, picture, file")
        return self

    @property
    def packed(self) -> bool:
        """Whether it can be shown without a file and its size is known."""
        return bool(self.html) or bool(self.picture and self.width_px and self.height_px)

    def page(self) -> Page:
        size = Screen()
        if self.width_px and self.height_px:
            size = Screen(self.width_px, self.height_px)
        return Page(size, self.html, self.picture, self.format)


@dataclass(frozen=True, slots=True)
class RecordedAction:
    """What was done, and the box of what was touched where the recording knows it."""

    action: Action
    box: Box | None = None


class Recording(BaseModel):
    """One recorded episode. `succeeded` is None where nobody knows."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    episode: str
    goal: str
    screens: tuple[RecordedScreen, ...]
    actions: tuple[dict[str, Any], ...]
    answer: str | None = None
    finish_status: Literal["success", "infeasible"] | None = None
    succeeded: bool | None = True

    @model_validator(mode="after")
    def _fits_together(self) -> "Recording":
        if len(self.screens) != len(self.actions) + 1:
            raise ValueError(
                f"{len(self.actions)} actions need {len(self.actions) + 1} screens, "
                f"not {len(self.screens)}"
            )
        assert self.moves is not None
        return self

    @cached_property
    def moves(self) -> tuple[RecordedAction, ...]:
        """The actions, read."""
        return tuple(_move(data) for data in self.actions)

    @cached_property
    def pages(self) -> tuple[Page, ...]:
        """The screens, as they are shown."""
        return tuple(screen.page() for screen in self.screens)


def read_recordings(path: Path) -> tuple[Recording, ...]:
    """All episodes of a packed file.

    Raises InvalidRequest, naming the line, for what is no recording, a screen that is not
    packed, two episodes of one name, and for a file that cannot be read or is empty.
    """
    found: list[Recording] = []
    names: set[str] = set()
    for number, recording in read_lines(path):
        if not all(screen.packed for screen in recording.screens):
            raise InvalidRequest(
                f"{path}:{number}: its screens are files; pack it first: "
                f"python -m services.worldmodel.replay {path} packed.jsonl",
                field="replay",
            )
        if recording.episode in names:
            raise InvalidRequest(
                f"{path}:{number}: a second episode {recording.episode!r}", field="replay"
            )
        names.add(recording.episode)
        found.append(recording)
    if not found:
        raise InvalidRequest(f"{path} holds no recordings", field="replay")
    return tuple(found)


def read_lines(path: Path) -> Iterator[tuple[int, Recording]]:
    """Line numbers and episodes, packed or not. Raises InvalidRequest."""
    for number, line in json_lines(path):
        try:
            yield number, Recording.model_validate_json(line)
        except ValidationError as error:
            first = error.errors()[0]
            where = ".".join(str(part) for part in first["loc"])
            raise InvalidRequest(
                f"{path}:{number}: {where + ': ' if where else ''}{first['msg']}", field="replay"
            ) from None


def json_lines(path: Path) -> Iterator[tuple[int, str]]:
    """The lines that hold something. Raises InvalidRequest for a file that cannot be read."""
    try:
        with path.open(encoding="utf-8") as lines:
            for number, line in enumerate(lines, start=1):
                if line.strip():
                    yield number, line
    except (OSError, UnicodeDecodeError) as error:
        raise InvalidRequest(f"{path} cannot be read: {error}", field="replay") from None


def _move(data: dict[str, Any]) -> RecordedAction:
    words = dict(data)
    box = _box(words.pop("box", None))
    try:
        action = from_dict(words)
    except InvalidAction as error:
        raise ValueError(error.message) from None
    if isinstance(action, TERMINAL):
        raise ValueError(f"{action.name} ends an episode; write answer or finish_status instead")
    return RecordedAction(action, box)


def _box(value: Sequence[float] | None) -> Box | None:
    if value is None:
        return None
    try:
        left, top, right, bottom = (float(side) for side in value)
    except (TypeError, ValueError):
        raise ValueError(f"a box is four numbers, not {json.dumps(value)}") from None
    if not (0 <= left < right <= 1 and 0 <= top < bottom <= 1):
        raise ValueError(f"a box is left, top, right, bottom in [0, 1], not {list(value)}")
    return left, top, right, bottom
