"""What every world model behind the service promises: one suite, run over all of them.

A new backend is one line in `BACKENDS`. Learned ones answer from a recorded server, and from a
tiny checkpoint in this process.
"""

import asyncio
import base64
import io
from collections.abc import AsyncIterator, Callable
from dataclasses import dataclass
from typing import Any

import pytest
from PIL import Image as Pillow

from services.worldmodel.backends.base import Seeing
from services.worldmodel.backends.code2world import Code2World
from services.worldmodel.backends.degraded import Degraded, read_rates
from services.worldmodel.backends.gworld import GWorld
from services.worldmodel.backends.replay import Replay
from services.worldmodel.backends.scripted import Scripted
from services.worldmodel.engine import Endpoint, Engine, Limits
from services.worldmodel.engine.decoding import Decoder
from services.worldmodel.engine.in_process import InProcess
from services.worldmodel.judge import ModelJudge
from services.worldmodel.replay.recording import RecordedScreen, Recording
from services.worldmodel.world import World
from tests import speaking_checkpoints
from tests.openai_server import Answer, Fault, OpenAiServer, openai_server
from tests.worldmodel_fakes import Easel, Process
from wmkit.domain.actions import Action, Finish, OpenApp, Scroll, Tap, Type
from wmkit.domain.errors import EngineDown, InvalidAction, InvalidRequest, UnknownTask
from wmkit.domain.screen import Point
from wmkit.domain.sources import FromScreenshot
from wmkit.domain.tasks import TaskRef, Verdict
from wmkit.domain.transition import FailureReason, Image, ImageRequest, Outcome, Purpose, Rendering

TASK = TaskRef(template="settings_turn_on", seed=1)
COMMIT, IMAGINE = Purpose.COMMIT, Purpose.IMAGINE
ACTIONS: list[Action] = [
    Tap(Point(0.123, 0.456)),
    Scroll("down"),
    Type("milk"),
    OpenApp("Clock"),
]


def page(words: str) -> str:
    return f'<!DOCTYPE html><html><body><div id="render-target">{words}</div></body></html>'


def engine(server: OpenAiServer) -> Engine:
    return Engine(Endpoint(server.url, "m"), Limits(attempts=1))


@dataclass(frozen=True)
class Around:
    """What a backend may need."""

    server: OpenAiServer
    decoder: Decoder | None = None

    def in_process(self) -> InProcess:
        assert self.decoder is not None
        return InProcess(self.decoder)


def recorded() -> Replay:
    """Three screens of which the recorded tap and the scroll lead on."""
    moves: list[dict[str, Any]] = [
        {"action": "tap", "point": [0.123, 0.456]},
        {"action": "scroll", "reveal": "down"},
    ]
    screens = tuple(RecordedScreen(html=page(word)) for word in "abc")
    return Replay((Recording(episode="e", goal="Go.", screens=screens, actions=tuple(moves)),))


BACKENDS: dict[str, Callable[[Around], Any]] = {
    "scripted": lambda _: Scripted(),
    "degraded": lambda _: Degraded(read_rates("stale=0.2,dropped=0.2,renamed=0.2,ignored=0.1")),
    "replay": lambda _: recorded(),
    "code2world": lambda around: Code2World(engine(around.server)),
    "gworld": lambda around: GWorld(engine(around.server)),
    "code2world in process": lambda around: Code2World(around.in_process()),
    "gworld in process": lambda around: GWorld(around.in_process()),
}
LEARNED = ["code2world", "gworld"]


class Painter(Easel):
    """An easel whose pictures are real PNGs, small whatever the page's size."""

    async def render(
        self, html: str, width_px: int, height_px: int, image: ImageRequest
    ) -> Rendering:
        drawn = await super().render(html, width_px, height_px, image)
        if drawn.image is None:
            return drawn
        out = io.BytesIO()
        Pillow.new("RGB", (90, 200), (len(html) % 256, 99, 99)).save(out, "PNG")
        data = out.getvalue()
        name = await self.blobs.put(data)
        return Rendering(Image(name, 90, 200, "png", data), revision=self.revision)


@pytest.fixture
async def server() -> AsyncIterator[OpenAiServer]:
    async with openai_server(Answer(page("next"), tokens=5)) as running:
        yield running


@pytest.fixture(scope="module")
def decoder(tmp_path_factory: pytest.TempPathFactory) -> Decoder:
    head, _, tail = page("next").partition("next")
    folder = tmp_path_factory.mktemp("m") / "tiny"
    return Decoder(speaking_checkpoints.make(folder, head, "next", tail))


@pytest.fixture(params=BACKENDS)
async def backend(
    request: pytest.FixtureRequest, server: OpenAiServer, decoder: Decoder
) -> AsyncIterator[Any]:
    made = BACKENDS[request.param](Around(server, decoder))
    yield made
    if isinstance(made, Seeing):
        await made.close()


@pytest.fixture(params=LEARNED)
def learned(request: pytest.FixtureRequest, server: OpenAiServer) -> Any:
    return BACKENDS[request.param](Around(server))


def task_of(backend: Any) -> TaskRef:
    return TaskRef(template="replay", seed=0) if backend.name == "replay" else TASK


def process_of(backend: Any, shared: Process | None = None) -> Process:
    process = Process(backend, shared=shared)
    process.easel = Painter(process.blobs)
    process.pictures._renderer = process.easel
    return process


async def start(process: Process) -> str:
    ref = task_of(process.registry.default)
    return (await process.world.create_state(ref)).state.state_id


def test_it_says_who_it_is(backend: Any) -> None:
    assert backend.name in BACKENDS
    assert backend.revision.startswith(f"{backend.name}-")
    assert (backend.screen.width_px, backend.screen.height_px) == (1080, 2400)


def test_a_value_survives_its_bytes(backend: Any) -> None:
    task, value = backend.start(task_of(backend))
    assert task.ref == task_of(backend) and task.goal
    again = backend.loads(backend.dumps(value))
    assert again == value
    assert backend.dumps(again) == backend.dumps(value)
    assert backend.digest(again) == backend.digest(value)
    assert backend.screen_digest(again) == backend.screen_digest(value)
    assert backend.html(again) == backend.html(value)
    assert "<!doctype html>" in backend.html(value).lower()
    assert 'id="render-target"' in backend.html(value)


@pytest.mark.parametrize("data", [b"", b"\xff\xfe", b"{}", b"[]", b"null"])
def test_bytes_that_are_no_state_are_a_value_error(backend: Any, data: bytes) -> None:
    with pytest.raises(ValueError):
        backend.loads(data)


def test_a_task_that_does_not_exist(backend: Any) -> None:
    with pytest.raises(UnknownTask):
        backend.start(TaskRef(template="no_such_task", seed=0))


@pytest.mark.parametrize("action", ACTIONS)
def test_the_grid_keeps_what_lies_on_it(backend: Any, action: Action) -> None:
    snapped = backend.snap(action)
    assert backend.snap(snapped) == snapped
    assert type(snapped) is type(action)
    if isinstance(action, Tap):
        assert snapped.point.x == pytest.approx(action.point.x, abs=1 / 900)
        assert snapped.point.y == pytest.approx(action.point.y, abs=1 / 900)


@pytest.mark.parametrize("action", ACTIONS)
async def test_an_answer_is_computed_once_and_is_the_answer_from_then_on(
    backend: Any, action: Action
) -> None:
    process = process_of(backend)
    state = await start(process)
    first = await process.world.step(state, action, purpose=COMMIT, seed=3)
    again = await process.world.step(state, action, purpose=IMAGINE, seed=3)
    restarted = process_of(backend, shared=process)
    later = await restarted.world.step(state, action, purpose=COMMIT, seed=3)
    assert first.state is not None
    assert first.state == again.state == later.state
    assert [t.provenance.cache_hit for t in (first, again, later)] == [False, True, True]
    assert (first.outcome is Outcome.UNCHANGED) == (first.state.state_id == state)
    assert first.provenance.revision == backend.revision


async def test_what_ends_an_episode_is_no_step(backend: Any) -> None:
    process = process_of(backend)
    with pytest.raises(InvalidAction):
        await process.world.step(await start(process), Finish(), purpose=COMMIT)


async def test_equal_steps_at_once_are_asked_once(learned: Any, server: OpenAiServer) -> None:
    gate = asyncio.Event()
    server.play(Answer(page("next"), gate=gate))
    process = process_of(learned)
    state = await start(process)
    steps = [
        asyncio.create_task(process.world.step(state, ACTIONS[0], purpose=COMMIT))
        for _ in range(16)
    ]
    await server.until(lambda s: s.open == 1)
    gate.set()
    found = await asyncio.gather(*steps)
    assert len({step.state.state_id for step in found if step.state}) == 1
    assert len(server.requests) == 1


async def test_the_last_caller_that_leaves_frees_the_engine(
    learned: Any, server: OpenAiServer
) -> None:
    server.play(Answer(page("next"), gate=asyncio.Event()))
    process = process_of(learned)
    step = asyncio.create_task(process.world.step(await start(process), ACTIONS[0], purpose=COMMIT))
    await server.until(lambda s: s.open == 1)
    step.cancel()
    await server.until(lambda s: s.open == 0)
    assert server.abandoned == 1


@pytest.mark.parametrize(
    ("answer", "reason"),
    [
        (Answer("<!DOCTYPE html><html><p>Inbox", "length", 8192), FailureReason.TRUNCATED),
        (Answer(page("whole, then chatter") + "bla" * 99, "length"), FailureReason.TRUNCATED),
        (Answer("I'm sorry, but I can't predict that."), FailureReason.NO_DOCUMENT),
        (Answer(""), FailureReason.NO_DOCUMENT),
        (Answer(page("x"), "content_filter"), FailureReason.NO_DOCUMENT),
        (Answer(page("x" * 2_000_001)), FailureReason.OVERSIZED),
    ],
)
async def test_an_answer_that_is_no_screen_is_a_failed_step(
    learned: Any, server: OpenAiServer, answer: Answer, reason: FailureReason
) -> None:
    server.play(answer)
    process = process_of(learned)
    state = await start(process)
    for _ in range(2):  # Content faults are remembered, not asked for again.
        step = await process.world.step(state, ACTIONS[0], purpose=COMMIT)
        assert (step.outcome, step.state, step.reason) == (Outcome.FAILED, None, reason)
    assert step.provenance.tokens == answer.tokens
    assert step.provenance.finish_reason == answer.finish_reason
    assert len(server.requests) == 1


async def test_an_unclosed_document_is_a_screen_with_a_warning(
    learned: Any, server: OpenAiServer
) -> None:
    server.play(Answer("<!DOCTYPE html><html><p>Inbox"))
    step = await (process := process_of(learned)).world.step(
        await start(process), ACTIONS[0], purpose=COMMIT
    )
    assert step.outcome is Outcome.CHANGED
    assert step.provenance.warnings == ("UNCLOSED: the document has no </html>",)


async def test_an_engine_that_is_down_is_an_error_and_never_remembered(
    learned: Any, server: OpenAiServer
) -> None:
    server.play(Fault(500), Answer(page("next")))
    process = process_of(learned)
    state = await start(process)
    with pytest.raises(EngineDown):
        await process.world.step(state, ACTIONS[0], purpose=COMMIT)
    step = await process.world.step(state, ACTIONS[0], purpose=COMMIT)
    assert step.outcome is Outcome.CHANGED


async def test_a_screen_that_cannot_be_shown_to_the_model_fails_the_step_for_now(
    learned: Any, server: OpenAiServer
) -> None:
    process = process_of(learned)
    state = await start(process)
    process.easel.fails = FailureReason.RENDER_TIMEOUT
    step = await process.world.step(state, ACTIONS[0], purpose=COMMIT)
    assert (step.outcome, step.reason) == (Outcome.FAILED, FailureReason.RENDER_TIMEOUT)
    assert server.requests == []
    process.easel.fails = None
    step = await process.world.step(state, ACTIONS[0], purpose=COMMIT)
    assert step.outcome is Outcome.CHANGED


async def test_seed_and_goal_count_exactly_where_the_model_reads_them(
    learned: Any, server: OpenAiServer
) -> None:
    assert isinstance(learned, Seeing)
    process = process_of(learned)
    state = await start(process)
    for seed, goal in ((1, "a"), (1, "a"), (2, "a"), (1, "b")):
        await process.world.step(state, ACTIONS[0], purpose=COMMIT, seed=seed, goal=goal)
    sampled, greedy = [1, 2, 1], [42]
    assert [sent["seed"] for sent in server.requests] == (
        sampled if learned.name == "code2world" else greedy
    )
    decoding = [(sent.get("temperature"), sent["max_tokens"]) for sent in server.requests]
    assert set(decoding) == {(None, 8192) if learned.name == "code2world" else (0.0, 15000)}


async def test_an_episode_from_a_screenshot_and_a_goal_to_a_verdict() -> None:
    """The paper's own way: no task, no DOM; a model makes the world, another one judges it."""
    off, on = page("Wi-Fi Off"), page("Wi-Fi On")
    goal = "Turn on Wi-Fi."
    out = io.BytesIO()
    Pillow.new("RGB", (1080, 2400), "#224466").save(out, "PNG", compress_level=1)
    async with openai_server(Answer(off), Answer(on)) as maker, openai_server() as judging:
        judging.play(Answer('{"reason": "the row says On", "verdict": "success"}'))
        backend = Code2World(engine(maker))
        process = process_of(backend)
        judge = ModelJudge(Engine(Endpoint(judging.url, "j")), votes=3, worlds=[backend.endpoint])
        world = World(
            process.registry, process.states, process.transitions, process.pictures,
            process.blobs, judge,
        )  # fmt: skip
        created = await world.create_state(FromScreenshot(out.getvalue()))
        first = created.state.state_id
        actions: list[Action] = [OpenApp("Settings"), Tap(Point(0.9, 0.2))]
        state = first
        for action in actions:
            step = await world.step(state, action, purpose=COMMIT, goal=goal)
            assert step.outcome is Outcome.CHANGED and step.state is not None
            state = step.state.state_id
        assert await world.html(state) == on
        found = await world.judge(
            None, state, goal=goal, first_state_id=first, actions=actions, finish_status="success"
        )
        assert (found.verdict, found.judge) == (Verdict.SUCCESS, "model:j")
        # The first step works from the caller's own pixels: the corner has no cue.
        shown = maker.requests[0]["messages"][1]["content"]
        assert pixel(shown[0], (5, 5)) == (0x22, 0x44, 0x66)
        assert goal in shown[1]["text"]
        # The judge is shown them too, then what was drawn last.
        evidence = judging.requests[0]["messages"][1]["content"]
        assert pixel(evidence[1], (5, 5)) == (0x22, 0x44, 0x66)
        assert pixel(evidence[3], (5, 5)) == (len(on) % 256, 99, 99)
        assert "1. open_app(app='Settings')\n2. tap(" in evidence[4]["text"]


async def test_an_episode_of_a_task_in_a_learned_world_is_judged_by_the_model(
    learned: Any,
) -> None:
    async with openai_server(Answer('{"reason": "off", "verdict": "failure"}')) as judging:
        process = process_of(learned)
        judge = ModelJudge(Engine(Endpoint(judging.url, "j")), votes=1)
        world = World(
            process.registry, process.states, process.transitions, process.pictures,
            process.blobs, judge,
        )  # fmt: skip
        created = await world.create_state(TASK)
        found = await world.judge(TASK, created.state.state_id)
        assert found.verdict is Verdict.FAILURE
        words = judging.requests[0]["messages"][1]["content"][-1]["text"]
        assert created.task is not None and created.task.goal in words
        assert "(not known)" in words
        with pytest.raises(InvalidRequest, match="WMR1_JUDGE_URL"):
            await process.world.judge(TASK, created.state.state_id)


def pixel(part: Any, at: tuple[int, int]) -> Any:
    data = base64.b64decode(part["image_url"]["url"].partition(",")[2])
    return Pillow.open(io.BytesIO(data)).convert("RGB").getpixel(at)
