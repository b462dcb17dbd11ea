"""Properties that hold for all dialects, screens and texts."""

import random
import time
from collections.abc import Callable
from functools import partial
from typing import get_args

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from wmkit.domain import dialects
from wmkit.domain.actions import (
    Action,
    Answer,
    Back,
    DoubleTap,
    Enter,
    Finish,
    Home,
    Key,
    LongPress,
    OpenApp,
    Recents,
    Reveal,
    Scroll,
    Swipe,
    Tap,
    Type,
    Wait,
)
from wmkit.domain.resize import QWEN3_VL, smart_resize
from wmkit.domain.screen import Point, View
from wmkit.domain.transcript import CALL_END, parse_thought

SCREENS = [(1080, 2400), (720, 1280), (1440, 3120), (1600, 2560)]
LIMITS = [12845056, 4194304, 2116800, 1003520]
VIEWS = [
    View(screen, smart_resize(*screen, factor=28, min_pixels=3136, max_pixels=limit))
    for screen in SCREENS
    for limit in LIMITS
] + [View(screen, QWEN3_VL.size(*screen)) for screen in SCREENS]
SCALES = {"qwen3_mobile_use": 999, "gui_odyssey": 1000, "gworld": 1000}
SCREEN_PIXELS = ("android_control", "android_world")

fractions = st.floats(0, 1, allow_subnormal=False)
points = st.builds(Point, fractions, fractions)
maybe_point = st.none() | points
# Words that mean something to a parser, between any other characters.
texts = st.lists(
    st.text(max_size=6)
    | st.sampled_from(
        [
            *("'", '"', "\\", "\\n", "\n", "Action: tap(1,2)", "</think>", "<think>", "</call_wm>"),
            *(
                "<tool_call>",
                "</answer>",
                "<|im_end|>",
                "')",
                "', 'x'",
                '"}',
                "😀",
                "שלום",
                "\\x3c",
            ),
        ]
    ),
    max_size=5,
).map("".join)
milliseconds = st.none() | st.integers(0, 10**10)
actions: st.SearchStrategy[Action] = st.one_of(
    st.builds(Tap, points),
    st.builds(DoubleTap, points),
    st.builds(LongPress, points, milliseconds),
    st.builds(Swipe, points, points, milliseconds),
    st.builds(Scroll, st.sampled_from(get_args(Reveal)), maybe_point),
    st.builds(Type, texts, maybe_point, st.booleans(), st.booleans()),
    st.builds(Key, texts),
    st.sampled_from([Enter(), Back(), Home(), Recents(), Finish(), Finish("infeasible")]),
    st.builds(OpenApp, texts),
    st.builds(Wait, milliseconds),
    st.builds(Answer, texts),
)


def cells(name: str, view: View) -> tuple[int, int]:
    """The dialect's grid as documented, not as the code has it."""
    if name in SCALES:
        return SCALES[name], SCALES[name]
    return view.screen_px if name in SCREEN_PIXELS else view.model_px


def assert_same(action: Action, read: Action, grid: tuple[int, int]) -> None:
    assert type(read) is type(action)
    for field in action.__dataclass_fields__:
        wanted, got = getattr(action, field), getattr(read, field)
        if isinstance(wanted, Point):
            assert isinstance(got, Point)
            assert abs(got.x - wanted.x) <= 0.5 / grid[0] + 1e-12
            assert abs(got.y - wanted.y) <= 0.5 / grid[1] + 1e-12
        else:
            assert got == wanted


@pytest.mark.parametrize("name", dialects.NAMES)
@given(action=actions, view=st.sampled_from(VIEWS))
@settings(max_examples=2000, deadline=None)
def test_what_was_written_is_read_back(name: str, action: Action, view: View) -> None:
    dialect = dialects.get(name)
    if not dialect.supports(action):
        with pytest.raises(dialects.Unsupported):
            dialect.render(action, view)
        return
    bare, answer = dialect.render(action, view), dialect.answer(action, view)
    thought = f"<think>I could do Action: this, {{that}} or more.</think>\n{answer}"
    for text in (bare, answer, thought):
        result = dialect.parse(text, view)
        assert isinstance(result, dialects.ParsedAction), (text, result)
        assert_same(action, result.action, cells(name, view))
        again = dialect.render(result.action, view)
        assert again == bare, "a point must not creep when it is written again"


@pytest.mark.parametrize("name", dialects.NAMES)
@given(action=actions, view=st.sampled_from(VIEWS))
@settings(max_examples=60, deadline=None)
def test_a_rendered_action_survives_a_world_model_call(
    name: str, action: Action, view: View
) -> None:
    dialect = dialects.get(name)
    if not dialect.supports(action):
        return
    bare = dialect.render(action, view)
    transcript = parse_thought(f"<think>What if <call_wm>{bare}</call_wm>")
    assert transcript.pending is not None
    assert transcript.pending.problem == ""
    result = dialect.parse(transcript.pending.text, view)
    assert isinstance(result, dialects.ParsedAction)
    assert_same(action, result.action, cells(name, view))


@pytest.mark.parametrize("name", ["wmr1_android", "uitars_mobile", "qwen25_mobile_use", "gui_r1"])
@given(
    screen=st.sampled_from(SCREENS),
    limit=st.sampled_from(LIMITS),
    place=st.tuples(st.integers(0, 10**6), st.integers(0, 10**6)),
)
@settings(max_examples=100, deadline=None)
def test_a_click_lands_on_the_same_screen_pixel_whatever_the_resize(
    name: str, screen: tuple[int, int], limit: int, place: tuple[int, int]
) -> None:
    """Wherever the model's grid is at least as fine as the screen's; else next to it."""
    model = smart_resize(*screen, factor=28, min_pixels=3136, max_pixels=limit)
    px = (place[0] % screen[0], place[1] % screen[1])
    tap = Tap(Point((px[0] + 0.5) / screen[0], (px[1] + 0.5) / screen[1]))
    dialect, view = dialects.get(name), View(screen, model)
    result = dialect.parse(dialect.answer(tap, view), view)
    assert isinstance(result, dialects.ParsedAction)
    assert isinstance(result.action, Tap)
    got = result.action.point.to_px(*screen)
    for axis in (0, 1):
        slack = 0 if model[axis] >= screen[axis] else screen[axis] / model[axis] / 2 + 1
        assert abs(got[axis] - px[axis]) <= slack


FRAGMENTS = [
    *("<think>", "</think>", "<call_wm>", "</call_wm>", '<call_wm from="1">', "call_wm(action="),
    *("tap", "click", "type", "scroll", "(", ")", "[", "]", "{", "}", "'", '"', ",", ":", "="),
    *("1", "99999", "-5", "nan", "inf", "1e999", "9" * 5000, " ", "\n", "\\", "\\ud83d", "\\U99"),
    *("Action:", "Thought:", "<tool_call>", '"action"', "'action_type'", '"name"', '"arguments"'),
    *("mobile_use", "CLICK:", "TYPE:", "COMPLETE", "null", "<answer>", "<|box_start|>", "content="),
    *("direction", "x", "y", "index", "\0", "\u202e", "😀", "\ud800"),
]
junk = st.lists(st.sampled_from(FRAGMENTS) | st.text(max_size=4), max_size=30).map("".join)


@given(text=junk, name=st.sampled_from(dialects.NAMES), view=st.sampled_from(VIEWS))
@settings(max_examples=600, deadline=None)
def test_parsers_never_raise(text: str, name: str, view: View) -> None:
    dialect = dialects.get(name)
    result = dialect.parse(text, view)
    start, end = result.span
    assert 0 <= start <= end <= len(text)
    if isinstance(result, dialects.ParseError):
        assert result.reason
    assert dialects.explain(dialect, text, view)


@given(text=junk)
@settings(max_examples=400, deadline=None)
def test_a_stretch_that_ended_at_the_stop_string_always_has_a_call_to_answer(text: str) -> None:
    pending = parse_thought(text + CALL_END).pending
    assert pending is not None
    assert pending.text or pending.problem


@pytest.mark.parametrize("name", dialects.NAMES)
def test_ten_thousand_junk_texts_are_read_or_refused_with_a_span(name: str) -> None:
    """100,000 over all dialects: fragments and characters, from a seed, so quick and the same."""
    rng, dialect = random.Random(name), dialects.get(name)
    letters = "abcxyz019 .,:;'\"()[]{}<>|/\\=_-\n\tåש😀\x00"
    read = 0
    for _ in range(10_000):
        pieces = rng.choices(FRAGMENTS, k=rng.randrange(12))
        pieces += ["".join(rng.choices(letters, k=rng.randrange(8))) for _ in range(3)]
        rng.shuffle(pieces)
        text, view = "".join(pieces), VIEWS[rng.randrange(len(VIEWS))]
        result = dialect.parse(text, view)
        start, end = result.span
        assert 0 <= start <= end <= len(text)
        if isinstance(result, dialects.ParseError):
            assert result.reason
            assert result.text == text[start:end][:200]
        else:
            read += 1
        pending = parse_thought(text + CALL_END).pending
        assert pending is not None
    assert read < 10_000


KINDS = [
    "{",
    "Action: a('",
    "type(content='",
    "', '",
    " ",
    "complete ",
    "call_wm('x', from= ",
    "call_wm()",
    "<think>",
    "</think><think>",
    "<call_wm ",
    '{"a": "\\',
    "tap(1,2)\n",
    "CLICK: (1, 2)\n",
    '{"action_type": "wait"}',
    "<tool_call>",
    "[{'action': 'wait'}, ",
    "a",
]


@pytest.mark.parametrize("kind", KINDS)
def test_the_time_to_read_grows_linearly(kind: str) -> None:
    """200,000 characters take at most 25 times as long as 10,000, in the thread's own time.

    A busy neighbour slows a round down; what grows faster than the text does so in every round.
    """
    text = kind * (200_000 // len(kind) + 1)
    for read in (parse_thought, *(partial(parse, dialects.get(n)) for n in dialects.NAMES)):
        ratios = []
        for _ in range(4):
            ratios.append(fastest(read, text[:200_000]) / fastest(read, text[:10_000]))
            if ratios[-1] <= 25:
                break
        assert min(ratios) <= 25, (read, ratios)


def parse(dialect: dialects.Dialect, text: str) -> None:
    result = dialect.parse(text, VIEWS[0])
    assert 0 <= result.span[0] <= result.span[1] <= len(text)


def fastest(read: Callable[[str], object], text: str) -> float:
    """The least of a few tries; less than a tenth of a millisecond counts as that."""
    times = []
    for _ in range(3):
        begin = time.thread_time()
        read(text)
        times.append(time.thread_time() - begin)
    return max(min(times), 1e-4)
