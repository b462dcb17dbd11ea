"""A TCP proxy between two of our processes that behaves like a bad network.

Chunks are late, connections are reset, and some go silent without a word (half-open: what is
sent is lost and nothing comes back). Deterministic but for the order in which chunks arrive.
"""

import asyncio
import random
from collections import Counter
from collections.abc import Awaitable, Callable
from typing import Self

Streams = tuple[asyncio.StreamReader, asyncio.StreamWriter]
CHUNK = 65_536


class BadNetwork:
    """Listens on `port`; `connect` opens the way to the real server.

    A fault comes after every `every` chunks on average: `resets` connections are cut and
    `silences` go silent, in random order; afterwards the network is only slow.
    """

    def __init__(
        self,
        connect: Callable[[], Awaitable[Streams]],
        *,
        seed: int,
        every: int,
        resets: int,
        silences: int,
        latency_s: float,
    ) -> None:
        self._connect = connect
        self._random = random.Random(seed)
        self._every = every
        self._latency_s = latency_s
        self._faults = ["reset"] * resets + ["silence"] * silences
        self._random.shuffle(self._faults)
        self._left = self._random.randrange(1, 2 * every)
        self._tasks: set[asyncio.Task[None]] = set()
        self.done: Counter[str] = Counter()
        self.port = 0

    async def __aenter__(self) -> Self:
        self._server = await asyncio.start_server(self._serve, "127.0.0.1", 0)
        self.port = self._server.sockets[0].getsockname()[1]
        return self

    async def __aexit__(self, *_: object) -> None:
        self._server.close()
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)

    @property
    def address(self) -> str:
        return f"127.0.0.1:{self.port}"

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            server_reader, server_writer = await self._connect()
        except OSError:
            writer.transport.abort()
            return
        link = _Link(writer, server_writer)
        for source, sink in ((reader, server_writer), (server_reader, writer)):
            task = asyncio.create_task(self._forward(link, source, sink))
            self._tasks.add(task)
            task.add_done_callback(self._tasks.discard)

    async def _forward(
        self, link: "_Link", source: asyncio.StreamReader, sink: asyncio.StreamWriter
    ) -> None:
        try:
            while data := await source.read(CHUNK):
                self._maybe_fail(link)
                if link.silent:
                    continue
                await asyncio.sleep(self._latency_s * self._random.uniform(0.5, 1.5))
                sink.write(data)
                await sink.drain()
        except OSError:
            pass  # the other side is gone, which is the point
        finally:
            if not link.silent:
                link.cut()

    def _maybe_fail(self, link: "_Link") -> None:
        self._left -= 1
        if self._left > 0 or not self._faults or link.silent:
            return
        self._left = self._random.randrange(1, 2 * self._every)
        fault = self._faults.pop()
        self.done[fault] += 1
        if fault == "silence":
            link.silent = True
        else:
            link.cut()


class _Link:
    def __init__(self, *writers: asyncio.StreamWriter) -> None:
        self.silent = False
        self._writers = writers

    def cut(self) -> None:
        """Both ends get a reset rather than an end of file."""
        for writer in self._writers:
            writer.transport.abort()
