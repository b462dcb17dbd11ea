"""The OpenAI chat-completions protocol: the request's body, the answer's stream, the faults.

Answers are streamed, so that a connection that breaks is seen and a caller that gives up
closes it, which frees the slot at the server. A server that answers with one JSON document
instead is understood too.
"""

import json
from collections.abc import AsyncIterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

Message = Mapping[str, Any]

MAX_CHARS = 4_000_000
"""Longest answer that is read; whatever goes on longer counts as cut at its limit."""


@dataclass(frozen=True, slots=True)
class Ask:
    """One request. What is None is left to the server: the checkpoint's generation config.

    `schema` = JSON schema that the answer has to follow.
    """

    messages: Sequence[Message]
    max_tokens: int
    temperature: float | None = None
    seed: int | None = None
    schema: Mapping[str, Any] | None = None


@dataclass(frozen=True, slots=True)
class Completion:
    """A whole answer. `finish_reason` is stop, length or content_filter; `tokens` were made."""

    text: str
    finish_reason: str
    tokens: int


class Fault(Exception):
    """The server failed; asking again may help. `after_s` is what it wants us to wait."""

    def __init__(self, message: str, after_s: float | None = None) -> None:
        super().__init__(message)
        self.after_s = after_s


class Busy(Fault):
    """The server is alive and has too much to do (429)."""


class Refused(Exception):
    """The server does not take this request (400, 401, 404, ...); asking again cannot help."""

    def __init__(self, message: str, status: int) -> None:
        super().__init__(message)
        self.status = status


def body(model: str, ask: Ask) -> dict[str, Any]:
    """The request as JSON data."""
    out: dict[str, Any] = {
        "model": model,
        "messages": list(ask.messages),
        "max_tokens": ask.max_tokens,
        "stream": True,
        "stream_options": {"include_usage": True},
    }
    if ask.temperature is not None:
        out["temperature"] = ask.temperature
    if ask.seed is not None:
        out["seed"] = ask.seed
    if ask.schema is not None:
        named = {"name": "answer", "strict": True, "schema": ask.schema}
        out["response_format"] = {"type": "json_schema", "json_schema": named}
    return out


def check_status(status: int, headers: Mapping[str, str], text: str) -> None:
    """Raises Busy, Fault or Refused for an answer that is not 200."""
    if status == 200:
        return
    message = f"HTTP {status}: {_complaint(text)}"
    if status == 429:
        raise Busy(message, _retry_after(headers))
    if status >= 500 or status == 408:
        raise Fault(message, _retry_after(headers))
    raise Refused(message, status)


async def read_stream(chunks: AsyncIterator[bytes]) -> Completion:
    """Put a streamed answer together. Raises Fault when it breaks off."""
    answer = _Answer()
    async for line in _lines(chunks):
        if not line.startswith(b"data:"):
            continue
        data = line[5:].strip()
        if data == b"[DONE]":
            break
        answer.add(_loads(data), "delta")
        if answer.chars > MAX_CHARS:
            answer.finish_reason = "length"
            break
    return answer.whole()


def read_document(data: bytes) -> Completion:
    """The answer of a server that does not stream. Raises Fault for what is none."""
    answer = _Answer()
    answer.add(_loads(data), "message")
    return answer.whole()


class _Answer:
    """What has been read of an answer."""

    def __init__(self) -> None:
        self.parts: list[str] = []
        self.chars = 0
        self.tokens = 0
        self.finish_reason: str | None = None

    def add(self, chunk: Any, part: str) -> None:
        if not isinstance(chunk, dict):
            raise Fault("the server sent something that is no completion")
        if "error" in chunk:
            raise Fault(_complaint(json.dumps(chunk)))
        usage = chunk.get("usage")
        if isinstance(usage, dict) and isinstance(usage.get("completion_tokens"), int):
            self.tokens = usage["completion_tokens"]
        choices = chunk.get("choices")
        if not isinstance(choices, list) or not choices:
            return
        choice = choices[0]
        text = (choice.get(part) or {}).get("content")
        if isinstance(text, str):
            self.parts.append(text)
            self.chars += len(text)
        if isinstance(choice.get("finish_reason"), str):
            self.finish_reason = choice["finish_reason"]

    def whole(self) -> Completion:
        if self.finish_reason is None:
            raise Fault(f"the answer broke off after {self.chars} characters")
        if self.finish_reason not in ("stop", "length", "content_filter"):
            # vLLM says "abort" when it gave up on the request, "error" when it failed.
            raise Fault(f"the server ended the answer with {self.finish_reason[:40]!r}")
        # Half of a surrogate pair, as `\ud83d` in JSON, is no text and could not be stored.
        text = "".join(self.parts).encode("utf-8", "replace").decode("utf-8")
        return Completion(text, self.finish_reason, self.tokens)


async def _lines(chunks: AsyncIterator[bytes]) -> AsyncIterator[bytes]:
    r"""Lines of an event stream. Only \n and \r\n end them: JSON may hold U+2028 as it is."""
    rest = b""
    async for chunk in chunks:
        *lines, rest = (rest + chunk).split(b"\n")
        for line in lines:
            yield line.rstrip(b"\r")
        if len(rest) > 4 * MAX_CHARS:
            raise Fault("the server sent a line without end")
    if rest:
        yield rest


def _loads(data: bytes) -> Any:
    try:
        return json.loads(data)
    except ValueError:
        raise Fault(f"the server sent no JSON: {data[:80]!r}") from None


def _complaint(text: str) -> str:
    """The sentence in an error document; a short piece of whatever it was otherwise."""
    try:
        found = json.loads(text)
    except ValueError:
        found = None
    while isinstance(found, dict):
        found = found.get("error") or found.get("message") or found.get("detail")
    words = found if isinstance(found, str) else text
    return " ".join(words.split())[:300] or "no explanation"


def _retry_after(headers: Mapping[str, str]) -> float | None:
    """Seconds, where the server names them; dates are not read."""
    try:
        return max(0.0, float(headers.get("retry-after", "")))
    except ValueError:
        return None
