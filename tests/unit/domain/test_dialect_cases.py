"""What agents write and what it means, one case a line in `tests/cases/actions.jsonl`."""

import json
from pathlib import Path
from typing import Any

import pytest

from wmkit.domain import dialects
from wmkit.domain.actions import OpenApp, Swipe, Tap, Type, to_dict
from wmkit.domain.dialects.gworld import GWorld
from wmkit.domain.errors import InvalidRequest
from wmkit.domain.screen import Point, View

CASES = [
    json.loads(line)
    for line in (Path(__file__).parents[2] / "cases" / "actions.jsonl").read_text().splitlines()
]
SCALES = {"qwen3_mobile_use": 999, "gui_odyssey": 1000, "gworld": 1000}
SCREEN_PIXELS = ("android_control", "android_world")
DEFAULTS: dict[str, Any] = {"submit": False, "clear": False}


def grid(case: dict[str, Any]) -> tuple[int, int]:
    if case["dialect"] in SCALES:
        return SCALES[case["dialect"]], SCALES[case["dialect"]]
    size = "screen_px" if case["dialect"] in SCREEN_PIXELS else "model_px"
    return case[size][0], case[size][1]


@pytest.mark.parametrize("case", CASES, ids=lambda case: f"{case['dialect']}:{case['text'][:60]}")
def test_every_case_means_what_it_says(case: dict[str, Any]) -> None:
    view = View(tuple(case["screen_px"]), tuple(case["model_px"]))
    result = dialects.get(case["dialect"]).parse(case["text"], view)
    expect = case["expect"]
    if "error" in expect:
        assert isinstance(result, dialects.ParseError), result
        assert expect["error"] in result.reason
        return
    assert isinstance(result, dialects.ParsedAction), result
    got = to_dict(result.action)
    for name in ("point", "to"):
        if name in expect:
            for got_axis, want_axis, cells in zip(
                got.pop(name), expect[name], grid(case), strict=True
            ):
                assert abs(got_axis - want_axis) <= 0.5 / cells + 1e-12
    wanted = {key: value for key, value in expect.items() if key not in ("point", "to")}
    if wanted["action"] == "type":
        wanted = DEFAULTS | wanted
    assert got == wanted


def test_the_error_points_at_the_culprit() -> None:
    text = "<think>look</think>\nAction: tap the blue button\nthanks"
    result = dialects.get("wmr1_android").parse(text, View((1080, 2400), (1092, 2408)))
    assert isinstance(result, dialects.ParseError)
    assert result.text == "tap the blue button"
    assert text[slice(*result.span)] == result.text


def test_an_element_index_is_its_middle() -> None:
    view = View((1080, 2400), (672, 1484), marks=(Point(0.1, 0.2), Point(0.3, 0.4)))
    android_world = dialects.get("android_world")
    tap = android_world.parse('{"action_type": "click", "index": 1}', view)
    assert isinstance(tap, dialects.ParsedAction)
    assert tap.action == Tap(Point(0.3, 0.4))
    typed = android_world.parse('{"action_type": "input_text", "text": "a", "index": 0}', view)
    assert isinstance(typed, dialects.ParsedAction)
    assert typed.action == Type("a", Point(0.1, 0.2), submit=True)


def test_gworld_writes_its_action_under_the_chosen_key() -> None:
    view = View((1080, 2400), (1080, 2400))
    tap = Tap(Point(0.25, 1.0))
    assert GWorld().render(tap, view) == '{"action": "TAP", "coordinates": [250, 1000]}'
    card = GWorld(key="action_type").render(OpenApp("Clock"), view)
    assert card == '{"action_type": "LAUNCH_APP", "app_name": "Clock"}'


def test_what_a_dialect_cannot_say_is_unsupported() -> None:
    gui_r1 = dialects.get("gui_r1")
    swipe = Swipe(Point(0, 0), Point(1, 1))
    assert not gui_r1.supports(swipe)
    with pytest.raises(dialects.Unsupported, match="gui_r1 has no words for swipe"):
        gui_r1.render(swipe, View((1080, 2400), (1080, 2400)))


def test_an_unknown_dialect_names_the_known_ones() -> None:
    with pytest.raises(InvalidRequest, match=r"unknown dialect 'klingon'.*wmr1_android"):
        dialects.get("klingon")


def test_explain_shows_thought_call_and_error() -> None:
    text = (
        "<think>look <call_wm>tap(5,6)</call_wm> ok</think>\n"
        "Action: tap(start_box='(99999,5)')\nbye"
    )
    view = View((1080, 2400), (1092, 2408))
    assert dialects.explain(dialects.get("wmr1_android"), text, view) == (
        "dialect   wmr1_android, screen 1080x2400, model 1092x2408\n"
        "thought   look <call_wm>tap(5,6)</call_wm> ok\n"
        "call 1    tap(5,6) -> tap(0.5 %, 0.3 %)\n"
        "error     the coordinate 99999 lies outside the screen\n"
        "          Action: tap(start_box='(99999,5)')\n"
        "                  ^^^^^^^^^^^^^^^^^^^^^^^^^^"
    )


def test_explain_shows_what_was_read_and_where_it_lands() -> None:
    view = View((1080, 2400), (672, 1484))
    answer = "[{'action': 'click', 'point': [336, 742], 'input_text': 'no input text'}]"
    text = f"<answer>{answer}</answer>"
    lines = dialects.explain(dialects.get("gui_r1"), text, view).splitlines()
    assert lines[2:] == [
        "action    tap(50.1 %, 50.0 %)",
        "pixel     540, 1200 of the screen",
        f"written   {answer}",
    ]
