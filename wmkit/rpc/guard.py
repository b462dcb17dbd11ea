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
from collections.abc import Awaitable, Callable
from contextlib import aclosing
from functools import cache
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


class Guard:
    """Wraps handlers. `ready()` tells whether the service has finished loading.

    Not one of gRPC's interceptors: those look every method up again in every call, for a tenth
    of what a short call costs.
    """

    def __init__(
        self, name: str, *, ready: Callable[[], bool], default_timeout_s: float, token: str
    ) -> None:
        self._name = name
        self._ready = ready
        self._default_timeout_s = default_timeout_s
        self._token = f"Bearer {token}".encode() if token else b""

    def absent(self) -> Any:
        """The handler of a method that is not there: None, or one that says that it may come."""
        return None if self._ready() else self._loading()

    def _loading(self) -> Any:
        error = status.encode(Unavailable(f"{self._name} is still loading"))

        async def refuse(_: Any, context: Any) -> None:
            await _abort(context, error)

        # A stream handler may answer before it has read anything, whatever the client sends.
        return grpc.stream_stream_rpc_method_handler(refuse)

    def wrap(self, method: str, handler: Any) -> Any:
        """The method's handler with everything around it."""
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
        run = self._run
        default_s = None if handler.response_streaming else self._default_timeout_s

        async def answer(request: Any, context: Any) -> Any:
            return await run(method, context, default_s, behaviour, request)

        async def stream(request: Any, context: Any) -> None:
            await run(method, context, default_s, written, request)

        async def written(request: Any, context: Any) -> None:
            # Written out here, so that a cancelled call closes the servicer's generator at
            # once and not when the collector finds it.
            async with aclosing(behaviour(request, context)) as answers:
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

    async def _run(
        self,
        method: str,
        context: Any,
        default_s: float | None,
        behaviour: Callable[[Any, Any], Awaitable[Any]],
        request: Any,
    ) -> Any:
        """One call, `behaviour(request, context)`, with everything around it.

        On the path of every call, cached steps among them, so it is one coroutine and does
        nothing that a call without faults does not need.
        """
        started = time.perf_counter()
        metadata = dict(context.invocation_metadata() or ())
        trace = str(metadata.get(call_context.TRACE_KEY, ""))[:64] or call_context.new_trace()
        structlog.contextvars.bind_contextvars(trace=trace)
        left_s = context.time_remaining()
        timeout_s = default_s if left_s is None else None
        end_s = left_s if left_s is not None else default_s
        call = call_context.Call(trace, None if end_s is None else time.monotonic() + end_s)
        call_context.current.set(call)
        code, limit = "OK", None
        try:
            if self._token and not method.startswith(_OPEN):
                given = str(metadata.get("authorization", "")).encode()
                if not hmac.compare_digest(given, self._token):
                    await context.abort(
                        grpc.StatusCode.UNAUTHENTICATED, "set WMR1_TOKEN to this server's token"
                    )
            if timeout_s is None:
                return await behaviour(request, context)
            async with asyncio.timeout(timeout_s) as limit:
                return await behaviour(request, context)
        except asyncio.CancelledError:
            code = "CANCELLED"
            raise
        except grpc.aio.AbortError:
            code = "ABORT"
            raise
        except Exception as error:
            if isinstance(error, WMError) and type(error) is not WMError:
                answer = status.encode(error)
            elif isinstance(error, TimeoutError) and limit is not None and limit.expired():
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
            _seconds(method, code).observe(seconds)
            log.debug("call", method=method, code=code, ms=round(seconds * 1e3, 2))


@cache
def _seconds(method: str, code: str) -> Any:
    """The histogram of a method's calls that ended with a code: both are few."""
    return RPC_SECONDS.labels(method, code)


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
