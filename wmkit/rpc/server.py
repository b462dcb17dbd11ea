"""A gRPC server's life: bind, load, serve, drain. Knows no service.

    bind -> NOT_SERVING while `register` loads -> SERVING -> SIGTERM -> NOT_SERVING
         -> pause -> stop(grace), calls in flight complete -> `close`

`serve` is what a process runs; `running` is the same life as a context manager for tests
and for whoever hosts a server inside another program.
"""

import asyncio
import inspect
import signal
import sys
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import asynccontextmanager
from typing import Any, NoReturn

import grpc
import structlog
from grpc_health.v1 import health, health_pb2, health_pb2_grpc
from grpc_reflection.v1alpha import reflection, reflection_pb2_grpc

from wmkit import metrics
from wmkit.domain.errors import InvalidRequest, WMError
from wmkit.rpc.channel import LIMITS
from wmkit.rpc.guard import Guard
from wmkit.rpc.ports import PortTaken, is_taken
from wmkit.settings import ServiceSettings

log = structlog.get_logger(__name__)

Register = Callable[[Any], Sequence[str] | Awaitable[Sequence[str]]]
"""Adds servicers to the server it is given and returns their full service names.

May be a coroutine function that loads what the service needs first; a sentence for the
user is raised as a domain error or ValueError.
"""
Close = Callable[[], Awaitable[None]]

_SERVING = health_pb2.HealthCheckResponse.SERVING
_NOT_SERVING = health_pb2.HealthCheckResponse.NOT_SERVING


async def _nothing() -> None:
    return None


class _LateHandlers(grpc.GenericRpcHandler):  # type: ignore[misc]
    """Stands in for the server in `register`: servicers may join after the port is open.

    Hands out their methods with the guard around them.
    """

    def __init__(self, guard: Guard) -> None:
        self._guard = guard
        self._handlers: list[Any] = []
        self._wrapped: dict[str, Any] = {}

    def add_generic_rpc_handlers(self, handlers: Sequence[Any]) -> None:
        self._handlers.extend(handlers)

    def add_registered_method_handlers(self, service: str, methods: dict[str, Any]) -> None:
        """A second way in that generated code takes too; the generic one is enough."""

    def service(self, details: Any) -> Any:
        method: str = details.method
        if (known := self._wrapped.get(method)) is not None:
            return known
        for handler in self._handlers:
            if (found := handler.service(details)) is not None:
                self._wrapped[method] = wrapped = self._guard.wrap(method, found)
                return wrapped
        return self._guard.absent()


class Server:
    """One server; `start`, then `load`, finally `drain`."""

    def __init__(self, settings: ServiceSettings, name: str) -> None:
        self._settings = settings
        self._name = name
        self._ready = False
        self._health = health.aio.HealthServicer()
        self.port = 0

    @property
    def address(self) -> str:
        return _join(self._settings.host, self.port)

    async def start(self) -> None:
        """Open the port, report NOT_SERVING.

        Raises PortTaken, or InvalidRequest when the host may not be listened on.
        """
        settings = self._settings
        if not (settings.loopback or settings.token or settings.trusted_network):
            raise InvalidRequest(
                f"{self._name} would be open to the network on {settings.host}: set WMR1_TOKEN, "
                "or WMR1_TRUSTED_NETWORK=true where only trusted peers can reach it",
                "host",
            )
        guard = Guard(
            self._name,
            ready=lambda: self._ready,
            default_timeout_s=settings.default_timeout_s,
            token=settings.token,
        )
        self._late = _LateHandlers(guard)
        self._server = grpc.aio.server(options=_options(settings))
        # Asked before gRPC tries, because its core logs lines of its own about a failed bind.
        if settings.port and is_taken(settings.host, settings.port):
            raise PortTaken(settings.port, "WMR1_PORT")
        try:
            self.port = self._server.add_insecure_port(_join(settings.host, settings.port))
        except RuntimeError:
            raise InvalidRequest(f"cannot listen on {settings.host}:{settings.port}") from None
        if settings.metrics_port:
            try:
                metrics.serve(settings.host, settings.metrics_port)
            except OSError:
                raise PortTaken(settings.metrics_port, "WMR1_METRICS_PORT") from None
        await self._health.set("", _NOT_SERVING)
        health_pb2_grpc.add_HealthServicer_to_server(self._health, self._late)
        self._server.add_generic_rpc_handlers((self._late,))
        await self._server.start()

    async def load(self, register: Register) -> None:
        """Run `register`, add reflection and report SERVING."""
        added = register(self._late)
        names = await added if inspect.isawaitable(added) else added
        self._add_reflection(names)
        self._ready = True
        for name in ("", *names):
            await self._health.set(name, _SERVING)
        log.info("serving", address=self.address)

    def _add_reflection(self, names: Sequence[str]) -> None:
        shown = (*names, health.SERVICE_NAME, reflection.SERVICE_NAME)
        servicer = reflection.aio.ReflectionServicer(shown)
        reflection_pb2_grpc.add_ServerReflectionServicer_to_server(servicer, self._late)

    async def drain(self) -> None:
        """Report NOT_SERVING, pause, let calls in flight complete."""
        await self._health.enter_graceful_shutdown()
        await asyncio.sleep(self._settings.drain_pause_s)
        await self._server.stop(self._settings.drain_grace_s)


@asynccontextmanager
async def running(
    settings: ServiceSettings, name: str, register: Register, close: Close = _nothing
) -> AsyncIterator[Server]:
    """A loaded server for the length of a `with` block; `.address` is where it listens."""
    server = Server(settings, name)
    await server.start()
    try:
        await server.load(register)
        yield server
    finally:
        await server.drain()
        await close()


async def serve(
    settings: ServiceSettings, name: str, register: Register, close: Close = _nothing
) -> None:
    """Serve until SIGTERM or SIGINT, then drain and call `close` last.

    A second signal ends the process at once. A mistake of whoever starts the service (a
    taken port, an open network, a domain error or ValueError of `register`) is one
    sentence on stderr and exit code 2.
    """
    loop, stop = asyncio.get_running_loop(), asyncio.Event()

    def on_signal(which: signal.Signals) -> None:
        log.info("stopping", signal=which.name)
        stop.set()
        for each in (signal.SIGTERM, signal.SIGINT):
            loop.remove_signal_handler(each)

    for each in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(each, on_signal, each)
    server = Server(settings, name)
    try:
        await server.start()
    except (PortTaken, WMError) as error:
        _exit(name, error)
    try:
        loading = asyncio.ensure_future(server.load(register))
        stopping = asyncio.ensure_future(stop.wait())
        await asyncio.wait((loading, stopping), return_when=asyncio.FIRST_COMPLETED)
        if loading.done():
            try:
                loading.result()
            except (WMError, ValueError) as error:
                log.debug("register failed", exc_info=True)
                _exit(name, error)
            await stopping
        else:
            loading.cancel()
            await asyncio.gather(loading, return_exceptions=True)
    finally:
        await server.drain()
        await close()
    log.info("stopped")


def _join(host: str, port: int) -> str:
    return f"[{host}]:{port}" if ":" in host and "[" not in host else f"{host}:{port}"


def _exit(name: str, error: Exception) -> NoReturn:
    print(f"{name}: {error}", file=sys.stderr)
    raise SystemExit(2)


def _options(settings: ServiceSettings) -> list[tuple[str, int]]:
    options = [
        *LIMITS,
        # Two servers on one port would share its calls without a word.
        ("grpc.so_reuseport", 0),
        ("grpc.keepalive_permit_without_calls", 1),
        ("grpc.http2.min_recv_ping_interval_without_data_ms", 5_000),
        ("grpc.http2.max_ping_strikes", 0),
        ("grpc.keepalive_time_ms", 60_000),
        ("grpc.keepalive_timeout_ms", 20_000),
    ]
    if settings.max_connection_age_s:
        options += [
            ("grpc.max_connection_age_ms", int(settings.max_connection_age_s * 1000)),
            ("grpc.max_connection_age_grace_ms", int(settings.drain_grace_s * 1000)),
        ]
    return options
