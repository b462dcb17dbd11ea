"""Pages: states that are nothing but a screen, as HTML or as a picture.

What a model that reads a screen and writes the next one has in place of hidden state; such
a backend derives from `PageBackend`. Pictures are named by digest: their bytes lie in the
blob store, and nothing here reads or draws them.
"""

import json
from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import Any, Generic, Literal, TypeVar

from wmkit.blobs import digest
from wmkit.domain.errors import UnknownTask
from wmkit.domain.screen import Screen
from wmkit.domain.tasks import Task, TaskRef, TaskTemplate
from wmkit.domain.transition import Element

V = TypeVar("V")


@dataclass(frozen=True, slots=True)
class Page:
    """One screen: either `html`, or `picture`, the digest of an encoded image of this size."""

    screen: Screen
    html: str = ""
    picture: str = ""
    format: Literal["png", "jpeg"] = "png"

    def __post_init__(self) -> None:
        if bool(self.html) == bool(self.picture):
            raise ValueError("a page is either HTML or a picture")

    @property
    def kind(self) -> Literal["html", "image"]:
        """The kind that names its state."""
        return "image" if self.picture else "html"

    @property
    def digest(self) -> str:
        """Of the HTML, or the picture's own. Two kinds never mix: the name says the kind."""
        return self.picture or digest(self.html.encode())


def dump_page(page: Page, **more: Any) -> bytes:
    """A page as canonical bytes, with `more` that its backend wants to keep beside it."""
    size = [page.screen.width_px, page.screen.height_px, page.screen.scale]
    data: dict[str, Any] = {"page": 1, "kind": page.kind, "screen": size, **more}
    if page.picture:
        data |= {"picture": page.picture, "format": page.format}
    else:
        data |= {"html": page.html}
    return json.dumps(data, sort_keys=True, separators=(",", ":"), ensure_ascii=False).encode()


def load_page(data: bytes) -> tuple[Page, dict[str, Any]]:
    """The page in `dump_page`'s bytes and everything else that they hold.

    Raises ValueError for bytes that hold no page.
    """
    try:
        found = json.loads(data)
        if found.pop("page") != 1:
            raise ValueError("a page of another version")
        width_px, height_px, scale = found.pop("screen")
        kind, form = found.pop("kind"), found.pop("format", "png")
        html, picture = found.pop("html", ""), found.pop("picture", "")
        page = Page(Screen(int(width_px), int(height_px), float(scale)), html, picture, form)
    except (KeyError, TypeError, AttributeError, UnicodeDecodeError) as error:
        raise ValueError(f"these bytes are no page: {error}") from None
    if page.kind != kind:
        raise ValueError(f"a page of kind {kind!r} that holds another")
    return page, found


class PageBackend(ABC, Generic[V]):
    """The part of `WorldBackend` that is the same for all backends whose states are pages.

    A subclass adds `name`, `revision`, `deterministic`, `predict` and `judge`. Where its value
    is more than a page, it also says how one becomes the other.
    """

    kind = "html"
    screen = Screen()

    @abstractmethod
    def page(self, value: V) -> Page:
        """The screen of a value."""

    @abstractmethod
    def accept(self, page: Page) -> V:
        """The value of a screen that a caller brings. Raises InvalidRequest."""

    def digest(self, value: V) -> str:
        return self.page(value).digest

    def screen_digest(self, value: V) -> str:
        page = self.page(value)
        return digest(f"{page.kind}\n{page.digest}".encode())

    @abstractmethod
    def dumps(self, value: V) -> bytes: ...

    @abstractmethod
    def loads(self, data: bytes) -> V: ...

    def html(self, value: V) -> str:
        """The document, empty where the screen is a picture."""
        return self.page(value).html

    def elements(self, value: V) -> tuple[Element, ...]:
        return ()

    def start(self, ref: TaskRef) -> tuple[Task, V]:
        raise UnknownTask(
            f"backend {getattr(self, 'name', '')!r} has no tasks; "
            "create a state from HTML or from a screenshot",
            field="task",
        )

    def templates(self) -> tuple[TaskTemplate, ...]:
        return ()


class PurePages(PageBackend[Page]):
    """A backend whose value is the page itself, as for models that read a screen only."""

    def page(self, value: Page) -> Page:
        return value

    def accept(self, page: Page) -> Page:
        return page

    def dumps(self, value: Page) -> bytes:
        return dump_page(value)

    def loads(self, data: bytes) -> Page:
        page, more = load_page(data)
        if more:
            raise ValueError(f"a page with more than its screen: {sorted(more)}")
        return page


def kind_and_screen(backend: Any, value: Any) -> tuple[str, Screen]:
    """What names a value besides its digest: a page's own, else its backend's."""
    if isinstance(backend, PageBackend):
        page = backend.page(value)
        return page.kind, page.screen
    return backend.kind, backend.screen
