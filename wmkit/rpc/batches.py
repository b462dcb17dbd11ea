"""Many requests on one stream, answered as they finish: the shape of every Batch* method.

Errors of single items are the caller's to turn into answers; what `answer` raises ends the stream.
"""

import asyncio
from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Callable
from typing import TypeVar

Q = TypeVar("Q")
A = TypeVar("A")


async def answered(
    requests: AsyncIterator[Q], answer: Callable[[Q], Awaitable[A]], in_flight: int
) -> AsyncGenerator[A, None]:
    """`answer(request)` of every request, in the order in which they finish.

    At most `in_flight` are worked on or wait to be read.
    """
    answers: asyncio.Queue[tuple[A] | None] = asyncio.Queue()
    slots = asyncio.Semaphore(in_flight)

    async def work(request: Q) -> None:
        answers.put_nowait((await answer(request),))

    async def read() -> None:
        try:
            async with asyncio.TaskGroup() as tasks:
                async for request in requests:
                    await slots.acquire()
                    tasks.create_task(work(request))
        finally:
            answers.put_nowait(None)

    reader = asyncio.create_task(read())
    try:
        while (done := await answers.get()) is not None:
            yield done[0]
            # Only a written answer makes room, so a caller that reads slowly is not answered
            # into memory.
            slots.release()
        await reader
    finally:
        reader.cancel()
