"""What a state can begin with: a task, a screen that a caller brings, a payload of before.

Gives a backend's value. Naming and keeping it is `states`, drawing it `pictures`.
"""

from typing import Any

from services.worldmodel import screenshots
from services.worldmodel.backends import Registry, WorldBackend
from services.worldmodel.backends.pages import Page, PageBackend
from services.worldmodel.states import name_of
from wmkit.domain.errors import (
    BadHtml,
    InvalidRequest,
    NotFound,
    PayloadTooLarge,
    StateNotFound,
)
from wmkit.domain.screen import Screen
from wmkit.domain.sources import FromHtml, FromPayload, FromScreenshot, StateSource
from wmkit.domain.tasks import Task, TaskRef
from wmkit.ports import BlobStore

_MAX_HTML_CHARS = 4_000_000
_MAX_SIDE_PX = 8_192


class Creation:
    """Values to begin with."""

    def __init__(self, registry: Registry, blobs: BlobStore) -> None:
        self._registry = registry
        self._blobs = blobs

    async def start(self, model: WorldBackend[Any], source: StateSource) -> tuple[Task | None, Any]:
        """A value of the backend and its task, where it has one. See `World.create_state`."""
        match source:
            case TaskRef():
                return model.start(source)
            case FromHtml(html, screen):
                pages = self._pages(model)
                return None, pages.accept(Page(_checked(screen), html=_document(html)))
            case FromScreenshot(data):
                pages = self._pages(model)
                screen, form = await screenshots.inspect(data)
                picture = await self._blobs.put(data)
                return None, pages.accept(Page(_checked(screen), picture=picture, format=form))
            case FromPayload():
                return None, await self._restored(model, source)

    def _pages(self, model: WorldBackend[Any]) -> PageBackend[Any]:
        if isinstance(model, PageBackend):
            return model
        able = [other.name for other in self._registry if isinstance(other, PageBackend)]
        hint = (
            f"these backends start from screens: {', '.join(able)}"
            if able
            else ("no backend of this server starts from screens")
        )
        raise InvalidRequest(f"backend {model.name!r} starts from tasks only; {hint}", "backend")

    async def _restored(self, model: WorldBackend[Any], source: FromPayload) -> Any:
        name = source.payload_digest
        try:
            value = model.loads(await self._blobs.get(name))
        except NotFound:
            raise StateNotFound(
                f"there is no payload {name}, so its state cannot be brought back",
                resource=source.state_id or name,
            ) from None
        except ValueError:
            raise InvalidRequest(
                f"payload {name} is no state of backend {model.name!r} ({model.revision})",
                field="payload.payload_digest",
            ) from None
        found = name_of(model, value)
        if source.state_id and source.state_id != found:
            raise StateNotFound(
                f"payload {name} gives state {found} in {model.name} ({model.revision}), "
                f"not {source.state_id}",
                resource=source.state_id,
            )
        if isinstance(model, PageBackend):
            picture = model.page(value).picture
            if picture and not await self._blobs.has(picture):
                raise StateNotFound(f"state {found} has lost its picture {picture}", resource=found)
        return value


def _document(html: str) -> str:
    if not html.strip():
        raise BadHtml("the HTML is empty", field="html.html")
    if len(html) > _MAX_HTML_CHARS:
        raise PayloadTooLarge(
            f"the HTML has {len(html):,} characters; at most {_MAX_HTML_CHARS:,} are accepted"
        )
    if "<" not in html:
        raise BadHtml("the HTML holds no element", field="html.html")
    return html


def _checked(screen: Screen) -> Screen:
    if max(screen.width_px, screen.height_px) > _MAX_SIDE_PX:
        raise InvalidRequest(
            f"a screen of {screen.width_px}x{screen.height_px} is too large; "
            f"no side may exceed {_MAX_SIDE_PX} px",
            field="screen",
        )
    if not 0 < screen.scale <= 8:
        raise InvalidRequest(f"screen.scale must be in (0, 8], is {screen.scale:g}", "screen.scale")
    return screen
