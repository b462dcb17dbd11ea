"""The replay backend: the matching rule, recorded episodes played, files packed and read."""

import json
from io import BytesIO
from pathlib import Path
from typing import Any

import pytest
from blake3 import blake3
from PIL import Image as Pillow

from services.worldmodel.backends.replay import Replay
from services.worldmodel.replay.matching import matches
from services.worldmodel.replay.packing import from_trajectory, pack
from services.worldmodel.replay.recording import RecordedAction, Recording, read_recordings
from tests.worldmodel_fakes import Process
from wmkit.blobs import MemoryBlobs
from wmkit.domain.actions import (
    Action,
    Back,
    DoubleTap,
    Home,
    Key,
    LongPress,
    OpenApp,
    Scroll,
    Swipe,
    Tap,
    Type,
    Wait,
    to_dict,
)
from wmkit.domain.episode import EpisodeSpec, Job, Segment, Step, Trajectory
from wmkit.domain.errors import InvalidRequest, StateNotFound, UnknownTask
from wmkit.domain.screen import Point, Screen
from wmkit.domain.sources import FromPayload, FromScreenshot
from wmkit.domain.tasks import Judgement, Task, TaskRef, Verdict
from wmkit.domain.transition import ImageRequest, Outcome, Purpose

COMMIT = Purpose.COMMIT
TASK = TaskRef(template="replay", seed=0)
MIDDLE = Point(0.5, 0.5)


def up(length: float) -> Swipe:
    return Swipe(Point(0.5, 0.8), Point(0.55, 0.8 - length))


@pytest.mark.parametrize(
    ("done", "recorded", "same"),
    [
        (Tap(Point(0.6, 0.59)), Tap(MIDDLE), True),  # 0.1345 away
        (Tap(Point(0.6, 0.6)), Tap(MIDDLE), False),  # 0.1414 away
        (Tap(MIDDLE), LongPress(MIDDLE), False),
        (DoubleTap(MIDDLE), DoubleTap(MIDDLE), True),
        (LongPress(MIDDLE, 900), LongPress(MIDDLE), True),
        (up(0.5), up(0.1), True),
        (up(0.5), Swipe(Point(0.5, 0.2), Point(0.5, 0.8)), False),
        (Scroll("down"), up(0.3), True),
        (Scroll("up", MIDDLE), up(0.3), False),
        (Scroll("right"), Swipe(Point(0.9, 0.5), Point(0.1, 0.4)), True),
        (Swipe(MIDDLE, MIDDLE), Scroll("down"), False),
        (Type("Hello  World "), Type("hello world", MIDDLE), True),
        (Type("hello"), Type("hello", submit=True), False),
        (OpenApp("clock"), OpenApp("Clock"), True),
        (Key("BACK"), Back(), True),
        (Key("volume_up"), Key("volume_down"), False),
        (Home(), Back(), False),
        (Wait(100), Wait(), True),
        (Tap(MIDDLE), Wait(), False),
    ],
)
def test_an_action_is_the_recorded_one_or_not(done: Action, recorded: Action, same: bool) -> None:
    assert matches(done, RecordedAction(recorded)) is same


def test_a_box_decides_where_there_is_one() -> None:
    wide = RecordedAction(Tap(Point(0.1, 0.05)), (0.0, 0.0, 1.0, 0.1))
    assert matches(Tap(Point(0.95, 0.1)), wide)
    assert not matches(Tap(Point(0.1, 0.11)), wide)


def episode(name: str = "one", **more: Any) -> dict[str, Any]:
    return {
        "episode": name,
        "goal": "Open it.",
        "screens": [{"html": f"<p>{name} {i}</p>"} for i in range(3)],
        "actions": [
            {"action": "tap", "point": [0.5, 0.5], "box": [0.4, 0.4, 0.6, 0.6]},
            {"action": "back"},
        ],
        **more,
    }


def replay(*episodes: dict[str, Any]) -> Replay:
    return Replay(tuple(Recording.model_validate(e) for e in episodes or (episode(),)))


async def test_the_recorded_way_leads_on_and_any_other_stays() -> None:
    process = Process(replay(episode("one"), episode("two")))
    world = process.world
    created = await world.create_state(TaskRef(template="replay", seed=1))
    assert created.task is not None
    assert (created.task.complexity, created.task.step_limit) == (2, 20)
    start = created.state.state_id
    lost = await world.step(start, Back(), purpose=COMMIT)
    assert (lost.outcome, lost.state) == (Outcome.UNCHANGED, created.state)
    first = await world.step(start, Tap(Point(0.45, 0.55)), purpose=COMMIT)
    assert first.state is not None
    assert await world.html(first.state.state_id) == "<p>two 1</p>"
    last = await world.step(first.state.state_id, Key("back"), purpose=COMMIT)
    assert last.state is not None
    assert await world.html(last.state.state_id) == "<p>two 2</p>"
    beyond = await world.step(last.state.state_id, Back(), purpose=COMMIT)
    assert beyond.outcome is Outcome.UNCHANGED
    ref = TaskRef(template="replay", seed=1)
    verdicts = [
        (await world.judge(ref, state.state_id, finish_status="success")).verdict
        for state in (created.state, first.state, last.state)
    ]
    assert verdicts == [Verdict.FAILURE, Verdict.FAILURE, Verdict.SUCCESS]
    other = await world.judge(TASK, last.state.state_id, finish_status="success")
    assert other.verdict is Verdict.FAILURE


async def test_one_look_at_two_places_is_two_states_with_one_picture() -> None:
    same = [{"html": "<p>same</p>"}] * 3
    world = Process(replay(episode(screens=same))).world
    start = (await world.create_state(TASK)).state
    found = await world.step(start.state_id, Tap(MIDDLE), purpose=COMMIT)
    assert found.state is not None
    assert found.outcome is Outcome.CHANGED
    assert found.state.screen_id == start.screen_id


@pytest.mark.parametrize(
    ("more", "answer", "status", "verdict"),
    [
        ({}, None, None, Verdict.FAILURE),
        ({}, None, "infeasible", Verdict.FAILURE),
        ({"finish_status": "infeasible"}, None, "infeasible", Verdict.SUCCESS),
        ({"answer": "7 PM"}, "7  pm", None, Verdict.SUCCESS),
        ({"answer": "7 PM"}, "19:00", None, Verdict.UNSURE),
        ({"answer": "7 PM"}, None, "success", Verdict.FAILURE),
        ({"succeeded": False}, None, "success", Verdict.UNSURE),
        ({"succeeded": None}, None, "success", Verdict.UNSURE),
    ],
)
async def test_the_end_of_a_recording_is_judged_by_how_it_ended(
    more: dict[str, Any], answer: str | None, status: str | None, verdict: Verdict
) -> None:
    world = Process(replay(episode(**more))).world
    state = (await world.create_state(TASK)).state.state_id
    for action in (Tap(MIDDLE), Back()):
        found = (await world.step(state, action, purpose=COMMIT)).state
        assert found is not None
        state = found.state_id
    assert (await world.judge(TASK, state, answer=answer, finish_status=status)).verdict is verdict


async def test_tasks_and_recordings_that_are_not_there() -> None:
    world = Process(replay()).world
    assert [t.name for t in await world.list_tasks()] == ["replay"]
    with pytest.raises(UnknownTask, match="seeds are 0 to 0"):
        await world.create_state(TaskRef(template="replay", seed=1))
    with pytest.raises(UnknownTask, match="has 'replay'"):
        await world.create_state(TaskRef(template="count", seed=0))


async def test_other_recordings_do_not_take_over_a_state_of_before() -> None:
    process = Process(replay())
    state = (await process.world.create_state(TASK)).state
    later = Process(replay(episode(goal="Open that.")), shared=process)
    assert later.backends[0].revision != process.backends[0].revision
    back = await later.world.create_state(FromPayload(state.payload_digest, state.state_id))
    assert back.state.state_id == state.state_id
    changed = Process(replay(episode(screens=[{"html": "<p>new</p>"}] * 3)), shared=process)
    with pytest.raises(StateNotFound, match="cannot read"):
        await changed.world.step(state.state_id, Back(), purpose=COMMIT)


def picture(shade: int) -> bytes:
    out = BytesIO()
    Pillow.new("RGB", (30, 60), (shade, 0, 0)).save(out, "PNG")
    return out.getvalue()


async def test_files_are_packed_and_played_from_pixels(tmp_path: Path) -> None:
    for index in range(3):
        (tmp_path / f"{index}.png").write_bytes(picture(index))
    source, target = tmp_path / "raw.jsonl", tmp_path / "packed.jsonl"
    screens = [{"file": f"{i}.png"} for i in range(3)]
    source.write_text(json.dumps(episode(screens=screens)) + "\n\n", "utf-8")
    with pytest.raises(InvalidRequest, match=r"raw.jsonl:1: its screens are files; pack it first"):
        read_recordings(source)
    blobs = MemoryBlobs()
    assert await pack(source, target, blobs) == 1
    process = Process(Replay.open(str(target)))
    process.blobs._blobs.update(blobs._blobs)
    created = await process.world.create_state(TASK, image=ImageRequest())
    assert created.state.screen == Screen(30, 60)
    assert created.image is not None and created.image.data == picture(0)
    # A screenshot that is part of a recording is at its place in it.
    brought = await process.world.create_state(FromScreenshot(picture(1)))
    found = await process.world.step(
        brought.state.state_id, Back(), purpose=COMMIT, image=ImageRequest()
    )
    assert found.image is not None and found.image.digest == blake3(picture(2)).hexdigest()
    strange = await process.world.create_state(FromScreenshot(picture(9)))
    stays = await process.world.step(strange.state.state_id, Back(), purpose=COMMIT)
    assert stays.outcome is Outcome.UNCHANGED
    assert process.easel.drawn == []


def trajectory(digests: list[str], actions: list[Action | None]) -> Trajectory:
    empty = Segment(token_ids=(), mask=(), logprobs=(), versions=(), images=(), processor="p")
    steps = tuple(
        Step(
            index=i, state_id=str(i), screen_id=str(i), screenshot=digests[i], thought="", text="",
            action=None if action is None else to_dict(action), segment=empty,
        )
        for i, action in enumerate(actions)
    )  # fmt: skip
    job = Job(
        job_id="job-1", run_id="r", phase="p", task=TASK, group=0, member=0, seed=0,
        spec=EpisodeSpec(),
    )  # fmt: skip
    task = Task(ref=TASK, goal="Go.", complexity=1, step_limit=20, apps=(), main_app="", kind="k")
    return Trajectory(
        job=job, task=task, backend="b", revision="r", screen={}, steps=steps,
        final_state_id="e", final_screenshot=digests[-1], ending="finish",
        finish_status="success", payloads={}, wall_s=1.0,
        judgement=Judgement(verdict=Verdict.SUCCESS, reason="", judge="j"),
    )  # fmt: skip


async def test_a_played_run_is_packed_from_the_blob_store(tmp_path: Path) -> None:
    blobs = MemoryBlobs()
    digests = [await blobs.put(picture(i)) for i in range(3)]
    played = trajectory([digests[0], digests[0], digests[1], digests[2]], [None, Back(), Home()])
    recording = from_trajectory(played)
    assert [screen.picture for screen in recording.screens] == [digests[0], digests[1], digests[2]]
    assert [move.action for move in recording.moves] == [Back(), Home()]
    assert (recording.goal, recording.succeeded) == ("Go.", True)
    lines = [
        {"job_id": "job-1", "trajectory": await blobs.put(played.model_dump_json().encode())},
        {"job_id": "job-2", "trajectory": ""},
    ]
    source, target = tmp_path / "trajectories.jsonl", tmp_path / "packed.jsonl"
    source.write_text("".join(json.dumps(line) + "\n" for line in lines), "utf-8")
    assert await pack(source, target, blobs) == 1
    (packed,) = read_recordings(target)
    assert [page.screen for page in packed.pages] == [Screen(30, 60)] * 3


@pytest.mark.parametrize(
    ("lines", "words"),
    [
        ([], "holds no recordings"),
        (["{}"], r"r.jsonl:1: episode: Field required"),
        ([json.dumps(episode(screens=[{"html": "<p>"}]))], "2 actions need 3 screens, not 1"),
        ([json.dumps(episode(screens=[{}] * 3))], "exactly one of html, picture, file"),
        ([json.dumps(episode(actions=[{"action": "fly"}] * 2))], "unknown action 'fly'"),
        ([json.dumps(episode(actions=[{"action": "finish"}] * 2))], "finish ends an episode"),
        (
            [json.dumps(episode(actions=[{"action": "back", "box": [1, 0, 0, 1]}] * 2))],
            "left, top, right, bottom in",
        ),
        ([json.dumps(episode()), json.dumps(episode())], "r.jsonl:2: a second episode 'one'"),
    ],
)
def test_a_file_that_is_no_recording_names_its_line(
    tmp_path: Path, lines: list[str], words: str
) -> None:
    path = tmp_path / "r.jsonl"
    path.write_text("\n".join(lines), "utf-8")
    with pytest.raises(InvalidRequest, match=words):
        read_recordings(path)


async def test_a_missing_picture_names_its_file_and_leaves_no_half_file(tmp_path: Path) -> None:
    source, target = tmp_path / "raw.jsonl", tmp_path / "packed.jsonl"
    source.write_text(json.dumps(episode(screens=[{"file": "no.png"}] * 3)), "utf-8")
    with pytest.raises(InvalidRequest, match=r"no.png cannot be read"):
        await pack(source, target, MemoryBlobs())
    assert list(tmp_path.iterdir()) == [source]


def test_without_a_file_the_setting_is_named() -> None:
    with pytest.raises(InvalidRequest, match="WMR1_REPLAY"):
        Replay.open("")
