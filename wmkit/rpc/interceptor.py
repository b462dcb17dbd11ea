"""Around every call of a server: token, trace id, deadline, errors, log line, metrics.

Domain errors become their status (`wmkit.rpc.status`); a bug becomes INTERNAL with the
trace id as request id, its traceback goes to the log only. Cancellation and explicit
aborts pass untouched. A unary call without a deadline gets the server's default; a stream
lives as long as its caller. While the service is loading, its methods are UNAVAILABLE.
"""

import asyncio
import hmac
import inspect
import time
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import aclosing, asynccontextmanager
from typing import Any

import grpc
import structlog

from wmkit.domain.errors import DeadlineExpired, Unavailable, WMError
from wmkit.metrics import RPC_SECONDS
from wmkit.rpc import context as call_context
from wmkit.rpc import status

log = structlog.get_logger(__name__)

# Our client to the peer has tried again already; if every caller up the chain did too, a
# dead service would be called five to the power of the chain's length.
_PUSHBACK = (("grpc-retry-pushback-ms", "-1"),)
_OPEN = ("/grpc.health.v1.Health/",)


class CallInterceptor(grpc.aio.ServerInterceptor):  # type: ignore[misc]
    """`ready()` tells whether the service has finished loading."""

    def __init__(
        self, name: str, *, ready: Callable[[], bool], default_timeout_s: float, token: str
    ) -> None:
        self._name = name
        self._ready = ready
        self._default_timeout_s = default_timeout_s
        self._token = f"Bearer {token}".encode() if token else b""
        self._wrapped: dict[str, Any] = {}

    async def intercept_service(
        self, continuation: Callable[[Any], Awaitable[Any]], details: Any
    ) -> Any:
        method: str = details.method
        if (known := self._wrapped.get(method)) is not None:
            return known
        handler = await continuation(details)
        if handler is None:
            return None if self._ready() else self._loading()
        self._wrapped[method] = wrapped = self._wrap(method, handler)
        return wrapped

    def _loading(self) -> Any:
        error = status.encode(Unavailable(f"{self._name} is still loading"))

        async def refuse(_: Any, context: Any) -> None:
            await _abort(context, error)

        # A stream handler may answer before it has read anything, whatever the client sends.
        return grpc.stream_stream_rpc_method_handler(refuse)

    def _wrap(self, method: str, handler: Any) -> Any:
        behaviour = next(
            b
            for b in (
                handler.unary_unary,
                handler.unary_stream,
                handler.stream_unary,
                handler.stream_stream,
            )
            if b is not None
        )
        guard = self._guard
        default_s = None if handler.response_streaming else self._default_timeout_s

        async def answer(request: Any, context: Any) -> Any:
            async with guard(method, context, default_s):
                return await behaviour(request, context)

        async def stream(request: Any, context: Any) -> None:
            # Written out here, so that a cancelled call closes the servicer's generator at
            # once and not when the collector finds it.
            async with (
                guard(method, context, default_s),
                aclosing(behaviour(request, context)) as answers,
            ):
                async for item in answers:
                    await context.write(item)

        make = {
            (False, False): grpc.unary_unary_rpc_method_handler,
            (False, True): grpc.unary_stream_rpc_method_handler,
            (True, False): grpc.stream_unary_rpc_method_handler,
            (True, True): grpc.stream_stream_rpc_method_handler,
        }[handler.request_streaming, handler.response_streaming]
        return make(
            stream if inspect.isasyncgenfunction(behaviour) else answer,
            request_deserializer=handler.request_deserializer,
            response_serializer=handler.response_serializer,
        )

    @asynccontextmanager
    async def _guard(
        self, method: str, context: Any, default_s: float | None
    ) -> AsyncIterator[None]:
        started = time.perf_counter()
        metadata = dict(context.invocation_metadata() or ())
        trace = str(metadata.get(call_context.TRACE_KEY, ""))[:64] or call_context.new_trace()
        structlog.contextvars.bind_contextvars(trace=trace)
        left_s = context.time_remaining()
        timeout_s = default_s if left_s is None else None
        end_s = left_s if left_s is not None else default_s
        call = call_context.Call(trace, None if end_s is None else time.monotonic() + end_s)
        call_context.current.set(call)
        code = "OK"
        try:
            if self._token and not method.startswith(_OPEN):
                given = str(metadata.get("authorization", "")).encode()
                if not hmac.compare_digest(given, self._token):
                    await context.abort(
                        grpc.StatusCode.UNAUTHENTICATED, "set WMR1_TOKEN to this server's token"
                    )
            async with asyncio.timeout(timeout_s) as limit:
                yield
        except asyncio.CancelledError:
            code = "CANCELLED"
            raise
        except grpc.aio.AbortError:
            code = "ABORT"
            raise
        except Exception as error:
            if isinstance(error, WMError) and type(error) is not WMError:
                answer = status.encode(error)
            elif isinstance(error, TimeoutError) and limit.expired():
                answer = status.encode(
                    DeadlineExpired(f"{self._name} gave up after {timeout_s:g} s; send a deadline")
                )
            else:
                log.exception("call failed", method=method)
                answer = status.internal(trace)
            code = status.code_of(answer).name
            await _abort(context, answer, _PUSHBACK if _from_peer(error) else ())
        finally:
            call.end = None
            seconds = time.perf_counter() - started
            RPC_SECONDS.labels(method, code).observe(seconds)
            log.debug("call", method=method, code=code, ms=round(seconds * 1e3, 2))


async def _abort(context: Any, answer: Any, also: tuple[tuple[str, str | bytes], ...] = ()) -> None:
    metadata = (*status.metadata_of(answer), *also)
    await context.abort(status.code_of(answer), answer.message, metadata)


def _from_peer(error: BaseException | None) -> bool:
    """True when another service's failure lies at the bottom of this one."""
    while error is not None:
        if isinstance(error, grpc.aio.AioRpcError):
            return True
        error = error.__cause__ or error.__context__
    return False
