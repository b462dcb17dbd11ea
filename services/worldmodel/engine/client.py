"""Asks one model: connections kept, slots bounded, faults retried under the caller's deadline.

A call that is cancelled or out of time closes its connection, by which the server frees the
slot it worked on. Errors are the domain's: EngineDown for a server that fails or refuses,
Overloaded for one that has too much to do, DeadlineExpired where it was the caller's time.
What an answer means is not known here.
"""

import asyncio
import random
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass

import httpx
import structlog

from services.worldmodel.engine import wire
from services.worldmodel.engine.breaker import Breaker
from services.worldmodel.engine.endpoint import Endpoint
from services.worldmodel.engine.wire import Ask, Completion
from services.worldmodel.metrics import ENGINE_CALLS
from wmkit.domain.errors import DeadlineExpired, EngineDown, Overloaded
from wmkit.rpc.context import left_s

log = structlog.get_logger(__name__)

_ERROR_BYTES = 65_536
_DRAIN_S = 0.5


@dataclass(frozen=True, slots=True)
class Limits:
    """`timeout_s` bounds a call with all its tries, `idle_s` the silence within one.

    At most `in_flight` calls are at the server and `waiting` behind them; `attempts` counts
    the first try. A retry waits a random time up to `backoff_s`, doubled each time.
    """

    timeout_s: float = 300.0
    idle_s: float = 120.0
    connect_s: float = 5.0
    in_flight: int = 32
    waiting: int = 256
    attempts: int = 3
    backoff_s: float = 0.5
    backoff_cap_s: float = 8.0
    breaker_failures: int = 5
    breaker_rest_s: float = 10.0


class Engine:
    """One model behind an OpenAI-compatible server. Needs a running event loop; `close` it."""

    def __init__(self, endpoint: Endpoint, limits: Limits | None = None) -> None:
        self.endpoint = endpoint
        self._limits = limits = limits or Limits()
        self._breaker = Breaker(endpoint.place, limits.breaker_failures, limits.breaker_rest_s)
        self._slots = asyncio.Semaphore(limits.in_flight)
        self._entered = 0
        self._random = random.Random()
        self._http = httpx.AsyncClient(
            headers={"authorization": f"Bearer {endpoint.key}"} if endpoint.key else {},
            timeout=httpx.Timeout(limits.idle_s, connect=limits.connect_s, pool=None),
            limits=httpx.Limits(
                max_connections=limits.in_flight, max_keepalive_connections=limits.in_flight
            ),
            # A proxy set for downloads must not see screens of phones.
            trust_env=False,
        )
        self._url = f"{endpoint.url.rstrip('/')}/chat/completions"

    async def close(self) -> None:
        await self._http.aclose()

    async def complete(self, ask: Ask) -> Completion:
        """The model's answer, whole or cut at its own limit.

        Raises EngineDown, Overloaded, DeadlineExpired; `Refused` where the server does not
        take a request with a schema, so that the caller can ask without.
        """
        left = left_s()
        ours = left is None or left > self._limits.timeout_s
        timeout_s = self._limits.timeout_s if ours else left
        assert timeout_s is not None
        result = "queued"
        try:
            async with asyncio.timeout(timeout_s) as limit, self._slot():
                result = "timeout"
                answer = await self._insist(ask, time.monotonic() + timeout_s)
                result = answer.finish_reason
                return answer
        except TimeoutError:
            if not limit.expired():
                raise
            message = f"{self.endpoint.place} did not answer within {timeout_s:.3g} s"
            if not ours:
                raise DeadlineExpired(message) from None
            if result == "queued":
                raise Overloaded(f"{message}: others were before us") from None
            self._breaker.failure()
            raise EngineDown(message) from None
        except Exception:
            result = "error"
            raise
        except asyncio.CancelledError:
            result = "cancelled"
            raise
        finally:
            ENGINE_CALLS.labels(self.endpoint.model, result).inc()

    @asynccontextmanager
    async def _slot(self) -> AsyncIterator[None]:
        if self._entered >= self._limits.in_flight + self._limits.waiting:
            raise Overloaded(
                f"{self._entered} requests wait for {self.endpoint.place} already",
                retry_after_s=2.0,
            )
        self._entered += 1
        try:
            async with self._slots:
                yield
        finally:
            self._entered -= 1

    async def _insist(self, ask: Ask, end: float) -> Completion:
        attempt = 0
        while True:
            attempt += 1
            try:
                return await self._attempt(ask)
            except wire.Fault as fault:
                pause_s = self._pause_s(attempt, fault.after_s)
                if attempt >= self._limits.attempts or time.monotonic() + pause_s >= end:
                    raise self._given_up(fault, attempt, pause_s) from None
                log.warning("model is asked again", model=self.endpoint.place, fault=str(fault))
            await asyncio.sleep(pause_s)

    async def _attempt(self, ask: Ask) -> Completion:
        self._breaker.enter()
        try:
            answer = await self._post(ask)
        except wire.Busy:
            self._breaker.success()  # It says no, so it is alive.
            raise
        except wire.Refused as refused:
            self._breaker.success()
            if ask.schema is not None and refused.status in (400, 422):
                raise
            raise EngineDown(
                f"{self.endpoint.place} refuses the request: {refused}", retry_after_s=30.0
            ) from None
        except wire.Fault:
            self._breaker.failure()
            raise
        except BaseException:
            self._breaker.leave()
            raise
        self._breaker.success()
        return answer

    async def _post(self, ask: Ask) -> Completion:
        try:
            async with self._http.stream(
                "POST", self._url, json=wire.body(self.endpoint.model, ask)
            ) as response:
                if response.status_code != 200:
                    text = await _beginning(response)
                    wire.check_status(response.status_code, response.headers, text)
                if "event-stream" in response.headers.get("content-type", ""):
                    chunks = response.aiter_bytes()
                    answer = await wire.read_stream(chunks)
                    await _drain(chunks)
                    return answer
                return wire.read_document(await response.aread())
        except httpx.HTTPError as error:
            raise wire.Fault(f"{type(error).__name__}: {error}".rstrip(": ")) from None

    def _pause_s(self, attempt: int, after_s: float | None) -> float:
        """Full jitter: callers that failed together do not come back together."""
        most_s = min(self._limits.backoff_cap_s, self._limits.backoff_s * 2 ** (attempt - 1))
        if after_s is None:
            return self._random.uniform(0, most_s)
        return after_s + self._random.uniform(0, self._limits.backoff_s)

    def _given_up(self, fault: wire.Fault, attempts: int, pause_s: float) -> Exception:
        tries = "once" if attempts == 1 else f"{attempts} times"
        message = f"{self.endpoint.place} was asked {tries}: {fault}"
        if isinstance(fault, wire.Busy):
            return Overloaded(message, retry_after_s=max(fault.after_s or 0.0, pause_s, 1.0))
        return EngineDown(message)


async def _drain(chunks: AsyncIterator[bytes]) -> None:
    """Read what is left behind the answer: only a connection at its end is used again."""
    with suppress(httpx.HTTPError, TimeoutError):
        async with asyncio.timeout(_DRAIN_S):
            async for _ in chunks:
                pass


async def _beginning(response: httpx.Response) -> str:
    """Enough of an error's body to quote from."""
    data = b""
    async for chunk in response.aiter_bytes():
        data += chunk
        if len(data) >= _ERROR_BYTES:
            break
    return data[:_ERROR_BYTES].decode("utf-8", "replace")
