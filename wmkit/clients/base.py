"""What all clients share: a lazy channel, deadlines, trace id and token, decoded errors."""

import asyncio
from collections.abc import AsyncIterable, AsyncIterator, Iterable, Iterator
from contextlib import contextmanager, suppress
from typing import Any, Self

import grpc

from wmkit.domain.errors import InvalidRequest
from wmkit.rpc import context
from wmkit.rpc.channel import open_channel, token_metadata
from wmkit.rpc.status import decode_call


@contextmanager
def whole_text() -> Iterator[None]:
    """Around making a message. Raises InvalidRequest for half of a surrogate pair, which is no
    text and cannot be sent."""
    try:
        yield
    except UnicodeEncodeError as error:
        raise InvalidRequest(
            f"the text holds half of a surrogate pair at character {error.start}"
        ) from None


class Client:
    """A connection to one service, opened by the first call and closed with the `with` block.

    Calls raise the errors of `wmkit.domain.errors`. `timeout_s` is the deadline of a call
    that names none; inside a server it is cut to what that server's own caller allows.
    `token` is shown to a server that asks for one; WMR1_TOKEN when None.
    """

    _what: str
    _stub_class: Any

    def __init__(self, address: str, *, timeout_s: float = 60.0, token: str | None = None) -> None:
        self.address = address
        self.timeout_s = timeout_s
        self._token = token_metadata(token)
        self._peer = f"{self._what} at {address}"
        self._channel: grpc.aio.Channel | None = None
        self._opened: Any = None

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.close()

    async def close(self) -> None:
        if self._channel is not None:
            await self._channel.close()
            self._channel = self._opened = None

    @property
    def _stub(self) -> Any:
        if self._opened is None:
            self._channel = open_channel(self.address)
            self._opened = self._stub_class(self._channel)
        return self._opened

    def _metadata(self) -> tuple[tuple[str, str], ...]:
        trace = context.trace()
        return (*self._token, (context.TRACE_KEY, trace)) if trace else self._token

    async def _call(self, method: Any, request: Any, timeout_s: float | None = None) -> Any:
        limit_s = context.remaining_s(self.timeout_s if timeout_s is None else timeout_s)
        try:
            return await method(request, timeout=limit_s, metadata=self._metadata())
        except grpc.aio.AioRpcError as error:
            raise decode_call(error, self._peer) from None

    async def _watch(self, method: Any, request: Any) -> AsyncIterator[Any]:
        """Messages of a server stream, for as long as the server sends them."""
        call = method(request, timeout=context.left_s(), metadata=self._metadata())
        try:
            async for message in call:
                yield message
        except grpc.aio.AioRpcError as error:
            raise decode_call(error, self._peer) from None
        finally:
            call.cancel()

    async def _exchange(
        self, method: Any, requests: AsyncIterable[Any] | Iterable[Any]
    ) -> AsyncIterator[Any]:
        """Send `requests` while their answers arrive; an error of the iterable is raised here."""
        call = method(timeout=context.left_s(), metadata=self._metadata())

        async def send() -> None:
            try:
                async for request in each(requests):
                    await call.write(request)
                await call.done_writing()
            except (grpc.aio.AioRpcError, asyncio.InvalidStateError):
                pass  # The call has ended; the reader knows why.
            except BaseException:
                call.cancel()
                raise

        sender = asyncio.create_task(send())
        try:
            while (message := await call.read()) is not grpc.aio.EOF:
                yield message
            await sender
        except grpc.aio.AioRpcError as error:
            raise decode_call(error, self._peer) from None
        except asyncio.CancelledError:
            if sender.done() and not sender.cancelled() and (fault := sender.exception()):
                raise fault from None
            raise
        finally:
            call.cancel()
            sender.cancel()
            with suppress(asyncio.CancelledError, Exception):
                await sender


async def each(items: AsyncIterable[Any] | Iterable[Any]) -> AsyncIterator[Any]:
    """Either kind of iterable as an asynchronous one."""
    if isinstance(items, AsyncIterable):
        async for item in items:
            yield item
    else:
        for item in items:
            yield item
