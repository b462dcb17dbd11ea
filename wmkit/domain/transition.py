"""What a world model answers: states, transitions, pictures, and why there may be none."""

from dataclasses import dataclass
from enum import StrEnum
from typing import Literal

from wmkit.domain.screen import Point, Screen

ImageFormat = Literal["png", "jpeg", "webp"]


class Purpose(StrEnum):
    """Why a step is made. For metrics only: both have the same effect."""

    COMMIT = "commit"
    IMAGINE = "imagine"


class Outcome(StrEnum):
    """UNCHANGED exactly when the state id is equal; FAILED carries a reason and no state."""

    CHANGED = "changed"
    UNCHANGED = "unchanged"
    FAILED = "failed"


class FailureReason(StrEnum):
    """Why a step or a render has no result although nothing broke down."""

    TRUNCATED = "truncated"
    NO_DOCUMENT = "no_document"
    BLANK = "blank"
    OVERSIZED = "oversized"
    RENDER_TIMEOUT = "render_timeout"


@dataclass(frozen=True, slots=True)
class ImageRequest:
    """The picture a caller wants. `scale` = output pixels per CSS pixel, in (0, 4].

    `deliver="digest"` leaves the bytes in the blob store. `quality` is for JPEG and WebP, 1-100.
    """

    deliver: Literal["digest", "bytes"] = "bytes"
    format: ImageFormat = "png"
    scale: float = 1.0
    quality: int = 90
    with_elements: bool = False

    @property
    def lossy_quality(self) -> int:
        """`quality` where the format has one, else 0: equal pictures have equal values."""
        return 0 if self.format == "png" else self.quality


@dataclass(frozen=True, slots=True)
class Image:
    """An encoded picture. `digest` = BLAKE3 of the encoded bytes; `data` empty unless asked for."""

    digest: str
    width_px: int
    height_px: int
    format: ImageFormat = "png"
    data: bytes = b""


@dataclass(frozen=True, slots=True)
class Element:
    """Something drawn, its box in CSS pixels of the screen."""

    id: str
    role: str
    text: str
    x_px: float
    y_px: float
    width_px: float
    height_px: float
    clickable: bool = False
    checked: bool | None = None
    focused: bool = False
    enabled: bool = True

    def center(self, screen: Screen) -> Point:
        """The middle of the box as a fraction of the screen, clamped to it."""
        x = (self.x_px + self.width_px / 2) / screen.width_px
        y = (self.y_px + self.height_px / 2) / screen.height_px
        return Point(min(max(x, 0.0), 1.0), min(max(y, 0.0), 1.0))


@dataclass(frozen=True, slots=True)
class State:
    """A named immutable value. `payload_digest` is the blob from which it can be rebuilt."""

    state_id: str
    screen_id: str
    backend: str
    revision: str
    screen: Screen
    payload_digest: str


@dataclass(frozen=True, slots=True)
class Provenance:
    """Where an answer came from; times in milliseconds.

    `warnings` say what is odd about a model's answer although it could be used.
    """

    backend: str
    revision: str
    cache_hit: bool = False
    tokens: int = 0
    finish_reason: str = ""
    step_ms: float = 0.0
    render_ms: float = 0.0
    warnings: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Transition:
    """The answer to one step. `state` is None exactly when `outcome` is FAILED."""

    outcome: Outcome
    provenance: Provenance
    state: State | None = None
    reason: FailureReason | None = None
    image: Image | None = None
    elements: tuple[Element, ...] = ()


@dataclass(frozen=True, slots=True)
class Rendering:
    """The renderer's answer. `reason` is None exactly when the picture is there."""

    image: Image | None
    reason: FailureReason | None = None
    elements: tuple[Element, ...] = ()
    warnings: tuple[str, ...] = ()
    cached: bool = False
    render_ms: float = 0.0
    revision: str = ""


@dataclass(frozen=True, slots=True)
class Backend:
    """A world model behind the service."""

    name: str
    revision: str
    deterministic: bool
    default: bool
