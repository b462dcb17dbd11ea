"""The cue on the screenshot, pixel by pixel where it begins and ends."""

import pytest
from PIL import Image

from services.worldmodel.learned import cue
from wmkit.domain.actions import (
    Action,
    Back,
    DoubleTap,
    Enter,
    Home,
    Key,
    LongPress,
    OpenApp,
    Recents,
    Scroll,
    Swipe,
    Tap,
    Type,
    Wait,
)
from wmkit.domain.screen import Point

WHITE, RED = (255, 255, 255), (255, 0, 0)
INSIDE = (255, 155, 155)  # red at alpha 100 of 255 on white: 255 * (1 - 100 / 255)
SIZE = (1080, 2400)
# Pixel (540, 1200) in the middle of it.
MIDDLE = Point(540.5 / 1080, 1200.5 / 2400)


def drawn(action: Action, color: tuple[int, int, int] = WHITE) -> Image.Image:
    screen = Image.new("RGB", SIZE, color)
    marked = cue.draw(screen, action)
    assert screen.getcolors() == [(SIZE[0] * SIZE[1], color)], "the screenshot stays as it is"
    return marked


def at(x_px: int, y_px: int) -> Point:
    return Point((x_px + 0.5) / SIZE[0], (y_px + 0.5) / SIZE[1])


@pytest.mark.parametrize(
    "action", [Tap(MIDDLE), DoubleTap(MIDDLE), LongPress(MIDDLE), LongPress(MIDDLE, 800)]
)
def test_a_press_is_a_circle_of_40_px_with_a_rim_of_5(action: Action) -> None:
    picture = drawn(action)
    for dx, dy in ((1, 0), (-1, 0), (0, 1), (0, -1)):
        distances = range(0, 60)
        line = [picture.getpixel((540 + dx * d, 1200 + dy * d)) for d in distances]
        assert line[:34] == [INSIDE] * 34
        assert line[37:40] == [RED] * 3
        assert line[42:] == [WHITE] * 18
        assert line.count(RED) == 5
    # On the diagonal: 28 px right and down is 39.6 px away, 30 px is 42.4.
    assert picture.getpixel((568, 1228)) == RED
    assert picture.getpixel((570, 1230)) == WHITE


def test_the_fill_lets_the_screen_shine_through() -> None:
    # 100 / 255 of red over (0, 0, 255): red 100, blue 155.
    assert drawn(Tap(MIDDLE), (0, 0, 255)).getpixel((540, 1200)) == (100, 0, 155)


def test_a_circle_at_the_corner_is_cut_and_nothing_else_is_touched() -> None:
    picture = drawn(Tap(Point(0, 0)))
    assert picture.getpixel((0, 0)) == INSIDE
    assert picture.getpixel((38, 0)) == RED
    assert picture.getpixel((0, 38)) == RED
    assert picture.getpixel((1079, 2399)) == WHITE


def test_an_arrow_points_where_the_finger_goes() -> None:
    # To the right, from x = 200 to x = 800 on y = 1000: the head is 50 px long and at its
    # base 2 * 50 * tan(30 deg) = 57.7 px wide, the line is 15 px wide.
    picture = drawn(Swipe(at(200, 1000), at(800, 1000)))
    column = [picture.getpixel((400, y)) for y in range(950, 1051)]
    assert column.count(RED) in (15, 16)
    assert column[50] == RED and column[50 - 6] == RED and column[50 + 6] == RED
    assert column[50 - 9] == WHITE and column[50 + 9] == WHITE
    assert picture.getpixel((799, 1000)) == RED, "the tip"
    assert picture.getpixel((802, 1000)) == WHITE, "nothing beyond the tip"
    for d in (10, 25, 45):  # So far behind the tip the head reaches d * tan(30 deg) aside.
        reach = d * 0.57735
        for side in (-1, 1):
            inside = round(side * (reach - 2))
            outside = round(side * (reach + 2))
            assert picture.getpixel((800 - d, 1000 + inside)) == RED
            assert picture.getpixel((800 - d, 1000 + outside)) == WHITE
    assert picture.getpixel((800 - 53, 1000 + 20)) == WHITE, "behind the head is only the line"
    assert picture.getpixel((200, 1000)) == RED
    assert picture.getpixel((190, 1000)) == WHITE


@pytest.mark.parametrize(
    ("reveal", "tip", "tail"),
    [
        # The finger crosses 0.4 of the side and goes away from what it reveals.
        ("down", (540, 720), (540, 1680)),
        ("up", (540, 1680), (540, 720)),
        ("right", (324, 1200), (756, 1200)),
        ("left", (756, 1200), (324, 1200)),
    ],
)
def test_a_scroll_s_arrow_points_away_from_what_it_reveals(
    reveal: str, tip: tuple[int, int], tail: tuple[int, int]
) -> None:
    picture = drawn(Scroll(reveal))  # type: ignore[arg-type]
    ux, uy = (tip[0] > tail[0]) - (tip[0] < tail[0]), (tip[1] > tail[1]) - (tip[1] < tail[1])

    def pixel(behind: int, aside: int, end: tuple[int, int], sign: int) -> object:
        return picture.getpixel(
            (end[0] - sign * ux * behind + uy * aside, end[1] - sign * uy * behind + ux * aside)
        )

    # 40 px behind the tip the head is 23 px wide to either side; the line only 7.
    assert pixel(40, 18, tip, 1) == RED and pixel(40, -18, tip, 1) == RED
    assert pixel(40, 18, tail, -1) == WHITE and pixel(40, -18, tail, -1) == WHITE
    assert pixel(40, 0, tail, -1) == RED


def test_a_scroll_near_the_edge_stays_on_the_screen() -> None:
    start, end = cue.finger_path(Scroll("down", Point(0.5, 0.05)))
    assert (start.y, end.y) == (pytest.approx(0.4), pytest.approx(0.0))
    assert (start.x, end.x) == (0.5, 0.5)


def test_a_swipe_to_where_it_began_is_a_press() -> None:
    assert drawn(Swipe(MIDDLE, MIDDLE)).tobytes() == drawn(Tap(MIDDLE)).tobytes()


@pytest.mark.parametrize(
    "action",
    [
        Type("a", MIDDLE), Key("volume_up"), Enter(), Back(), Home(), Recents(), OpenApp("Mail"),
        Wait(),
    ],
)  # fmt: skip
def test_all_other_actions_leave_no_mark(action: Action) -> None:
    assert drawn(action).getcolors() == [(SIZE[0] * SIZE[1], WHITE)]
