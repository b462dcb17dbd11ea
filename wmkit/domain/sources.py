"""What a state can be made from. Plain values; which backend takes which is its own affair."""

from dataclasses import dataclass, field

from wmkit.domain.screen import Screen
from wmkit.domain.tasks import TaskRef


@dataclass(frozen=True, slots=True)
class FromHtml:
    """A screen as a document of the HTML contract. `screen` is the viewport it is drawn in."""

    html: str
    screen: Screen = field(default_factory=Screen)


@dataclass(frozen=True, slots=True)
class FromScreenshot:
    """A screen as an encoded PNG or JPEG; its pixels are the screen's."""

    data: bytes


@dataclass(frozen=True, slots=True)
class FromPayload:
    """A state that was made before, from the blob that `State.payload_digest` names.

    Payloads outlive every lifetime in Redis, so any recorded state can start a branch. With
    `state_id` the call fails rather than give another state.
    """

    payload_digest: str
    state_id: str = ""


StateSource = TaskRef | FromHtml | FromScreenshot | FromPayload
