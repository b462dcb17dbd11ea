"""An OpenAI-compatible chat server that plays recorded answers, good and bad ones.

Every request is kept in `requests`, as the JSON that was sent. Answers are played in the order
in which they were queued; when none is left the last one is played again. The stream has the
shape of vLLM's: a chunk with the role, chunks of text, the finish reason, the usage, [DONE].
"""

import asyncio
import json
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any

CHUNK_CHARS = 64


@dataclass
class Answer:
    """A whole answer. `finish_reason` is "length" for one that was cut at its limit.

    `gate` holds it back after the first chunk; `hang_up_after` breaks the stream off after so
    many characters; `document` answers without streaming.
    """

    text: str
    finish_reason: str = "stop"
    tokens: int = 0
    gate: asyncio.Event | None = None
    hang_up_after: int | None = None
    document: bool = False


@dataclass
class Fault:
    """An answer with another status than 200. `retry_after` is sent where it is set."""

    status: int
    message: str = "it broke"
    retry_after: str = ""


@dataclass
class Raw:
    """Bytes of an event stream as they are, for streams that are no completion."""

    data: bytes


Reply = Answer | Fault | Raw


@dataclass
class OpenAiServer:
    replies: list[Reply] = field(default_factory=list)
    requests: list[dict[str, Any]] = field(default_factory=list)
    headers: list[dict[str, str]] = field(default_factory=list)
    connections: int = 0
    """Connections that were opened."""
    open: int = 0
    """Requests that are being answered."""
    abandoned: int = 0
    """Requests whose caller went away before the end."""
    url: str = ""
    _changed: asyncio.Condition = field(default_factory=asyncio.Condition)

    def play(self, *replies: Reply) -> None:
        self.replies = list(replies)

    async def until(self, what: Any) -> None:
        """Wait until `what(self)` holds."""
        async with self._changed:
            await self._changed.wait_for(lambda: what(self))

    async def notify(self) -> None:
        async with self._changed:
            self._changed.notify_all()

    def next_reply(self) -> Reply:
        return self.replies.pop(0) if len(self.replies) > 1 else self.replies[0]

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.connections += 1
        try:
            while await self._one(reader, writer):
                pass
        except (ConnectionError, asyncio.IncompleteReadError):
            pass
        finally:
            writer.close()

    async def _one(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> bool:
        line = await reader.readline()
        if not line:
            return False
        headers: dict[str, str] = {}
        while (header := (await reader.readline()).decode().strip()) != "":
            name, _, value = header.partition(":")
            headers[name.lower()] = value.strip()
        body = await reader.readexactly(int(headers.get("content-length", "0")))
        assert line.split()[1] == b"/v1/chat/completions", line
        self.requests.append(json.loads(body))
        self.headers.append(headers)
        reply = self.next_reply()
        self.open += 1
        await self.notify()
        try:
            return await self._answer(reply, reader, writer)
        finally:
            self.open -= 1
            await self.notify()

    async def _answer(
        self, reply: Reply, reader: asyncio.StreamReader, writer: asyncio.StreamWriter
    ) -> bool:
        match reply:
            case Fault(status, message, retry_after):
                more = f"retry-after: {retry_after}\r\n" if retry_after else ""
                data = json.dumps({"error": {"message": message}}).encode()
                _head(writer, status, f"content-length: {len(data)}\r\n{more}")
                writer.write(data)
                await writer.drain()
                return True
            case Raw(data):
                _head(writer, 200, "content-type: text/event-stream\r\nconnection: close\r\n")
                writer.write(data)
                await writer.drain()
                return False
            case Answer(document=True):
                data = json.dumps(_document(reply)).encode()
                _head(
                    writer,
                    200,
                    f"content-type: application/json\r\ncontent-length: {len(data)}\r\n",
                )
                writer.write(data)
                await writer.drain()
                return True
        return await self._stream(reply, reader, writer)

    async def _stream(
        self, reply: Answer, reader: asyncio.StreamReader, writer: asyncio.StreamWriter
    ) -> bool:
        _head(writer, 200, "content-type: text/event-stream\r\ntransfer-encoding: chunked\r\n")
        sent = 0
        for number, event in enumerate(events(reply)):
            if reply.gate is not None and number == 1:
                gone = asyncio.create_task(reader.read(1))
                opened = asyncio.create_task(reply.gate.wait())
                done, waiting = await asyncio.wait(
                    (gone, opened), return_when=asyncio.FIRST_COMPLETED
                )
                for task in waiting:
                    task.cancel()
                await asyncio.gather(*waiting, return_exceptions=True)
                if gone in done:
                    self.abandoned += 1
                    return False
            if reply.hang_up_after is not None and sent >= reply.hang_up_after:
                return False
            writer.write(b"%x\r\n%s\r\n" % (len(event), event))
            await writer.drain()
            sent += CHUNK_CHARS
        writer.write(b"0\r\n\r\n")
        await writer.drain()
        return True


def events(answer: Answer) -> list[bytes]:
    """The events of a streamed answer, as vLLM sends them."""
    parts = [answer.text[i : i + CHUNK_CHARS] for i in range(0, len(answer.text), CHUNK_CHARS)]
    chunks: list[dict[str, Any]] = [_chunk({"role": "assistant", "content": ""})]
    chunks += [_chunk({"content": part}) for part in parts]
    chunks.append(_chunk({"content": ""}, answer.finish_reason))
    usage = {"prompt_tokens": 7, "completion_tokens": answer.tokens, "total_tokens": 7}
    chunks.append({"id": "chatcmpl-1", "choices": [], "usage": usage})
    lines = [json.dumps(chunk, ensure_ascii=False) for chunk in chunks]
    return [f"data: {line}\n\n".encode() for line in (*lines, "[DONE]")]


@asynccontextmanager
async def openai_server(*replies: Reply) -> AsyncIterator[OpenAiServer]:
    """A server on a free port of this machine."""
    played = OpenAiServer(list(replies))
    server = await asyncio.start_server(played.serve, "127.0.0.1", 0, limit=2**25)
    host, port = server.sockets[0].getsockname()
    played.url = f"http://{host}:{port}/v1"
    try:
        yield played
    finally:
        server.close()


def texts(message: dict[str, Any]) -> Sequence[str]:
    """The texts of a message's content, in order."""
    content = message["content"]
    if isinstance(content, str):
        return [content]
    return [part["text"] for part in content if part["type"] == "text"]


def _chunk(delta: dict[str, Any], finish_reason: str | None = None) -> dict[str, Any]:
    choice = {"index": 0, "delta": delta, "logprobs": None, "finish_reason": finish_reason}
    return {"id": "chatcmpl-1", "object": "chat.completion.chunk", "choices": [choice]}


def _document(answer: Answer) -> dict[str, Any]:
    message = {"role": "assistant", "content": answer.text}
    choice = {"index": 0, "message": message, "finish_reason": answer.finish_reason}
    return {"choices": [choice], "usage": {"completion_tokens": answer.tokens}}


def _head(writer: asyncio.StreamWriter, status: int, headers: str) -> None:
    writer.write(f"HTTP/1.1 {status} X\r\n{headers}\r\n".encode())
