"""The world-model service over real gRPC, with a real Redis and a blob folder.

The renderer is a small gRPC server of the test, so that a picture can be made to fail.
"""

import asyncio
import re
import signal
from collections.abc import AsyncIterator, Iterator
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path
from typing import Any

import grpc
import pytest
from hypothesis import given, settings
from wmr1.renderer.v1 import renderer_pb2 as renderer_pb
from wmr1.renderer.v1 import renderer_pb2_grpc as renderer_rpc
from wmr1.worldmodel.v1 import worldmodel_pb2 as pb
from wmr1.worldmodel.v1 import worldmodel_pb2_grpc as rpc

from services.worldmodel import phone, tasks
from services.worldmodel.app import registration
from services.worldmodel.backends.scripted import Scripted
from services.worldmodel.settings import WorldModelSettings
from services.worldmodel.states import state_name
from tests.processes import service_process
from tests.redis_server import RedisServer
from tests.unit.test_invariants_branching import play
from tests.walks import Walk, walks
from wmkit import convert
from wmkit.blobs import digest, open_blobs
from wmkit.clients import StepCall, WorldModelClient
from wmkit.domain.actions import TERMINAL, Answer, Back, Home, OpenApp, Tap
from wmkit.domain.errors import StateNotFound, Unavailable, UnknownTask
from wmkit.domain.screen import Point
from wmkit.domain.tasks import TaskRef, Verdict
from wmkit.domain.transition import (
    FailureReason,
    Image,
    ImageRequest,
    Outcome,
    Purpose,
    Rendering,
    Transition,
)
from wmkit.ports import BlobStore
from wmkit.rpc.server import running
from wmkit.settings import ServiceSettings

TASK = TaskRef(template="settings_turn_on", seed=1)
COMMIT = Purpose.COMMIT


class Easel(renderer_rpc.RendererServiceServicer):  # type: ignore[misc]
    """Answers every page with bytes that repeat its HTML, or with `picture` where it is set."""

    def __init__(self, blobs: BlobStore) -> None:
        self.blobs = blobs
        self.drawn: list[renderer_pb.RenderRequest] = []
        self.fails: FailureReason | None = None
        self.picture = b""

    async def Render(self, request: renderer_pb.RenderRequest, _: Any) -> Any:
        if self.fails is not None:
            return convert.rendering_to_pb(Rendering(None, self.fails))
        self.drawn.append(request)
        wish = convert.image_request_from_pb(request.image)
        assert wish is not None
        data = self.picture or request.html.encode()
        width, height = round(request.width_px * wish.scale), round(request.height_px * wish.scale)
        image = Image(await self.blobs.put(data), width, height, wish.format)
        return convert.rendering_to_pb(Rendering(image, revision="easel"))


class Service:
    """A running service with the parts that a test may want to touch."""

    def __init__(self, folder: Path, redis: RedisServer, renderer: str, easel: Easel) -> None:
        self.blobs = folder / "blobs"
        self.redis = redis
        self.renderer = renderer
        self.easel = easel
        self.client: WorldModelClient
        self.address = ""

    def settings(self, **more: Any) -> WorldModelSettings:
        return WorldModelSettings(
            port=0,
            redis_url=self.redis.url,
            blobs=str(self.blobs),
            renderer=self.renderer,
            drain_pause_s=0,
            **more,
        )

    @asynccontextmanager
    async def run(self, **more: Any) -> AsyncIterator[WorldModelClient]:
        chosen, resources = self.settings(**more), AsyncExitStack()
        register = registration(chosen, resources)
        async with running(chosen, "worldmodel", register, resources.aclose) as server:
            self.address = server.address
            async with WorldModelClient(server.address) as self.client:
                yield self.client


@pytest.fixture
def redis(tmp_path: Path) -> Iterator[RedisServer]:
    server = RedisServer(tmp_path).start()
    yield server
    server.kill()


@pytest.fixture
async def service(tmp_path: Path, redis: RedisServer) -> AsyncIterator[Service]:
    easel = Easel(open_blobs(str(tmp_path / "blobs")))

    def register(server: Any) -> list[str]:
        renderer_rpc.add_RendererServiceServicer_to_server(easel, server)
        return ["wmr1.renderer.v1.RendererService"]

    plain = ServiceSettings(port=0, drain_pause_s=0)
    async with running(plain, "renderer", register) as renderer:
        yield Service(tmp_path, redis, renderer.address, easel)


async def test_a_task_is_created_stepped_and_judged(service: Service) -> None:
    """The expert plays a task over the wire; every id is the one the bare phone gives."""
    expert = tasks.make(TASK.template, TASK.seed)
    scripted, value = Scripted(), expert.start
    async with service.run() as client:
        created = await client.create_state(TASK)
        assert created.task is not None
        assert (created.task.goal, created.task.complexity) == (expert.goal, expert.complexity)
        state = created.state
        while not isinstance(action := expert.oracle(value), TERMINAL):
            answer = await client.step(state.state_id, action, purpose=COMMIT)
            value = phone.step(value, scripted.snap(action))
            assert answer.outcome is Outcome.CHANGED
            assert answer.state is not None
            state = answer.state
            payload = phone.digest(value)
            assert state.state_id == state_name("scripted", scripted.screen, "phone", payload)
        declared = await client.judge(TASK, state.state_id, finish_status="success")
        silent = await client.judge(TASK, state.state_id)
        assert (declared.verdict, declared.judge) == (Verdict.SUCCESS, "predicate")
        assert silent.verdict is Verdict.FAILURE
        assert phone.loads(await client.get_payload(state.state_id)) == value
        assert await client.get_html(state.state_id) == phone.html(value)
        stored = await open_blobs(str(service.blobs)).get(state.payload_digest)
        assert stored == phone.dumps(value)
    assert service.easel.drawn == []


async def test_pictures_are_drawn_on_request_and_once_per_look(service: Service) -> None:
    small = ImageRequest("bytes", scale=0.25, with_elements=True)
    async with service.run() as client:
        created = await client.create_state(TASK, image=small)
        assert created.image is not None
        assert (created.image.width_px, created.image.height_px) == (270, 600)
        assert created.image.data == (await client.get_html(created.state.state_id)).encode()
        assert created.image.digest == digest(created.image.data)
        same = await client.step(created.state.state_id, Home(), purpose=COMMIT, image=small)
        shot = await client.get_screenshot(created.state.state_id, small)
        assert shot.image == created.image
        if same.outcome is Outcome.UNCHANGED:
            assert same.image == created.image
        assert (
            created.elements == shot.elements == await client.get_elements(created.state.state_id)
        )
        by_digest = await client.get_screenshot(
            created.state.state_id, ImageRequest("digest", scale=0.25)
        )
        assert by_digest.image is not None
        assert (by_digest.image.digest, by_digest.image.data) == (created.image.digest, b"")
    looks = {request.html for request in service.easel.drawn}
    assert len(looks) == len(service.easel.drawn)
    assert not any(request.image.with_elements for request in service.easel.drawn)


async def test_a_page_that_cannot_be_drawn_is_an_outcome_and_a_dead_renderer_an_error(
    service: Service,
) -> None:
    async with service.run() as client:
        state = (await client.create_state(TASK)).state.state_id
        service.easel.fails = FailureReason.BLANK
        failed = await client.step(
            state, OpenApp("Clock"), purpose=COMMIT, image=ImageRequest("digest")
        )
        assert (failed.outcome, failed.reason) == (Outcome.FAILED, FailureReason.BLANK)
        assert (failed.state, failed.image) == (None, None)
        shot = await client.get_screenshot(state, ImageRequest())
        assert (shot.image, shot.reason) == (None, FailureReason.BLANK)
    service.renderer = "127.0.0.1:1"
    async with service.run() as client:
        # A bare channel: our own client would try again for a while.
        async with grpc.aio.insecure_channel(service.address) as channel:
            with pytest.raises(grpc.aio.AioRpcError) as caught:
                request = pb.GetScreenshotRequest(state_id=state)
                await rpc.WorldModelServiceStub(channel).GetScreenshot(request)
        assert caught.value.code() is grpc.StatusCode.UNAVAILABLE
        assert "the renderer at 127.0.0.1:1 cannot be reached" in caught.value.details()
        bare = await client.step(state, OpenApp("Clock"), purpose=COMMIT)
        assert bare.outcome is Outcome.CHANGED, "without a picture nobody needs the renderer"


@pytest.mark.parametrize(
    ("method", "request_", "code", "words"),
    [
        (
            "CreateState",
            pb.CreateStateRequest(task=pb.TaskRef(template="setings_turn_on", seed=1)),
            grpc.StatusCode.INVALID_ARGUMENT,
            "did you mean settings_turn_on",
        ),
        (
            "CreateState",
            pb.CreateStateRequest(),
            grpc.StatusCode.INVALID_ARGUMENT,
            "task is not set",
        ),
        (
            "CreateState",
            pb.CreateStateRequest(
                task=pb.TaskRef(template="settings_turn_on", seed=1), backend="scriptd"
            ),
            grpc.StatusCode.INVALID_ARGUMENT,
            "did you mean 'scripted'",
        ),
        (
            "Step",
            pb.StepRequest(state_id="0" * 64, action={"home": {}}, purpose="PURPOSE_COMMIT"),
            grpc.StatusCode.NOT_FOUND,
            "there is no state 0000",
        ),
        (
            "Step",
            pb.StepRequest(
                state_id="0" * 64,
                action={"tap": {"point": {"x": 1.5, "y": 0.5}}},
                purpose="PURPOSE_COMMIT",
            ),
            grpc.StatusCode.INVALID_ARGUMENT,
            "outside the screen",
        ),
        (
            "Step",
            pb.StepRequest(state_id="0" * 64, purpose="PURPOSE_COMMIT"),
            grpc.StatusCode.INVALID_ARGUMENT,
            "action is not set",
        ),
        (
            "GetState",
            pb.GetStateRequest(state_id="nope"),
            grpc.StatusCode.NOT_FOUND,
            "64 hex digits",
        ),
        (
            "GetScreenshot",
            pb.GetScreenshotRequest(state_id="0" * 64, image={"delivery": 2, "scale": 9}),
            grpc.StatusCode.INVALID_ARGUMENT,
            "scale must be in",
        ),
        (
            "Judge",
            pb.JudgeRequest(
                task=pb.TaskRef(template="settings_turn_on", seed=1), final_state_id="0" * 64
            ),
            grpc.StatusCode.NOT_FOUND,
            "there is no state 0000",
        ),
    ],
)
async def test_a_callers_mistake_is_one_sentence(
    service: Service, method: str, request_: Any, code: grpc.StatusCode, words: str
) -> None:
    async with service.run(), grpc.aio.insecure_channel(service.address) as channel:
        with pytest.raises(grpc.aio.AioRpcError) as caught:
            await getattr(rpc.WorldModelServiceStub(channel), method)(request_)
    assert caught.value.code() is code
    assert re.search(words, caught.value.details())
    assert "\n" not in caught.value.details()


async def test_a_batch_answers_every_key_and_one_mistake_spoils_nothing(service: Service) -> None:
    async with service.run(batch_in_flight=2) as client:
        state = (await client.create_state(TASK)).state.state_id
        calls = [StepCall(f"app-{app}", state, OpenApp(app)) for app in sorted(phone.APPS)]
        calls += [StepCall("lost", "0" * 64, Home()), StepCall("again", state, OpenApp("Clock"))]
        answers = {key: answer async for key, answer in client.batch_step(calls)}
        assert set(answers) == {call.key for call in calls}
        lost = answers.pop("lost")
        assert isinstance(lost, StateNotFound)
        assert lost.resource == "0" * 64
        for call in calls:
            if call.key == "lost":
                continue
            alone = await client.step(state, call.action, purpose=COMMIT)
            answer = answers[call.key]
            assert isinstance(answer, Transition)
            assert answer.state == alone.state


async def test_64_equal_steps_at_once_are_one_computation(service: Service) -> None:
    async with service.run() as client:
        state = (await client.create_state(TASK)).state.state_id
        action = OpenApp("Contacts")
        answers = await asyncio.gather(
            *(client.step(state, action, purpose=Purpose.IMAGINE) for _ in range(64))
        )
    assert [answer.provenance.cache_hit for answer in answers].count(False) == 1
    assert len({answer.state for answer in answers}) == 1


async def test_states_and_transitions_outlive_a_restart(service: Service) -> None:
    async with service.run() as client:
        start = (await client.create_state(TASK)).state
        end = (await client.step(start.state_id, OpenApp("Notes"), purpose=COMMIT)).state
        assert end is not None
    async with service.run() as client:
        assert await client.get_state(end.state_id) == end
        again = await client.step(start.state_id, OpenApp("Notes"), purpose=COMMIT)
        assert (again.state, again.provenance.cache_hit) == (end, True)
        onward = await client.step(end.state_id, Back(), purpose=COMMIT)
        assert (onward.outcome, onward.provenance.cache_hit) == (Outcome.CHANGED, False)


async def test_without_redis_calls_are_unavailable_until_it_is_back(service: Service) -> None:
    async with service.run() as client:
        state = (await client.create_state(TASK)).state.state_id
        await client.step(state, OpenApp("Clock"), purpose=COMMIT)
        service.redis.kill()
        known = await client.step(state, OpenApp("Clock"), purpose=COMMIT)
        assert known.provenance.cache_hit, "what is in memory needs no Redis"
        with pytest.raises(Unavailable, match="Redis does not answer"):
            await client.step(state, OpenApp("Notes"), purpose=COMMIT)
        service.redis.start()
        assert (await client.step(state, OpenApp("Notes"), purpose=COMMIT)).state is not None


async def test_backends_and_tasks_are_listed(service: Service) -> None:
    async with service.run() as client:
        (backend,) = await client.list_backends()
        assert (backend.name, backend.default, backend.deterministic) == ("scripted", True, True)
        listed = await client.list_tasks()
    assert {template.name for template in listed} == set(tasks.TEMPLATES)
    assert all(template.example_goal for template in listed)


async def test_looking_up_and_answering_is_judged_by_the_answer(service: Service) -> None:
    name = next(n for n in sorted(tasks.TEMPLATES) if tasks.make(n, 1).wants_answer)
    expert = tasks.make(name, 1)
    ref = TaskRef(template=name, seed=1)
    value = expert.start
    async with service.run() as client:
        state = (await client.create_state(ref)).state.state_id
        while not isinstance(action := expert.oracle(value), TERMINAL):
            answer = await client.step(state, action, purpose=COMMIT)
            assert answer.state is not None
            state, value = answer.state.state_id, phone.step(value, action)
        assert isinstance(action, Answer)
        right = await client.judge(ref, state, answer=action.text)
        wrong = await client.judge(ref, state, answer="no idea")
    assert (right.verdict, wrong.verdict) == (Verdict.SUCCESS, Verdict.FAILURE)
    assert "no idea" in wrong.reason


async def test_committed_states_ignore_imagination_over_the_wire(service: Service) -> None:
    """Invariant 1 once more, over real gRPC and Redis, with three states kept in memory."""
    loop = asyncio.get_running_loop()
    async with service.run(live_states=3) as client:

        async def both(walk: Walk) -> None:
            assert await play(client, walk, imagine=True, at_once=True) == list(walk.expected)
            assert await play(client, walk, imagine=False) == list(walk.expected)

        @settings(max_examples=12, deadline=None)
        @given(walk=walks(max_length=6))
        def check(walk: Walk) -> None:
            asyncio.run_coroutine_threadsafe(both(walk), loop).result()

        await asyncio.to_thread(check)


async def test_the_process_keeps_its_states_over_a_restart(service: Service) -> None:
    """The real entry point, stopped by SIGTERM and started again."""
    where = {"WMR1_REDIS_URL": service.redis.url, "WMR1_BLOBS": str(service.blobs)}
    async with service_process("worldmodel", **where) as (address, process):
        async with WorldModelClient(address) as client:
            state = (await client.create_state(TASK)).state
            with pytest.raises(UnknownTask):
                await client.create_state(TaskRef(template="nonsense", seed=0))
        process.send_signal(signal.SIGTERM)
        assert await process.wait() == 0
    async with (
        service_process("worldmodel", **where) as (address, _),
        WorldModelClient(address) as client,
    ):
        assert await client.get_state(state.state_id) == state
        answer = await client.step(state.state_id, Tap(Point(0.5, 0.5)), purpose=COMMIT)
        assert answer.state is not None
