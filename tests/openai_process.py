"""An OpenAI-compatible server as a process of its own, to be killed: pages that name the action.

    python -m tests.openai_process PORT [hold]

prints `serving URL`, then `open N` whenever the number of requests being answered changes. With
`hold` no answer ends before a line arrives on standard input. An answer is a page with the
action data of its request, so whoever asked can tell whether it is the right one.
"""

import asyncio
import json
import re
import socket
import sys
from typing import Any

from tests.openai_server import Answer, OpenAiServer, Reply, texts


def page(request: dict[str, Any]) -> str:
    """The page that answers a request of code2world."""
    words = texts(request["messages"][1])[0]
    found = re.search(r"Action Data: (.*)", words)
    assert found is not None
    return f"<!DOCTYPE html><html><body><div id='render-target'>{found[1]}</div></body></html>"


class Echoing(OpenAiServer):
    gate: asyncio.Event

    def next_reply(self) -> Reply:
        return Answer(page(self.requests[-1]), gate=self.gate)

    async def notify(self) -> None:
        print(f"open {self.open}", flush=True)
        await super().notify()


async def main(port: int, hold: bool) -> None:
    played = Echoing()
    played.gate = asyncio.Event()
    if not hold:
        played.gate.set()
    listening = socket.create_server(("127.0.0.1", port), backlog=256)
    server = await asyncio.start_server(played.serve, sock=listening, limit=2**25)
    print(f"serving http://127.0.0.1:{port}/v1", flush=True)
    await asyncio.to_thread(sys.stdin.readline)
    played.gate.set()
    async with server:
        await server.serve_forever()


class ModelProcess:
    """The process from outside. `start` may follow `kill`: it comes back at its old address."""

    def __init__(self) -> None:
        with socket.create_server(("127.0.0.1", 0)) as probe:
            self.port = probe.getsockname()[1]
        self.url = f"http://127.0.0.1:{self.port}/v1"
        self.process: asyncio.subprocess.Process

    async def start(self, *, hold: bool = False) -> "ModelProcess":
        self.process = await asyncio.create_subprocess_exec(
            *(sys.executable, "-m", "tests.openai_process", str(self.port)),
            *(("hold",) if hold else ()),
            stdin=asyncio.subprocess.PIPE,
            stdout=asyncio.subprocess.PIPE,
        )
        await self._until(f"serving {self.url}")
        return self

    async def until_open(self, requests: int) -> None:
        await self._until(f"open {requests}")

    def go(self) -> None:
        assert self.process.stdin is not None
        self.process.stdin.write(b"go\n")

    async def kill(self) -> None:
        if self.process.returncode is None:
            self.process.kill()
        await self.process.wait()

    async def _until(self, line: str) -> None:
        assert self.process.stdout is not None
        async for said in self.process.stdout:
            if said.decode().strip() == line:
                return
        raise AssertionError(f"the model server ended before it said {line!r}")


def expected(app: str) -> str:
    """The page that leads from opening an app."""
    data = json.dumps({"action_type": "open_app", "app_name": app})
    return f"<!DOCTYPE html><html><body><div id='render-target'>{data}</div></body></html>"


if __name__ == "__main__":
    asyncio.run(main(int(sys.argv[1]), sys.argv[2:] == ["hold"]))
