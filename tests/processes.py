"""Services as real processes, started and ended by a test."""

import asyncio
import json
import os
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager


@asynccontextmanager
async def service_process(
    name: str, **environment: str
) -> AsyncIterator[tuple[str, asyncio.subprocess.Process]]:
    """`python -m services.<name>` on a free port: its address, and the process.

    Killed at the end unless the test has ended it.
    """
    process = await asyncio.create_subprocess_exec(
        sys.executable,
        "-m",
        f"services.{name}",
        env=os.environ | {"WMR1_PORT": "0"} | environment,
        stderr=asyncio.subprocess.PIPE,
    )
    assert process.stderr is not None
    try:
        said = []
        async for line in process.stderr:
            said.append(line.decode())
            if '"serving"' in said[-1]:
                yield json.loads(said[-1])["address"], process
                break
        else:
            raise AssertionError(f"{name} ended with {await process.wait()}: {''.join(said)}")
    finally:
        if process.returncode is None:
            process.terminate()
            await process.wait()
