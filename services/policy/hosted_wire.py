"""One streamed chat completion from an OpenAI-compatible server, retried while it may help.

Knows the protocol and nothing of turns or policies. A caller that leaves closes the
connection, by which the server stops working for it.
"""

import asyncio
import json
import random
from collections.abc import AsyncIterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import urlsplit

import httpx
import structlog

from services.policy.stops import StopSearch
from wmkit.domain.errors import EngineDown, InvalidRequest, Overloaded
from wmkit.domain.generation import FinishReason, Sampling

log = structlog.get_logger(__name__)

BACKOFF_CAP_S = 20.0


@dataclass(frozen=True, slots=True)
class HostedModel:
    """Which model behind which server, and how patiently it is asked."""

    url: str
    model: str
    key: str = field(default="", repr=False)
    timeout_s: float = 120.0
    attempts: int = 4
    backoff_s: float = 0.5
    in_flight: int = 64

    @property
    def place(self) -> str:
        return f"{self.model} at {urlsplit(self.url).hostname}"


@dataclass(frozen=True, slots=True)
class Reply:
    text: str
    reason: FinishReason
    stop: str = ""


class _Again(Exception):
    """The server failed or has too much to do; asking again may help."""

    def __init__(self, message: str, after_s: float = 0.0, busy: bool = False) -> None:
        super().__init__(message)
        self.after_s = after_s
        self.busy = busy


class Stream:
    """Keeps the connections; `http` replaces them in tests."""

    def __init__(self, model: HostedModel, http: httpx.AsyncClient | None = None) -> None:
        self._model = model
        self._http = http or httpx.AsyncClient(
            headers={"authorization": f"Bearer {model.key}"} if model.key else {},
            timeout=httpx.Timeout(model.timeout_s, connect=10.0),
            limits=httpx.Limits(max_connections=model.in_flight),
        )

    async def close(self) -> None:
        await self._http.aclose()

    async def ask(
        self, messages: Sequence[Mapping[str, Any]], sampling: Sampling, stops: StopSearch
    ) -> Reply:
        """The answer, ended behind the first stop string.

        Raises EngineDown for a server that fails, Overloaded for one with too much to do,
        InvalidRequest for a request that it does not take.
        """
        body = {
            "model": self._model.model,
            "messages": list(messages),
            "max_tokens": sampling.max_new_tokens,
            "temperature": sampling.temperature,
            "seed": sampling.seed & 0x7FFF_FFFF,
            "stream": True,
        }
        attempt = 0
        while True:
            attempt += 1
            try:
                async with asyncio.timeout(self._model.timeout_s):
                    return await self._once(body, stops.fresh())
            except (_Again, TimeoutError, httpx.HTTPError) as error:
                again = error if isinstance(error, _Again) else _Again(_words(error))
                if attempt >= self._model.attempts:
                    message = f"{self._model.place} was asked {attempt} times: {again}"
                    if again.busy:
                        raise Overloaded(message, max(1.0, again.after_s)) from None
                    raise EngineDown(message) from None
                log.warning("hosted model is asked again", fault=str(again))
            most_s = min(BACKOFF_CAP_S, self._model.backoff_s * 2 ** (attempt - 1))
            await asyncio.sleep(again.after_s + random.uniform(0, most_s))

    async def _once(self, body: Mapping[str, Any], stops: StopSearch) -> Reply:
        url = f"{self._model.url.rstrip('/')}/chat/completions"
        async with self._http.stream("POST", url, json=body) as response:
            if response.status_code != 200:
                await response.aread()
                self._refuse(response)
            text, reason = "", None
            async for data in _events(response.aiter_bytes()):
                if data == b"[DONE]":
                    break
                piece, ended = _read(data)
                for char in piece:
                    text += char
                    if stop := stops.feed(char.encode("utf-8", "replace")):
                        return Reply(text, FinishReason.STOP, stop)
                reason = ended or reason
        if reason is None:
            raise _Again(f"the answer broke off after {len(text)} characters")
        return Reply(text, FinishReason.LENGTH if reason == "length" else FinishReason.END)

    def _refuse(self, response: httpx.Response) -> None:
        status = response.status_code
        message = f"HTTP {status}: {' '.join(response.text.split())[:300]}"
        if status == 429 or status >= 500 or status == 408:
            raise _Again(message, _after(response.headers), busy=status == 429)
        if status in (401, 403, 404):
            raise EngineDown(f"{self._model.place} refuses us: {message}", retry_after_s=30.0)
        raise InvalidRequest(f"{self._model.place} does not take the request: {message}")


async def _events(chunks: AsyncIterator[bytes]) -> AsyncIterator[bytes]:
    """Data of an event stream. Only a line feed ends a line: JSON may hold U+2028 as it is."""
    rest = b""
    async for chunk in chunks:
        *lines, rest = (rest + chunk).split(b"\n")
        for line in lines:
            if line.startswith(b"data:"):
                yield line[5:].strip()


def _read(data: bytes) -> tuple[str, str | None]:
    """Text and finish reason of one chunk."""
    try:
        chunk = json.loads(data)
        if "error" in chunk:
            raise _Again(f"the server failed: {str(chunk['error'])[:200]}")
        choices = chunk.get("choices") or []
        if not choices:
            return "", None
        piece = (choices[0].get("delta") or {}).get("content") or ""
        return str(piece).encode("utf-8", "replace").decode(), choices[0].get("finish_reason")
    except (ValueError, AttributeError, TypeError) as error:
        raise _Again(f"the server sent no completion: {data[:80]!r}") from error


def _after(headers: httpx.Headers) -> float:
    try:
        return max(0.0, min(60.0, float(headers.get("retry-after", ""))))
    except ValueError:
        return 0.0


def _words(error: Exception) -> str:
    return f"{type(error).__name__}: {error}".rstrip(": ")
