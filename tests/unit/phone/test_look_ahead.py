"""Where looking ahead pays: only the touch itself tells, and a wrong one fails for good."""

import pytest

from services.worldmodel import tasks
from services.worldmodel.phone import elements, html, step
from services.worldmodel.tasks.checks import expert, play
from tests.unit.phone.play import press

NAMES = sorted(name for name, t in tasks.TEMPLATES.items() if t.kind == "look_ahead")


def keys(phone) -> list[str]:
    return sorted(e.key for e in elements(phone) if e.key.startswith("tile:"))


def test_there_are_five_apps_to_look_ahead_in():
    assert {tasks.TEMPLATES[name].apps[0] for name in NAMES} >= {
        "Phone",
        "Messages",
        "Calendar",
        "Files",
        "Gallery",
    }


@pytest.mark.parametrize("name", [n for n in NAMES if n.startswith(("phone_", "lookahead_"))])
@pytest.mark.parametrize("seed", range(8))
def test_one_tile_of_three_wins_and_no_other_can_be_repaired(name, seed):
    task = tasks.make(name, seed)
    assert play(task, expert)[0] and task.complexity <= 3
    phone = task.start
    while not keys(phone):
        phone = step(phone, task.oracle(phone))
    places = keys(phone)
    assert len(places) == 3
    wins = [task.success(press(phone, key), None, "success") for key in places]
    assert wins.count(True) == 1
    for key, won in zip(places, wins, strict=True):
        if not won:
            assert task.oracle(press(phone, key)).status == "infeasible"


@pytest.mark.parametrize("name", [n for n in NAMES if n.startswith(("phone_", "lookahead_"))])
def test_the_page_says_nothing_of_what_lies_behind_its_tiles(name):
    """Among many seeds the same picture comes with different right tiles."""
    answers: dict[tuple[str, ...], set[str]] = {}
    for seed in range(150):
        task = tasks.make(name, seed)
        phone = task.start
        while not keys(phone):
            phone = step(phone, task.oracle(phone))
        for line in html(phone).splitlines():
            assert "tile-" not in line or "aria-label" not in line
        right = next(k for k in keys(phone) if task.success(press(phone, k), None, "success"))
        answers.setdefault(tuple(keys(phone)), set()).add(right)
    assert sum(len(found) > 1 for found in answers.values()) > len(answers) / 4
