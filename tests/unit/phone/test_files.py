"""Files, played by hand."""

from dataclasses import replace

import pytest

from services.worldmodel.phone import Phone, boot, elements, step, title
from services.worldmodel.phone.apps.files import File, Files, Sealed
from services.worldmodel.phone.screen import find
from tests.unit.phone.play import press
from wmkit.domain.actions import OpenApp, Type

RENT, MAP, TAX = (
    File("Rent", "Documents", 4),
    File("Map", "Documents", 40),
    File("Tax", "Bin", 7, origin="Shared"),
)
SEALED = Sealed("Poem", ((1, "Shred"), (4, "Keep"), (6, "Share")))


def texts(phone: Phone) -> list[str]:
    return [e.text for e in elements(phone) if e.role == "text"]


def rows(phone: Phone) -> list[str]:
    return [e.text for e in elements(phone) if e.role == "row"]


@pytest.fixture
def phone() -> Phone:
    phone = boot(1)
    data = Files((MAP, RENT, TAX), (SEALED,))
    parts = tuple((n, data if n == "Files" else part) for n, part in phone.data)
    return step(replace(phone, data=parts), OpenApp("Files"))


def test_folders_count_and_sort_their_files(phone):
    assert rows(phone) == ["Documents", "Downloads", "Shared", "Private", "Bin"]
    assert texts(phone).count("2 files") == 1 and texts(phone).count("1 file") == 1
    inside = press(phone, "folder:Documents")
    assert rows(inside) == ["Map", "Rent"] and {"40 MB", "4 MB"} <= set(texts(inside))
    assert rows(press(inside, "open:Rent", "rename")) == []
    later = step(press(inside, "open:Map", "rename"), Type("Zebra", clear=True))
    renamed = press(press(later, "save"), "back")
    assert rows(renamed) == ["Rent", "Zebra"]
    assert rows(press(renamed, "sort")) == ["Zebra", "Rent"]


def test_a_taken_name_is_not_given_twice(phone):
    form = press(phone, "folder:Documents", "open:Map", "rename")
    taken = step(form, Type("Rent"))
    assert "There is a file of that name" in texts(taken) and press(taken, "save") == taken
    assert press(form, "save") == form


def test_a_file_moves_between_folders(phone):
    page = press(phone, "folder:Documents", "open:Map", "move")
    assert rows(page) == ["Downloads", "Shared", "Private"]
    moved = press(page, "to:Private")
    assert moved.of("Files").file("Map") == replace(MAP, folder="Private")
    assert title(moved) == "Documents" and rows(moved) == ["Rent"]
    assert "Moved to Private" in texts(moved)


def test_the_bin_gives_back_and_asks_before_it_erases(phone):
    binned = press(phone, "folder:Documents", "open:Map", "delete")
    assert binned.of("Files").file("Map") == File("Map", "Bin", 40, origin="Documents")
    restored = press(phone, "folder:Bin", "open:Tax", "restore")
    assert restored.of("Files").file("Tax") == File("Tax", "Shared", 7)
    asked = press(phone, "folder:Bin", "open:Tax", "delete")
    assert asked.of("Files") == phone.of("Files")
    assert press(asked, "confirm").of("Files").files == (MAP, RENT)


def test_a_button_without_a_word_decides_for_good(phone):
    page = press(phone, "tab:Sealed", "seal:Poem")
    for place, fate, word in (
        (1, "Shred", "Shredded"),
        (4, "Keep", "Kept"),
        (6, "Share", "Shared"),
    ):
        done = press(page, f"tile:{place}")
        assert done.of("Files").unsealed == (("Poem", fate),)
        assert rows(done) == ["Poem", word]
        assert find(press(done, "back"), "seal:Poem") is None


def test_sorting_is_free_unless_the_goal_is_about_it():
    start = Files((MAP,), ())
    by_size = replace(start, by_size=True)
    assert by_size.eased(start, start) == start
    assert start.eased(start, by_size) == start != by_size
