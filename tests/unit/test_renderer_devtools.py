"""What is said through the pipe, against a peer that is played here."""

import asyncio
import json
import socket
from collections.abc import AsyncIterator
from typing import Any

import pytest

from services.renderer.devtools import DevTools, DevToolsError


class Peer:
    """The browser's end."""

    def __init__(self, end: socket.socket) -> None:
        self.end = end
        self.rest = b""

    async def heard(self) -> dict[str, Any]:
        loop = asyncio.get_running_loop()
        while b"\0" not in self.rest:
            self.rest += await loop.sock_recv(self.end, 65_536)
        message, _, self.rest = self.rest.partition(b"\0")
        found: dict[str, Any] = json.loads(message)
        return found

    async def say(self, *pieces: bytes) -> None:
        """Each piece arrives by itself: the next is sent when the loop has had its turn."""
        for piece in pieces:
            await asyncio.get_running_loop().sock_sendall(self.end, piece)
            for _ in range(3):
                await asyncio.sleep(0)

    async def answer(self, **message: Any) -> None:
        await self.say(json.dumps(message).encode() + b"\0")


Pair = tuple[DevTools, Peer]


@pytest.fixture
async def pair() -> AsyncIterator[Pair]:
    ours, theirs = socket.socketpair()
    theirs.setblocking(False)
    with theirs:
        devtools = await DevTools.connect(ours)
        yield devtools, Peer(theirs)
        devtools.close()
        await devtools.gone.wait()


async def test_answers_find_their_commands_in_any_order(pair: Pair) -> None:
    devtools, peer = pair
    first = asyncio.create_task(devtools.send("A.one", {"text": 'ä"\0\ud800'}))
    second = asyncio.create_task(devtools.send("A.two", session="page"))
    assert await peer.heard() == {"id": 1, "method": "A.one", "params": {"text": 'ä"\0\ud800'}}
    assert await peer.heard() == {"id": 2, "method": "A.two", "params": {}, "sessionId": "page"}
    await peer.answer(id=2, result={"of": "two"}, sessionId="page")
    await peer.answer(id=1, result={"of": "one"})
    assert [await first, await second] == [{"of": "one"}, {"of": "two"}]


async def test_messages_are_put_together_and_taken_apart(pair: Pair) -> None:
    devtools, peer = pair
    calls = [asyncio.create_task(devtools.send("A.one")) for _ in range(3)]
    for _ in calls:
        await peer.heard()
    whole = b"\0".join(json.dumps({"id": i, "result": {"n": "ü" * i}}).encode() for i in (1, 2, 3))
    whole += b"\0"
    await peer.say(whole[:5], whole[5:6], whole[6:50], whole[50:])
    assert [await call for call in calls] == [{"n": "ü"}, {"n": "üü"}, {"n": "üüü"}]


async def test_a_refusal_is_an_error_with_the_browsers_words(pair: Pair) -> None:
    devtools, peer = pair
    call = asyncio.create_task(devtools.send("A.one"))
    await peer.heard()
    await peer.answer(id=1, error={"code": -32601, "message": "'A.one' wasn't found"})
    with pytest.raises(DevToolsError, match=r"^'A\.one' wasn't found$"):
        await call


async def test_the_loss_of_the_browser_ends_every_open_command_and_the_next(pair: Pair) -> None:
    devtools, peer = pair
    calls = [asyncio.create_task(devtools.send("A.one", session=s)) for s in ("", "page")]
    for _ in calls:
        await peer.heard()
    await peer.say(b'{"id": 1, "resu')
    peer.end.close()
    for call in calls:
        with pytest.raises(DevToolsError, match="the browser is gone"):
            await call
    assert devtools.gone.is_set()
    with pytest.raises(DevToolsError, match=r"A\.two: the browser is gone"):
        await devtools.send("A.two")
    devtools.tell("A.three", {})


async def test_events_reach_the_listener_of_their_session_alone(pair: Pair) -> None:
    devtools, peer = pair
    heard: list[tuple[str, Any]] = []
    devtools.listen("P.event", lambda event: heard.append(("page", event)), "page")
    devtools.listen("P.event", lambda event: heard.append(("browser", event)))
    await peer.answer(method="P.event", params={"n": 1}, sessionId="page")
    await peer.answer(method="P.event", params={"n": 2}, sessionId="other")
    await peer.answer(method="P.other", sessionId="page")
    await peer.answer(method="P.event", params={"n": 3})
    assert heard == [("page", {"n": 1}), ("browser", {"n": 3})]


async def test_a_page_that_goes_ends_its_own_commands_alone(pair: Pair) -> None:
    devtools, peer = pair
    mine = asyncio.create_task(devtools.send("A.one", session="page"))
    other = asyncio.create_task(devtools.send("A.one", session="other"))
    heard: list[Any] = []
    devtools.listen("P.event", heard.append, "page")
    for _ in range(2):
        await peer.heard()
    await peer.answer(method="Target.detachedFromTarget", params={"sessionId": "page"})
    with pytest.raises(DevToolsError, match="the page is gone"):
        await mine
    await peer.answer(method="P.event", params={}, sessionId="page")
    await peer.answer(id=2, result={"still": "here"}, sessionId="other")
    assert await other == {"still": "here"}
    assert heard == []


async def test_an_answer_that_nobody_waits_for_harms_nothing(pair: Pair) -> None:
    devtools, peer = pair
    left = asyncio.create_task(devtools.send("A.one"))
    await peer.heard()
    left.cancel()
    with pytest.raises(asyncio.CancelledError):
        await left
    devtools.tell("A.two", {"told": True})
    assert (await peer.heard())["params"] == {"told": True}
    await peer.answer(id=1, result={})
    await peer.answer(id=2, error={"message": "no"})
    call = asyncio.create_task(devtools.send("A.three"))
    await peer.heard()
    await peer.answer(id=3, result={"n": 3})
    assert await call == {"n": 3}
