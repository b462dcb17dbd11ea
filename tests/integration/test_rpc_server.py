"""A real server on a real port: errors, deadlines, health, reflection, limits, draining."""

import asyncio
import contextlib
from collections.abc import Awaitable, Callable
from typing import Any

import grpc
import pytest
import structlog
from grpc_health.v1 import health_pb2, health_pb2_grpc
from grpc_reflection.v1alpha import reflection_pb2, reflection_pb2_grpc
from wmr1.worldmodel.v1 import worldmodel_pb2 as pb
from wmr1.worldmodel.v1 import worldmodel_pb2_grpc

from tests.toy_service import SERVICE, ToyServicer, register
from wmkit.clients import WorldModelClient
from wmkit.domain import errors
from wmkit.domain.errors import (
    BrowserCrashed,
    DeadlineExpired,
    InvalidAction,
    InvalidRequest,
    Overloaded,
    PayloadTooLarge,
    StateNotFound,
    Unavailable,
    WMError,
)
from wmkit.rpc import context
from wmkit.rpc.health import check
from wmkit.rpc.ports import PortTaken
from wmkit.rpc.server import Server, running
from wmkit.settings import ServiceSettings


def settings(**changes: Any) -> ServiceSettings:
    return ServiceSettings(**{"drain_pause_s": 0.0, "drain_grace_s": 5.0, **changes})


def toy(before: Callable[[str], Awaitable[None]] | None = None, **changes: Any) -> Any:
    return running(settings(**changes), "toy", register(ToyServicer(before)))


@contextlib.asynccontextmanager
async def raw(address: str, **options: int) -> Any:
    """A stub without retries or limits of our client's own."""
    every = {"grpc.enable_retries": 0, "grpc.max_send_message_length": -1, **options}
    async with grpc.aio.insecure_channel(address, options=list(every.items())) as channel:
        yield worldmodel_pb2_grpc.WorldModelServiceStub(channel)


@pytest.mark.parametrize(
    "error",
    [
        InvalidAction("tap at x=3 lies outside the screen", "action.tap.point.x"),
        errors.BadHtml("no document", "html"),
        errors.UnknownTask("there is no task 'foo'; did you mean 'food'?", "task.template"),
        StateNotFound("state ab12 has expired", "ab12"),
        errors.RunNotFound("there is no run r1", "r1"),
        Overloaded("64 jobs wait", 3.5),
        PayloadTooLarge("40 MB"),
        errors.StalePolicyVersion("version 3 is loaded, 4 was asked for"),
        DeadlineExpired("the page took too long"),
        errors.CorruptBlob("blob ab is damaged"),
        errors.BadCheckpoint("weights hold NaN — 重み"),
    ],
)
async def test_an_error_crosses_the_wire_intact(error: WMError) -> None:
    async def before(_: str) -> None:
        raise error

    async with toy(before) as server, WorldModelClient(server.address) as client:
        with pytest.raises(WMError) as caught:
            await client.list_tasks()
    assert type(caught.value) is type(error)
    assert vars(caught.value) == vars(error)


async def test_a_bug_is_internal_and_its_story_stays_in_the_log() -> None:
    async def before(_: str) -> None:
        raise ZeroDivisionError("password=hunter2")

    async with toy(before) as server, raw(server.address) as stub:
        with structlog.testing.capture_logs() as lines, pytest.raises(grpc.RpcError) as caught:
            await stub.ListTasks(pb.ListTasksRequest(), metadata=((context.TRACE_KEY, "trace-1"),))
    assert caught.value.code() is grpc.StatusCode.INTERNAL
    assert caught.value.details() == "internal error, request id trace-1"
    assert b"hunter2" not in b"".join(
        v if isinstance(v, bytes) else v.encode() for _, v in caught.value.trailing_metadata()
    )
    (line,) = [line for line in lines if line["event"] == "call failed"]
    assert line["exc_info"]


async def test_an_unavailable_service_is_tried_again() -> None:
    calls = 0

    async def before(_: str) -> None:
        nonlocal calls
        calls += 1
        if calls < 3:
            raise BrowserCrashed("the browser died")

    async with toy(before) as server, WorldModelClient(server.address) as client:
        (template,) = await client.list_tasks()
    assert (template.name, calls) == ("fake", 3)


async def test_only_the_caller_next_to_a_failure_tries_again() -> None:
    calls = {"front": 0, "behind": 0}

    async def far(_: str) -> None:
        calls["behind"] += 1
        raise BrowserCrashed("the browser died")

    async with toy(far) as behind, WorldModelClient(behind.address) as inner:

        async def near(_: str) -> None:
            calls["front"] += 1
            await inner.list_tasks()

        async with toy(near) as front, WorldModelClient(front.address) as client:
            with pytest.raises(BrowserCrashed, match="the browser died"):
                await client.list_tasks()
    assert calls == {"front": 1, "behind": 5}


async def test_what_the_caller_did_wrong_is_not_tried_again() -> None:
    calls = 0

    async def before(_: str) -> None:
        nonlocal calls
        calls += 1
        raise Overloaded("full")

    async with toy(before) as server, WorldModelClient(server.address) as client:
        with pytest.raises(Overloaded):
            await client.list_tasks()
    assert calls == 1


async def test_a_call_without_a_deadline_gets_the_servers() -> None:
    async def before(_: str) -> None:
        await asyncio.Event().wait()

    async with (
        toy(before, default_timeout_s=0.05) as server,
        raw(server.address) as stub,
    ):
        with pytest.raises(grpc.RpcError) as caught:
            await stub.ListTasks(pb.ListTasksRequest())
    assert caught.value.code() is grpc.StatusCode.DEADLINE_EXCEEDED


async def test_the_callers_own_deadline_cancels_the_work() -> None:
    cancelled = asyncio.Event()

    async def before(_: str) -> None:
        try:
            await asyncio.Event().wait()
        except asyncio.CancelledError:
            cancelled.set()
            raise

    async with toy(before) as server, WorldModelClient(server.address, timeout_s=0.1) as client:
        with pytest.raises(DeadlineExpired, match="the world model at"):
            await client.list_tasks()
        await asyncio.wait_for(cancelled.wait(), 5)


async def test_trace_and_deadline_travel_to_the_next_service() -> None:
    seen: dict[str, tuple[str, float | None]] = {}

    async def far(_: str) -> None:
        seen["far"] = context.trace(), context.left_s()

    async with toy(far) as behind, WorldModelClient(behind.address, timeout_s=600) as client:

        async def near(_: str) -> None:
            seen["near"] = context.trace(), context.left_s()
            await client.list_tasks()

        async with toy(near) as front, raw(front.address) as stub:
            await stub.ListTasks(
                pb.ListTasksRequest(), timeout=20, metadata=((context.TRACE_KEY, "t7"),)
            )
    assert seen["near"][0] == seen["far"][0] == "t7"
    assert seen["far"][1] is not None
    assert seen["near"][1] is not None
    # gRPC rounds a deadline up by a percent or two when it puts it on the wire.
    assert seen["far"][1] < 22
    assert seen["near"][1] < 22


async def test_a_task_that_outlives_its_call_is_free_of_the_calls_deadline() -> None:
    answered, left = asyncio.Event(), []

    async def background() -> None:
        left.append(context.left_s())
        await answered.wait()
        left.append(context.left_s())
        assert context.trace() == "t8"

    tasks = []

    async def before(_: str) -> None:
        tasks.append(asyncio.create_task(background()))
        await asyncio.sleep(0)

    async with toy(before) as server, raw(server.address) as stub:
        await stub.ListTasks(
            pb.ListTasksRequest(), timeout=20, metadata=((context.TRACE_KEY, "t8"),)
        )
        answered.set()
        await tasks[0]
    assert left[0] is not None
    assert left[1] is None


async def test_health_is_told_per_service_and_overall() -> None:
    loading = asyncio.Event()

    async def slowly(server: Any) -> list[str]:
        await loading.wait()
        return register(ToyServicer())(server)

    server = Server(settings(), "toy")
    await server.start()
    load = asyncio.create_task(server.load(slowly))
    assert await check(server.address) == "NOT_SERVING"
    async with raw(server.address) as stub:
        with pytest.raises(grpc.RpcError) as caught:
            await stub.ListTasks(pb.ListTasksRequest())
        assert caught.value.code() is grpc.StatusCode.UNAVAILABLE
        assert "still loading" in caught.value.details()
        loading.set()
        await load
        assert await check(server.address) == "SERVING"
        assert await check(server.address, SERVICE) == "SERVING"
        assert await check(server.address, "wmr1.nothing.v1.Nothing") == "SERVICE_UNKNOWN"
        assert len((await stub.ListTasks(pb.ListTasksRequest())).templates) == 1
    await server.drain()
    assert await check(server.address, timeout_s=0.2) == "UNREACHABLE"


async def test_reflection_lists_the_service_and_describes_it() -> None:
    async with toy() as server, grpc.aio.insecure_channel(server.address) as channel:
        ask = reflection_pb2_grpc.ServerReflectionStub(channel).ServerReflectionInfo
        call = ask(
            iter(
                [
                    reflection_pb2.ServerReflectionRequest(list_services=""),
                    reflection_pb2.ServerReflectionRequest(file_containing_symbol=SERVICE),
                ]
            )
        )
        listed, described = [answer async for answer in call]
    names = {service.name for service in listed.list_services_response.service}
    assert names == {
        SERVICE,
        "grpc.health.v1.Health",
        "grpc.reflection.v1alpha.ServerReflection",
    }
    assert any(
        b"WorldModelService" in file
        for file in described.file_descriptor_response.file_descriptor_proto
    )


async def test_draining_lets_a_call_in_flight_finish() -> None:
    arrived, release = asyncio.Event(), asyncio.Event()

    async def before(_: str) -> None:
        arrived.set()
        await release.wait()

    server = Server(settings(), "toy")
    await server.start()
    await server.load(register(ToyServicer(before)))
    async with raw(server.address) as stub, grpc.aio.insecure_channel(server.address) as channel:
        watch = health_pb2_grpc.HealthStub(channel).Watch(health_pb2.HealthCheckRequest())
        assert (await watch.read()).status == health_pb2.HealthCheckResponse.SERVING
        call = stub.ListTasks(pb.ListTasksRequest())
        await arrived.wait()
        drain = asyncio.create_task(server.drain())
        assert (await watch.read()).status == health_pb2.HealthCheckResponse.NOT_SERVING
        watch.cancel()
        while await check(server.address, timeout_s=0.5) != "UNREACHABLE":
            pass  # Only now is the server past its pause and refusing newcomers.
        release.set()
        answer = await call
        await drain
    assert len(answer.templates) == 1


async def test_a_second_server_on_the_port_is_refused() -> None:
    async with toy() as server:
        with pytest.raises(PortTaken) as caught:
            await Server(settings(port=server.port), "toy").start()
    message = str(caught.value)
    assert f"port {server.port} is taken" in message
    assert "set WMR1_PORT" in message


async def test_40_mb_are_refused_and_20_mb_pass_both_ways() -> None:
    async with toy() as server, raw(server.address) as stub:
        with pytest.raises(grpc.RpcError) as caught:
            await stub.GetState(pb.GetStateRequest(state_id="x" * 40 * 1024 * 1024))
        assert caught.value.code() is grpc.StatusCode.RESOURCE_EXHAUSTED
        with pytest.raises(grpc.RpcError) as caught:
            await stub.GetState(pb.GetStateRequest(state_id="x" * 20 * 1024 * 1024))
        assert caught.value.code() is grpc.StatusCode.NOT_FOUND
        async with WorldModelClient(server.address) as client:
            with pytest.raises(PayloadTooLarge, match="the world model at"):
                await client.get_state("x" * 40 * 1024 * 1024)


async def test_an_open_network_is_refused_unless_it_is_said_to_be_trusted() -> None:
    with pytest.raises(InvalidRequest, match="WMR1_TRUSTED_NETWORK"):
        await Server(settings(host="0.0.0.0"), "toy").start()
    for allowed in ({"trusted_network": True}, {"token": "s3cret"}):
        server = Server(settings(host="0.0.0.0", **allowed), "toy")
        await server.start()
        await server.drain()


async def test_a_token_is_asked_for_but_not_by_health() -> None:
    async with toy(token="s3cret") as server:
        assert await check(server.address) == "SERVING"
        async with WorldModelClient(server.address, token="s3cret") as client:
            assert len(await client.list_tasks()) == 1
        for wrong in ("", "s3cre", "s3cret "):
            async with WorldModelClient(server.address, token=wrong) as client:
                with pytest.raises(InvalidRequest, match="WMR1_TOKEN"):
                    await client.list_tasks()


async def test_nobody_there_is_unavailable_and_names_the_address() -> None:
    async with WorldModelClient("127.0.0.1:1", timeout_s=30) as client:
        with pytest.raises(Unavailable, match=r"the world model at 127\.0\.0\.1:1") as caught:
            await client.list_tasks()
    assert "\n" not in caught.value.message
