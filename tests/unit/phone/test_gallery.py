"""Gallery, played by hand."""

from dataclasses import replace

import pytest

from services.worldmodel.phone import Phone, boot, elements, html, step, title
from services.worldmodel.phone.apps.gallery import Gallery, Photo
from services.worldmodel.phone.screen import find
from tests.unit.phone.play import press
from wmkit.domain.actions import Back, OpenApp, Scroll

BOAT, MOON, CAKE = (
    Photo("Boat", "Camera"),
    Photo("Moon", "Family", favourite=True),
    Photo("Cake", "Bin", origin="Holiday"),
)


def texts(phone: Phone) -> list[str]:
    return [e.text for e in elements(phone) if e.role == "text"]


def shown(phone: Phone) -> list[str]:
    return [e.key.removeprefix("open:") for e in elements(phone) if e.key.startswith("open:")]


def with_photos(photos: tuple[Photo, ...]) -> Phone:
    phone = boot(1)
    data = Gallery(photos, ((0, "Eve"), (3, "Gus"), (5, "Ivy")))
    parts = tuple((n, data if n == "Gallery" else part) for n, part in phone.data)
    return step(replace(phone, data=parts), OpenApp("Gallery"))


@pytest.fixture
def phone() -> Phone:
    return with_photos((BOAT, MOON, CAKE))


def test_all_photos_but_the_binned_stand_in_a_grid(phone):
    assert shown(phone) == ["Boat", "Moon"]
    assert "[IMG: Boat]" in html(phone) and "[IMG: Cake]" not in html(phone)
    albums = press(phone, "tab:Albums")
    assert texts(albums).count("1 photo") == 3 and texts(albums).count("0 photos") == 1
    assert shown(press(albums, "album:Bin")) == ["Cake"]


def test_a_grid_scrolls_by_lines():
    photos = tuple(Photo(f"P{i}", "Camera") for i in range(34))
    top = with_photos(photos)
    assert shown(top) == [f"P{i}" for i in range(28)]
    assert shown(step(top, Scroll("down"))) == [f"P{i}" for i in range(8, 34)]


def test_a_photo_is_starred_moved_binned_and_restored(phone):
    page = press(phone, "open:Boat")
    assert title(page) == "Boat" and "Camera" in texts(page)
    assert press(page, "star").of("Gallery").photo("Boat").favourite is True
    moved = press(page, "move", "to:Holiday")
    assert moved.of("Gallery").photo("Boat") == Photo("Boat", "Holiday")
    binned = press(page, "delete")
    assert binned.of("Gallery").photo("Boat") == Photo("Boat", "Bin", origin="Camera")
    assert shown(binned) == ["Moon"]
    cake = press(phone, "tab:Albums", "album:Bin", "open:Cake")
    assert press(cake, "restore").of("Gallery").photo("Cake") == Photo("Cake", "Holiday")
    asked = press(cake, "delete")
    assert asked.of("Gallery") == phone.of("Gallery")
    assert press(asked, "confirm").of("Gallery").photos == (BOAT, MOON)


def test_the_camera_asks_once_for_its_permission(phone):
    asked = press(phone, "add")
    assert asked.frame().page == "Photos" and find(asked, "os.allow")
    denied = press(asked, "os.deny")
    assert denied.frame().page == "Photos" and find(press(denied, "add"), "os.allow")
    camera = press(asked, "os.allow")
    taken = press(camera, "shoot")
    assert (
        taken.of("Gallery").photos[0] == Photo("Shot 1", "Camera") and shown(taken)[0] == "Shot 1"
    )
    again = press(taken, "add", "shoot")
    assert [p.name for p in again.of("Gallery").photos[:2]] == ["Shot 2", "Shot 1"]


def test_what_is_seen_once_is_gone(phone):
    once = press(phone, "tab:Once")
    seen = press(once, "tile:3")
    assert [e.text for e in elements(seen) if e.role == "row"] == ["Gus"]
    assert seen.of("Gallery").seen == ("Gus",)
    assert find(step(seen, Back()), "tile:3") is None and find(step(seen, Back()), "tile:0")
