"""One warm page of a browser: draws a document, is blanked, and draws the next one.

A page keeps nothing of a document but memory: no script runs in it, nothing is stored, and
the policy under which it was opened lets it load nothing but `data:`. The few documents that
would leave something behind are told from the others (`Drawn.spoiled`). A page has no deadline
of its own; whoever calls it watches it and throws it away after anything irregular (`pool`).
"""

import asyncio
import base64
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from services.renderer.devtools import DevTools, Listener
from wmkit.domain.transition import Element, ImageRequest

_PROBE = (Path(__file__).parent / "probe.js").read_text()
# The old document may have given these names to elements of its own.
_WRITE = """html => {
  const { open, write, close } = Document.prototype;
  open.call(document);
  write.call(document, html);
  close.call(document);
}"""
_NOTHING = "<!DOCTYPE html>"
# Outlives every document that is written into the page later.
_POLICY = (
    '<!DOCTYPE html><meta http-equiv="Content-Security-Policy" content="'
    "default-src 'none'; style-src 'unsafe-inline'; img-src data:; font-src data:; "
    "media-src data:; base-uri 'none'; form-action 'none'\">"
)
# What a phone draws text in where a document names no face, or only `sans-serif`. Where it is
# not installed, fontconfig gives the sans-serif that comes closest.
_FACES = {
    "standard": "Roboto",
    "sansSerif": "Roboto",
    "serif": "Times New Roman",
    "fixed": "Monospace",
    "cursive": "Comic Sans MS",
    "fantasy": "Impact",
}
# A page that looks the same on every machine, runs nothing and loads nothing.
_MANNERS: tuple[tuple[str, dict[str, Any]], ...] = (
    ("Page.enable", {}),
    ("Emulation.setScriptExecutionDisabled", {"value": True}),
    (
        "Network.emulateNetworkConditions",
        {"offline": True, "latency": 0, "downloadThroughput": -1, "uploadThroughput": -1},
    ),
    ("Fetch.enable", {}),
    ("Emulation.setFocusEmulationEnabled", {"enabled": True}),
    ("Emulation.setLocaleOverride", {"locale": "en-US"}),
    ("Emulation.setUserAgentOverride", {"userAgent": "", "acceptLanguage": "en-US"}),
    ("Emulation.setTimezoneOverride", {"timezoneId": "UTC"}),
    (
        "Emulation.setEmulatedMedia",
        {
            "features": [
                {"name": "prefers-color-scheme", "value": "light"},
                {"name": "prefers-reduced-motion", "value": "no-preference"},
                {"name": "forced-colors", "value": "none"},
                {"name": "prefers-contrast", "value": "no-preference"},
            ]
        },
    ),
    ("Page.setFontFamilies", {"fontFamilies": _FACES}),
)
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
    """Made by `open_page`. `crashed` says that its renderer process has died."""

    def __init__(self, devtools: DevTools, context: str, session: str) -> None:
        self._devtools = devtools
        self._context = context
        self._session = session
        self._probe = ""
        self._write = ""
        self._viewport = (0, 0)
        self.crashed = False
        self.jobs = 0
        self.pid: int | None = None
        """Its renderer process, where known."""

    async def draw(
        self, html: str, width_px: int, height_px: int, image: ImageRequest | None, elements: bool
    ) -> Drawn:
        """Write `html` into the page and capture its first frame.

        The picture has round(width * scale) x round(height * scale) pixels. Raises
        DevToolsError when the page or its browser is gone.
        """
        self.jobs += 1
        if self._viewport != (width_px, height_px):
            await self._send(
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
        await self._call(self._write, _NOTHING)

    async def close(self) -> None:
        """Raises TimeoutError when it hangs even in closing, DevToolsError when it is gone."""
        async with asyncio.timeout(_CLOSE_S):
            await self._devtools.send(
                "Target.disposeBrowserContext", {"browserContextId": self._context}
            )

    async def prepare(self) -> None:
        """Teach the page its manners, before the first document."""
        self._listen("Inspector.targetCrashed", self._crash)
        self._listen("Fetch.requestPaused", self._refuse)
        for method, params in _MANNERS:
            await self._send(method, params)
        tree = await self._send("Page.getFrameTree")
        world = await self._send(
            "Page.createIsolatedWorld",
            {"frameId": tree["frameTree"]["frame"]["id"], "worldName": "wm-r1"},
        )
        # Functions that stay in the page, so that they are sent and compiled once.
        self._probe, self._write = [
            (
                await self._send(
                    "Runtime.evaluate",
                    {"expression": f"({source}\n)", "contextId": world["executionContextId"]},
                )
            )["result"]["objectId"]
            for source in (_PROBE, _WRITE)
        ]
        await self._call(self._write, _POLICY)

    def _crash(self, _: dict[str, Any]) -> None:
        self.crashed = True
        self._devtools.end(self._session, "the page crashed")

    def _refuse(self, event: dict[str, Any]) -> None:
        params = {"requestId": event["requestId"], "errorReason": "Failed"}
        self._devtools.tell("Fetch.failRequest", params, self._session)

    def _listen(self, method: str, listener: Listener) -> None:
        self._devtools.listen(method, listener, self._session)

    async def _send(self, method: str, params: Mapping[str, Any] | None = None) -> dict[str, Any]:
        return await self._devtools.send(method, params, self._session)

    async def _call(self, function: str, *arguments: str | bool) -> Any:
        answer = await self._send(
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
        answer = await self._send("Page.captureScreenshot", options)
        return base64.b64decode(answer["data"])


async def open_page(devtools: DevTools) -> WarmPage:
    """A blank page in a context of its own, which it closes with itself."""
    made = await devtools.send("Target.createBrowserContext", {"disposeOnDetach": True})
    context = made["browserContextId"]
    await devtools.send(
        "Browser.setDownloadBehavior", {"behavior": "deny", "browserContextId": context}
    )
    target = await devtools.send(
        "Target.createTarget", {"url": "about:blank", "browserContextId": context}
    )
    attached = await devtools.send(
        "Target.attachToTarget", {"targetId": target["targetId"], "flatten": True}
    )
    page = WarmPage(devtools, context, attached["sessionId"])
    await page.prepare()
    return page


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
