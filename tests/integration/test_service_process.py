"""A service as a process: what a person sees on the terminal, and how it ends."""

import asyncio
import contextlib
import json
import os
import signal
import socket
import sys
from asyncio.subprocess import PIPE, Process
from collections.abc import AsyncIterator
from typing import Any

import pytest

from tests.processes import free_port
from wmkit.clients import WorldModelClient
from wmkit.rpc.health import wait_serving


@contextlib.asynccontextmanager
async def toy(*args: str, **env: str) -> AsyncIterator[Process]:
    process = await asyncio.create_subprocess_exec(
        sys.executable,
        "-m",
        "tests.toy_service",
        *args,
        stdout=PIPE,
        stderr=PIPE,
        env={**os.environ, **{f"WMR1_{key.upper()}": value for key, value in env.items()}},
    )
    try:
        yield process
    finally:
        with contextlib.suppress(ProcessLookupError):
            process.kill()
        await process.wait()


async def ended(process: Process) -> tuple[int | None, str, str]:
    out, err = await asyncio.wait_for(process.communicate(), 30)
    return process.returncode, out.decode(), err.decode()


@pytest.mark.parametrize("how", [signal.SIGTERM, signal.SIGINT])
async def test_a_signal_drains_and_closes_last(how: signal.Signals) -> None:
    port = free_port()
    async with toy(port=str(port), drain_pause_s="0.1") as process:
        await wait_serving(f"127.0.0.1:{port}", 30)
        async with WorldModelClient(f"127.0.0.1:{port}") as client:
            call = asyncio.create_task(client.list_tasks())
            assert process.stdout is not None
            assert await process.stdout.readline() == b"called ListTasks\n"
            process.send_signal(how)
            (template,) = await call
        assert template.name == "fake"
        code, out, err = await ended(process)
    assert (code, out) == (0, "closed\n")
    lines = [json.loads(line) for line in err.splitlines()]
    assert [line["event"] for line in lines] == ["serving", "stopping", "stopped"]
    assert {line["service"] for line in lines} == {"toy"}


async def test_a_taken_port_is_one_sentence_that_names_the_holder() -> None:
    with socket.socket() as holder:
        holder.bind(("127.0.0.1", 0))
        holder.listen()
        port = holder.getsockname()[1]
        async with toy(port=str(port)) as process:
            code, _, err = await ended(process)
    assert code == 2
    (line,) = err.splitlines()
    assert line.startswith(f"toy: port {port} is taken")
    assert line.endswith("set WMR1_PORT to a free one")
    if os.path.exists("/proc/net/tcp"):
        assert f"(pid {os.getpid()})" in line


async def test_a_taken_metrics_port_is_one_sentence() -> None:
    with socket.socket() as holder:
        holder.bind(("127.0.0.1", 0))
        holder.listen()
        port = str(holder.getsockname()[1])
        async with toy(metrics_port=port) as process:
            code, _, err = await ended(process)
    assert code == 2
    (line,) = err.splitlines()
    assert f"port {port} is taken" in line
    assert "WMR1_METRICS_PORT" in line


async def test_metrics_count_calls_by_method_and_code() -> None:
    port, metrics_port = free_port(), free_port()
    async with toy(port=str(port), metrics_port=str(metrics_port)) as _:
        await wait_serving(f"127.0.0.1:{port}", 30)
        async with WorldModelClient(f"127.0.0.1:{port}") as client:
            await client.list_tasks()
        reader, writer = await asyncio.open_connection("127.0.0.1", metrics_port)
        writer.write(b"GET /metrics HTTP/1.0\r\n\r\n")
        text = (await reader.read()).decode()
        writer.close()
    labels = 'code="OK",method="/wmr1.worldmodel.v1.WorldModelService/ListTasks"'
    assert f"wmr1_rpc_seconds_count{{{labels}}} 1.0" in text


@pytest.mark.parametrize(
    ("env", "says"),
    [
        ({"host": "0.0.0.0"}, "WMR1_TRUSTED_NETWORK"),
        ({"port": "70000"}, "WMR1_PORT=70000"),
        ({"log_level": "loud"}, "WMR1_LOG_LEVEL=loud"),
    ],
)
async def test_a_mistake_in_the_environment_is_one_sentence(env: Any, says: str) -> None:
    async with toy(**env) as process:
        code, _, err = await ended(process)
    assert code == 2
    (line,) = err.splitlines()
    assert says in line


async def test_help_lists_the_environment_and_starts_nothing() -> None:
    async with toy("--help") as process:
        code, out, err = await ended(process)
    assert (code, err) == (0, "")
    assert "usage: python -m services.toy" in out
    assert "WMR1_REDIS_URL=redis://" in out


async def test_arguments_are_refused_with_a_hint() -> None:
    async with toy("--port", "1") as process:
        code, _, err = await ended(process)
    assert code == 2
    assert "environment" in err


async def test_a_client_loads_nothing_that_only_services_need() -> None:
    heavy = ["torch", "transformers", "playwright", "redis", "obstore", "blake3", "PIL"]
    code = f"import sys, wmkit.clients.sync; print([m for m in {heavy} if m in sys.modules])"
    process = await asyncio.create_subprocess_exec(sys.executable, "-c", code, stdout=PIPE)
    out, _ = await process.communicate()
    assert out == b"[]\n"
