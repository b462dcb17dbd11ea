"""The DevTools protocol with one browser: commands and their answers, events, and its loss.

    send -> {"id": 7, "method": ..., "params": ..., "sessionId": ...} NUL -> the browser's fd 3
    the browser's fd 4 -> {"id": 7, "result": ...} NUL, or {"method": ..., "params": ...} NUL

A socket that only the two of us hold: no port is opened, nobody else can speak to the browser.
Not here: what is said (`browser`, `page`). https://chromedevtools.github.io/devtools-protocol/
"""

import asyncio
import itertools
import json
import socket
from collections.abc import Callable, Mapping
from typing import Any, Self

Listener = Callable[[dict[str, Any]], None]


class DevToolsError(Exception):
    """The browser refused a command, or it or the page went away before it had answered."""


class DevTools(asyncio.Protocol):
    """Made by `connect`. `gone` is set once the browser has let go of its end.

    A `session` names one page; "" is the browser itself.
    """

    def __init__(self) -> None:
        self.gone = asyncio.Event()
        self._transport: asyncio.Transport | None = None
        self._numbers = itertools.count(1)
        self._open: dict[int, tuple[str, asyncio.Future[dict[str, Any]]]] = {}
        self._listeners: dict[tuple[str, str], Listener] = {}
        self._begun: list[bytes] = []

    @classmethod
    async def connect(cls, ours: socket.socket) -> Self:
        """Speak through `ours`, whose other end is the browser's; it is closed with `close`."""
        loop = asyncio.get_running_loop()
        _, made = await loop.create_connection(cls, sock=ours)
        return made

    async def send(
        self, method: str, params: Mapping[str, Any] | None = None, session: str = ""
    ) -> dict[str, Any]:
        """The result of a command.

        Raises DevToolsError when it is refused, and when the browser or the session is gone.
        """
        if self.gone.is_set():
            raise DevToolsError(f"{method}: the browser is gone")
        answer: asyncio.Future[dict[str, Any]] = asyncio.get_running_loop().create_future()
        number = self._write(method, params, session)
        self._open[number] = (session, answer)
        try:
            return await answer
        finally:
            self._open.pop(number, None)

    def tell(self, method: str, params: Mapping[str, Any], session: str = "") -> None:
        """A command whose result nobody waits for."""
        if not self.gone.is_set():
            self._write(method, params, session)

    def listen(self, method: str, listener: Listener, session: str = "") -> None:
        """Call `listener` with the parameters of every such event; there is one for each kind."""
        self._listeners[session, method] = listener

    def end(self, session: str, why: str) -> None:
        """Open commands of the session fail with `why`, and its events are heard no more."""
        for key in [key for key in self._listeners if key[0] == session]:
            del self._listeners[key]
        for of, answer in self._open.values():
            if of == session and not answer.done():
                answer.set_exception(DevToolsError(why))

    def close(self) -> None:
        """Let go of the browser, which ends on that by itself where it still can."""
        if self._transport is not None:
            self._transport.abort()

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.Transport)
        self._transport = transport

    def data_received(self, data: bytes) -> None:
        *whole, rest = data.split(b"\0")
        for message in whole:
            self._begun.append(message)
            message = b"".join(self._begun)
            self._begun.clear()
            self._hear(json.loads(message))
        if rest:
            self._begun.append(rest)

    def connection_lost(self, exc: Exception | None) -> None:
        self.gone.set()
        for _, answer in self._open.values():
            if not answer.done():
                answer.set_exception(DevToolsError("the browser is gone"))
        self._listeners.clear()

    def _write(self, method: str, params: Mapping[str, Any] | None, session: str) -> int:
        number = next(self._numbers)
        message = {"id": number, "method": method, "params": params or {}}
        if session:
            message["sessionId"] = session
        assert self._transport is not None
        self._transport.write(json.dumps(message).encode() + b"\0")
        return number

    def _hear(self, message: dict[str, Any]) -> None:
        if "method" in message:
            method, params = message["method"], message.get("params", {})
            listener = self._listeners.get((message.get("sessionId", ""), method))
            if listener is not None:
                listener(params)
            if method == "Target.detachedFromTarget":
                self.end(params["sessionId"], "the page is gone")
            return
        _, answer = self._open.get(message.get("id", 0), ("", None))
        if answer is None or answer.done():
            return
        if "error" in message:
            answer.set_exception(DevToolsError(message["error"]["message"]))
        else:
            answer.set_result(message["result"])
