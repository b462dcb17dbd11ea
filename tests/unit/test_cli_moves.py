"""What people type in `wmr1 play`."""

import pytest

from wmkit.cli.moves import Move, read
from wmkit.domain.actions import (
    Answer,
    Back,
    DoubleTap,
    Finish,
    LongPress,
    OpenApp,
    Scroll,
    Swipe,
    Tap,
    Type,
)
from wmkit.domain.errors import InvalidAction
from wmkit.domain.screen import Point, Screen
from wmkit.domain.transition import Element

SCREEN = Screen(1000, 2000)
# The middle of the second one is (300, 500) of 1000 x 2000.
ELEMENTS = (
    Element("a", "text", "Title", 0, 0, 1000, 100),
    Element("b", "switch", "Wi-Fi", 200, 400, 200, 200, clickable=True),
)


@pytest.mark.parametrize(
    ("line", "action"),
    [
        ("tap 2", Tap(Point(0.3, 0.25))),
        ("TAP 2", Tap(Point(0.3, 0.25))),
        ("tap 0.5 0.3", Tap(Point(0.5, 0.3))),
        ("tap 0.5, 0.3", Tap(Point(0.5, 0.3))),
        ("long 1", LongPress(Point(0.5, 0.025))),
        ("double 2", DoubleTap(Point(0.3, 0.25))),
        ("type hello world", Type("hello world")),
        ('type "two words"', Type("two words")),
        ("type it's", Type("it's")),
        ("type 'a' and 'b'", Type("'a' and 'b'")),
        ("scroll Down", Scroll("down")),
        ("swipe 0.5 0.8 0.5 0.2", Swipe(Point(0.5, 0.8), Point(0.5, 0.2))),
        ("open Clock", OpenApp("Clock")),
        ("  back  ", Back()),
        ("done", Finish("success")),
        ("infeasible", Finish("infeasible")),
        ("answer 7:30", Answer("7:30")),
    ],
)
def test_a_line_is_an_action(line: str, action: object) -> None:
    assert read(line, ELEMENTS, SCREEN) == Move(action)  # type: ignore[arg-type]


def test_a_question_mark_imagines() -> None:
    assert read("? tap 2", ELEMENTS, SCREEN) == Move(Tap(Point(0.3, 0.25)), imagine=True)
    assert read("?back", ELEMENTS, SCREEN) == Move(Back(), imagine=True)


@pytest.mark.parametrize(
    ("line", "word"), [("undo", "undo"), ("quit", "quit"), ("exit", "quit"), ("", "help")]
)
def test_other_words_are_no_actions(line: str, word: str) -> None:
    assert read(line, ELEMENTS, SCREEN) == Move(word=word)


@pytest.mark.parametrize(
    ("line", "sentence"),
    [
        ("tap 3", "there is no element 3; this screen has 1 to 2"),
        ("tap 0", "there is no element 0"),
        ("tap here", "takes 2 numbers"),
        ("tap 0.5 1.5", "lies outside the screen"),
        ("tap nan 0.5", "is not a number"),
        ("swipe 1 2 3", "takes 4 numbers"),
        ("type", "type what"),
        ("scroll sideways", "reveal is one of"),
        ("back now", "'back now' is no action"),
        ("fly", "'fly' is no action"),
        ("? done", "only an action on the phone can be imagined"),
        ("? undo", "only an action on the phone can be imagined"),
    ],
)
def test_what_cannot_be_read_is_one_sentence(line: str, sentence: str) -> None:
    with pytest.raises(InvalidAction, match=sentence):
        read(line, ELEMENTS, SCREEN)
