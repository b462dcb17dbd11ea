"""Domain values survive the wire; what is wrong on the wire is named by its path."""

import math
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from wmr1.common.v1 import common_pb2 as common
from wmr1.policy.v1 import policy_pb2 as policy
from wmr1.renderer.v1 import renderer_pb2 as renderer
from wmr1.worldmodel.v1 import worldmodel_pb2 as worldmodel

from wmkit import convert
from wmkit.domain import actions as a
from wmkit.domain.errors import InvalidAction, InvalidRequest
from wmkit.domain.generation import (
    EncodedImage,
    FinishReason,
    Generation,
    Picture,
    Sampling,
    Text,
    Tokens,
    Turn,
)
from wmkit.domain.runs import Run, RunEvent, RunStatus
from wmkit.domain.screen import Point, Screen
from wmkit.domain.sources import FromHtml, FromPayload, FromScreenshot, StateSource
from wmkit.domain.tasks import Judgement, Task, TaskRef, TaskTemplate, Verdict
from wmkit.domain.transition import (
    Backend,
    Element,
    FailureReason,
    Image,
    ImageRequest,
    Outcome,
    Provenance,
    Purpose,
    Rendering,
    State,
    Transition,
)
from wmkit.ports import Created

unit = st.floats(0, 1)
points = st.builds(Point, unit, unit)
maybe_point = st.none() | points
ms = st.none() | st.integers(0, 2**31 - 1)
texts = st.text(st.characters(exclude_categories=["Cs"]))
of_the_world = st.one_of(
    st.builds(a.Tap, points),
    st.builds(a.DoubleTap, points),
    st.builds(a.LongPress, points, ms),
    st.builds(a.Swipe, points, points, ms),
    st.builds(a.Scroll, st.sampled_from(["up", "down", "left", "right"]), maybe_point),
    st.builds(a.Type, texts, maybe_point, st.booleans(), st.booleans()),
    st.builds(a.Key, texts),
    st.builds(a.Enter),
    st.builds(a.Back),
    st.builds(a.Home),
    st.builds(a.Recents),
    st.builds(a.OpenApp, texts),
    st.builds(a.Wait, ms),
)


@given(of_the_world)
def test_every_action_survives_the_wire(action: a.Action) -> None:
    message = common.Action.FromString(convert.action_to_pb(action).SerializeToString())
    assert convert.action_from_pb(message) == action


def test_the_wire_knows_every_action_but_the_two_that_end_an_episode() -> None:
    wire = {field.name for field in common.Action.DESCRIPTOR.fields}
    assert wire == set(a.ACTIONS) - {"answer", "finish"}


@pytest.mark.parametrize("action", [a.Finish("success"), a.Answer("42")])
def test_ending_an_episode_is_no_action_of_the_world(action: a.Action) -> None:
    with pytest.raises(InvalidAction, match=action.name):
        convert.action_to_pb(action)


def test_half_an_emoji_is_an_error_of_the_action_and_not_of_the_program() -> None:
    with pytest.raises(InvalidAction) as caught:
        convert.action_to_pb(a.Type("\ud83d"))
    assert caught.value.field == "action.type.text"


P = common.Point


@pytest.mark.parametrize(
    ("message", "field"),
    [
        (common.Action(), "action"),
        (common.Action.FromString(b"\xf2\x06\x00"), "action"),  # field 110: a newer client's
        (common.Action(tap=common.TapAction()), "action.tap.point"),
        (common.Action(tap=common.TapAction(point=P(x=1.5))), "action.tap.point.x"),
        (common.Action(tap=common.TapAction(point=P(y=-0.1))), "action.tap.point.y"),
        (common.Action(tap=common.TapAction(point=P(x=math.nan))), "action.tap.point.x"),
        (common.Action(swipe=common.SwipeAction(point=P())), "action.swipe.to"),
        (common.Action(scroll=common.ScrollAction()), "action.scroll.reveal"),
        (common.Action(scroll=common.ScrollAction(reveal=9)), "action.scroll.reveal"),  # type: ignore[arg-type]
        (common.Action(wait=common.WaitAction(ms=-1)), "action.wait.ms"),
        (
            common.Action(long_press=common.LongPressAction(point=P(), duration_ms=-5)),
            "action.long_press.duration_ms",
        ),
    ],
)
def test_a_bad_action_is_named_by_its_path(message: common.Action, field: str) -> None:
    with pytest.raises(InvalidAction) as caught:
        convert.action_from_pb(message)
    assert caught.value.field == field


def test_an_argument_that_is_zero_is_not_one_that_is_missing() -> None:
    message = common.Action(tap=common.TapAction(point=P(x=0, y=0)))
    assert convert.action_from_pb(message) == a.Tap(Point(0, 0))
    assert convert.action_from_pb(common.Action(wait=common.WaitAction(ms=0))) == a.Wait(0)
    assert convert.action_from_pb(common.Action(wait=common.WaitAction())) == a.Wait(None)


SCREEN = Screen(2400, 1080, 2.0)
STATE = State("s1", "look", "scripted", "r1", SCREEN, "p1")
IMAGE = Image("d1", 162, 360, "jpeg", b"\xff\xd8")
ELEMENTS = (
    Element("e1", "switch", "Wi-Fi", 1.5, 2, 3, 4, clickable=True, checked=False),
    Element("e2", "text", "On", 0, 0, 1, 1, checked=None, focused=True, enabled=False),
)
TASK = Task(
    ref=TaskRef(template="clock.alarm", seed=-(2**63)),
    goal="Set an alarm",
    complexity=4,
    step_limit=20,
    apps=("clock", "notes"),
    main_app="clock",
    kind="edit",
    wants_answer=True,
)
PROVENANCE = Provenance("scripted", "r1", True, 12, "stop", 0.25, 17.5, ("UNCLOSED: x", "w"))


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("screen", SCREEN),
        ("state", STATE),
        ("image", IMAGE),
        ("element", ELEMENTS[0]),
        ("element", ELEMENTS[1]),
        ("image_request", ImageRequest("digest", "jpeg", 0.15, 80, True)),
        ("image", Image("d2", 162, 360, "webp", b"RIFF")),
        ("image_request", ImageRequest("bytes", "webp", 0.3, 70)),
        ("image_request", None),
        ("task_ref", TASK.ref),
        ("task", TASK),
        ("template", TaskTemplate(name="t", main_app="m", apps=("m",), kind="k", example_goal="g")),
        ("created", Created(STATE, TASK, IMAGE, ELEMENTS)),
        ("created", Created(STATE, None, None)),
        ("transition", Transition(Outcome.CHANGED, PROVENANCE, STATE, None, IMAGE, ELEMENTS)),
        ("transition", Transition(Outcome.FAILED, PROVENANCE, None, FailureReason.BLANK)),
        ("screenshot", Rendering(IMAGE, None, ELEMENTS, ("a script was removed",))),
        ("screenshot", Rendering(None, FailureReason.RENDER_TIMEOUT)),
        ("rendering", Rendering(IMAGE, None, ELEMENTS, ("w",), True, 21.0, "chromium 156")),
        ("rendering", Rendering(None, FailureReason.OVERSIZED)),
        ("action_log", (a.Tap(Point(0.25, 0.75)), a.Back(), a.Type("x", submit=True))),
        ("action_log", ()),
        ("judgement", Judgement(verdict=Verdict.UNSURE, reason="two clocks", judge="vlm")),
        ("backend", Backend("scripted", "r1", True, False)),
        ("run", Run("r", RunStatus.FAILED, "runs/r", 3, "out of memory", "{}")),
        ("event", RunEvent(RunStatus.RUNNING, "train", 2, 5, 64, {"loss": 0.5}, "m")),
        (
            "generation",
            Generation(
                (1, 2),
                (3, 4),
                (-0.5, -0.25),
                "hi",
                FinishReason.STOP,
                "run-1",
                7,
                (EncodedImage("d1", 56, 112, (1, 4, 8)),),
                "proc",
                "</call_wm>",
            ),
        ),
    ],
)
def test_values_survive_the_wire(name: str, value: Any) -> None:
    message = getattr(convert, f"{name}_to_pb")(value)
    again = type(message).FromString(message.SerializeToString())
    assert getattr(convert, f"{name}_from_pb")(again) == value


@pytest.mark.parametrize("purpose", Purpose)
def test_purposes_survive(purpose: Purpose) -> None:
    assert convert.purpose_from_pb(convert.purpose_to_pb(purpose)) is purpose


@pytest.mark.parametrize("number", [0, 77])
def test_an_unset_or_unknown_enum_lists_what_is_known(number: int) -> None:
    with pytest.raises(InvalidRequest, match="PURPOSE_COMMIT, PURPOSE_IMAGINE") as caught:
        convert.purpose_from_pb(number)
    assert caught.value.field == "purpose"


def test_unset_numbers_of_a_picture_take_the_documented_defaults() -> None:
    request = convert.image_request_from_pb(common.ImageRequest(delivery=common.DELIVERY_BYTES))
    assert request == ImageRequest("bytes", "png", 1.0, 90, False)


@pytest.mark.parametrize(
    ("wrong", "field"),
    [
        ({"scale": 4.1}, "image.scale"),
        ({"scale": -1.0}, "image.scale"),
        ({"scale": math.nan}, "image.scale"),
        ({"quality": 101}, "image.quality"),
        ({"format": 9}, "image.format"),
        ({"delivery": 9}, "image.delivery"),
    ],
)
def test_a_picture_that_cannot_be_asked_for_is_refused(wrong: dict[str, Any], field: str) -> None:
    message = common.ImageRequest(**{"delivery": common.DELIVERY_BYTES, **wrong})
    with pytest.raises(InvalidRequest) as caught:
        convert.image_request_from_pb(message)
    assert caught.value.field == field


def test_answers_without_an_outcome_are_refused() -> None:
    with pytest.raises(InvalidRequest, match="outcome"):
        convert.transition_from_pb(worldmodel.StepResponse())
    with pytest.raises(InvalidRequest, match="outcome"):
        convert.rendering_from_pb(renderer.RenderResponse())
    with pytest.raises(InvalidRequest, match="reason"):
        convert.transition_from_pb(worldmodel.StepResponse(outcome=worldmodel.OUTCOME_FAILED))


TURNS = (
    Turn("system", (Text("You use a phone."),)),
    Turn("user", (Picture("d" * 64), Text(""))),
    Turn("assistant", (Tokens((1, 2, 151645)),)),
)


def test_a_generate_call_survives_the_wire() -> None:
    call = convert.GenerateCall(
        TURNS, Sampling(0.7, 64, ("</call_wm>",), -(2**63)), "run-1", 3, "req-1"
    )
    message = convert.generate_call_to_pb(call)
    again = policy.GenerateRequest.FromString(message.SerializeToString())
    assert convert.generate_call_from_pb(again) == call


def test_a_picture_sent_as_bytes_arrives_under_its_digest() -> None:
    from wmkit.blobs import digest

    name = digest(b"png")
    call = convert.GenerateCall(
        (Turn("user", (Picture(name),)),), Sampling(), images={name: b"png"}
    )
    message = convert.generate_call_to_pb(call)
    assert message.turns[0].parts[0].image.data == b"png"
    back = convert.generate_call_from_pb(message)
    assert back.turns == call.turns
    assert back.images == {name: b"png"}


def _call(**changes: Any) -> policy.GenerateRequest:
    fields: dict[str, Any] = {
        "turns": [policy.Turn(role=policy.ROLE_USER, parts=[policy.Part(text="hi")])],
        "sampling": policy.Sampling(max_new_tokens=8),
    }
    return policy.GenerateRequest(**{**fields, **changes})


@pytest.mark.parametrize(
    ("message", "field"),
    [
        (_call(turns=[]), "turns"),
        (_call(turns=[policy.Turn(parts=[policy.Part(text="hi")])]), "turns[0].role"),
        (
            _call(turns=[policy.Turn(role=policy.ROLE_USER, parts=[policy.Part()])]),
            "turns[0].parts[0]",
        ),
        (
            _call(
                turns=[
                    policy.Turn(role=policy.ROLE_USER, parts=[policy.Part(image=policy.ImageRef())])
                ]
            ),
            "turns[0].parts[0].image",
        ),
        (_call(sampling=policy.Sampling()), "sampling.max_new_tokens"),
        (
            _call(sampling=policy.Sampling(temperature=-1, max_new_tokens=1)),
            "sampling.temperature",
        ),
        (
            _call(sampling=policy.Sampling(temperature=math.inf, max_new_tokens=1)),
            "sampling.temperature",
        ),
        (_call(sampling=policy.Sampling(max_new_tokens=1, stop=[""])), "sampling.stop"),
    ],
)
def test_a_bad_generate_call_is_named_by_its_path(
    message: policy.GenerateRequest, field: str
) -> None:
    with pytest.raises(InvalidRequest) as caught:
        convert.generate_call_from_pb(message)
    assert caught.value.field == field


def test_tokens_without_their_log_probabilities_are_refused() -> None:
    message = policy.GenerateResponse(
        token_ids=[1, 2], logprobs=[-0.5], finish_reason=policy.FINISH_REASON_END
    )
    with pytest.raises(InvalidRequest, match="2 tokens came with 1"):
        convert.generation_from_pb(message)


def test_a_seed_beyond_64_bits_is_the_callers_mistake() -> None:
    with pytest.raises(InvalidRequest, match=r"clock\.alarm"):
        convert.task_ref_to_pb(TaskRef(template="clock.alarm", seed=2**63))


@pytest.mark.parametrize(
    "source",
    [
        TaskRef(template="t", seed=-1),
        FromHtml("<p>ü</p>", Screen(720, 1280, 2.0)),
        FromScreenshot(b"\x89PNG"),
        FromPayload("ab", "cd"),
    ],
)
def test_what_a_state_is_made_of_survives_the_wire(source: StateSource) -> None:
    message = convert.source_to_pb(source)
    sent = worldmodel.CreateStateRequest.FromString(message.SerializeToString())
    assert convert.source_from_pb(sent) == source


def test_html_without_a_screen_is_a_phone_s() -> None:
    message = worldmodel.CreateStateRequest(html=worldmodel.HtmlSource(html="<p>"))
    assert convert.source_from_pb(message) == FromHtml("<p>", Screen(1080, 2400))


@pytest.mark.parametrize(
    ("message", "field"),
    [
        (worldmodel.CreateStateRequest(), "task"),
        (worldmodel.CreateStateRequest(html={"html": "<p>", "screen": {}}), "html.screen"),
    ],
)
def test_a_source_that_is_none_is_named(message: Any, field: str) -> None:
    with pytest.raises(InvalidRequest) as caught:
        convert.source_from_pb(message)
    assert caught.value.field == field
