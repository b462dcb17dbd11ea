"""One warm page of a browser: draws a document, is blanked, and draws the next one.

A page keeps nothing of a document but memory: no script runs in it, nothing is stored, and
the policy under which it was opened lets it load nothing but `data:`. The few documents that
would leave something behind are told from the others (`Drawn.spoiled`). A page has no deadline
of its own; whoever calls it watches it and throws it away after anything irregular (`pool`).
"""

import asyncio
import base64
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from playwright.async_api import BrowserContext, CDPSession, Route

from wmkit.domain.transition import Element, ImageRequest

_PROBE = (Path(__file__).parent / "probe.js").read_text()
# The old document may have given these names to elements of its own.
_BLANK = """() => {
  const { open, write, close } = Document.prototype;
  open.call(document);
  write.call(document, '<!DOCTYPE html>');
  close.call(document);
}"""
# Outlives every document that is written into the page later.
_POLICY = (
    '<!DOCTYPE html><meta http-equiv="Content-Security-Policy" content="'
    "default-src 'none'; style-src 'unsafe-inline'; img-src data:; font-src data:; "
    "media-src data:; base-uri 'none'; form-action 'none'\">"
)
# What a phone draws text in where a document names no face, or only `sans-serif`. Where it is
# not installed, fontconfig gives the sans-serif that comes closest.
_FACES = {"standard": "Roboto", "sansSerif": "Roboto"}
_CLOSE_S = 5.0


@dataclass(frozen=True, slots=True)
class Drawn:
    """What the browser made of a document. `data` is the encoded picture, if one was wanted.

    `content`: there is text, a graphic, a control or a named element in it.
    `background`: the target, or the document around it, paints one of its own.
    `overflow_px`: how far the target's content reaches beyond it, x and y.
    `spoiled`: the document left something in the page that a later one would feel.
    """

    data: bytes
    has_target: bool
    background: bool
    content: bool
    animated: int
    overflow_px: tuple[int, int]
    elements: tuple[Element, ...]
    spoiled: bool = False


class WarmPage:
    """Made by `open_page`. `crashed` is set when its renderer process dies."""

    def __init__(
        self, context: BrowserContext, session: CDPSession, probe: str, blank: str
    ) -> None:
        self._context = context
        self._session = session
        self._probe = probe
        self._blank = blank
        self._viewport = (0, 0)
        self.crashed = asyncio.Event()
        self.jobs = 0
        self.pid: int | None = None
        """Its renderer process, where known."""

    async def draw(
        self, html: str, width_px: int, height_px: int, image: ImageRequest | None, elements: bool
    ) -> Drawn:
        """Write `html` into the page and capture its first frame.

        The picture has round(width * scale) x round(height * scale) pixels. Raises
        playwright's Error when the page or its browser is gone.
        """
        self.jobs += 1
        if self._viewport != (width_px, height_px):
            await self._session.send(
                "Emulation.setDeviceMetricsOverride",
                {"width": width_px, "height": height_px, "deviceScaleFactor": 1, "mobile": False},
            )
            self._viewport = (width_px, height_px)
        facts = await self._call(self._probe, html, elements)
        data = b"" if image is None else await self._capture(width_px, height_px, image)
        return Drawn(
            data=data,
            has_target=facts["target"],
            background=facts["background"],
            content=facts["content"],
            animated=facts["animated"],
            overflow_px=(facts["overflow"][0], facts["overflow"][1]),
            elements=tuple(_element(row) for row in facts["elements"]),
            spoiled=facts["spoiled"],
        )

    async def blank(self) -> None:
        """Forget the document."""
        await self._call(self._blank)

    async def close(self) -> None:
        """Raises TimeoutError when the page hangs even in closing."""
        async with asyncio.timeout(_CLOSE_S):
            await self._context.close()

    async def _call(self, function: str, *arguments: str | bool) -> Any:
        answer = await self._session.send(
            "Runtime.callFunctionOn",
            {
                "functionDeclaration": "function (...given) { return this(...given); }",
                "objectId": function,
                "arguments": [{"value": argument} for argument in arguments],
                "awaitPromise": True,
                "returnByValue": True,
            },
        )
        if fault := answer.get("exceptionDetails"):
            raise RuntimeError(f"in the page: {fault.get('exception', fault)}")
        return answer["result"].get("value")

    async def _capture(self, width_px: int, height_px: int, image: ImageRequest) -> bytes:
        clip = {"x": 0, "y": 0, "width": width_px, "height": height_px, "scale": image.scale}
        options: dict[str, Any] = {"format": image.format, "clip": clip, "optimizeForSpeed": True}
        if image.lossy_quality:
            options["quality"] = image.lossy_quality
        answer = await self._session.send("Page.captureScreenshot", options)
        return base64.b64decode(answer["data"])


async def open_page(context: BrowserContext) -> WarmPage:
    """A blank page in a context of its own, which it closes with itself."""
    await context.route("**/*", _refuse)
    page = await context.new_page()
    await page.set_content(_POLICY)
    session = await context.new_cdp_session(page)
    await session.send("Page.setFontFamilies", {"fontFamilies": _FACES})
    tree = await session.send("Page.getFrameTree")
    world = await session.send(
        "Page.createIsolatedWorld",
        {"frameId": tree["frameTree"]["frame"]["id"], "worldName": "wm-r1"},
    )
    # Functions that stay in the page, so that they are sent and compiled once.
    functions = [
        await session.send(
            "Runtime.evaluate",
            {"expression": f"({source}\n)", "contextId": world["executionContextId"]},
        )
        for source in (_PROBE, _BLANK)
    ]
    warm = WarmPage(context, session, *(each["result"]["objectId"] for each in functions))
    page.on("crash", lambda _: warm.crashed.set())
    return warm


async def _refuse(route: Route) -> None:
    await route.abort()


def _element(row: list[Any]) -> Element:
    id_, role, text, x, y, width, height, clickable, checked, focused, enabled = row
    return Element(
        id=id_,
        role=role,
        text=text,
        x_px=round(x, 2),
        y_px=round(y, 2),
        width_px=round(width, 2),
        height_px=round(height, 2),
        clickable=clickable,
        checked=checked,
        focused=focused,
        enabled=enabled,
    )
