"""Only what was written is read."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from services.worldmodel.phone import boot, dumps, loads, step
from services.worldmodel.phone.state import Nav
from tests.unit.phone.play import press
from wmkit.domain.actions import OpenApp

STORED = dumps(press(step(boot(3), OpenApp("Notes")), "add"))


def changed(**changes) -> bytes:
    raw = json.loads(STORED) | changes
    return json.dumps(raw, sort_keys=True, separators=(",", ":")).encode()


def system(**changes) -> bytes:
    return changed(system=json.loads(STORED)["system"] | changes)


def nav(**changes) -> bytes:
    return changed(nav=json.loads(STORED)["nav"] | changes)


def notice(app: str, title: str = "News") -> dict[str, str]:
    return {"app": app, "title": title, "text": "", "page": "", "item": ""}


def test_what_is_changed_here_could_be_stored():
    for data in (
        system(font_percent=115, compact=True, granted=[["Mail", "Camera"], ["Notes", "Camera"]]),
        system(notices=[notice("Mail")], due=[{"popup": "call", "actions": 2}]),
        nav(page=1, popup="call", shade=True, shift=True, toast="Hello"),
        nav(prompt={"app": "Notes", "permission": "Camera", "then": "save"}),
    ):
        assert dumps(loads(data)) == data


def test_the_bytes_are_plain_sorted_json():
    assert changed() == STORED


@given(st.binary(max_size=80))
def test_junk_is_a_value_error(data):
    with pytest.raises(ValueError):
        loads(data)


@given(st.integers(0, len(STORED) - 1))
def test_a_truncated_phone_is_a_value_error(length):
    with pytest.raises(ValueError):
        loads(STORED[:length])


@pytest.mark.parametrize(
    "data",
    [
        STORED + b"\n",
        json.dumps(json.loads(STORED)).encode(),
        changed(extra=1),
        changed(version=1),
        changed(version=3),
        changed(clock=-1),
        changed(clock=10**30),
        changed(clock="12"),
        changed(nav={"front": "Maps", "stacks": []}),
        changed(nav={"front": "Notes", "stacks": []}),
        changed(nav={"front": "Notes", "stacks": [["Notes", []]]}),
        changed(launcher={"dock": [], "pages": [[["Maps", 0, 2]]]}),
        changed(launcher={"dock": [], "pages": [[["Notes", 9, 2]]]}),
        changed(launcher={"dock": [], "pages": [[["Notes", 0, 2], ["Shop", 0, 2]]]}),
        changed(launcher={"dock": [], "pages": []}),
        changed(launcher={"dock": ["Notes", "Shop", "Mail", "Clock", "Phone"], "pages": [[]]}),
        system(font_percent=300),
        system(granted=[["Notes", "Camera"], ["Mail", "Camera"]]),
        system(notices=[notice("Maps")]),
        system(notices=[notice("Mail"), notice("Mail")]),
        system(notices=[notice("Mail", str(i)) for i in range(6)]),
        system(due=[{"popup": "flood", "actions": 1}]),
        system(due=[{"popup": "call", "actions": 0}]),
        nav(page=7),
        nav(popup="flood"),
        nav(prompt={"app": "Mail", "permission": "Camera", "then": "add"}),
        nav(prompt={"app": "Notes", "permission": "Camera", "then": "nonsense"}),
        nav(shade="yes"),
        changed(apps={}),
        b"[]",
        b"null",
    ],
)
def test_almost_a_phone_is_a_value_error(data):
    with pytest.raises(ValueError):
        loads(data)


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("page", "nowhere"),
        ("scroll", 9),
        ("scroll", -1),
        ("focus", "Colour"),
        ("fields", [["Colour", "red"]]),
    ],
)
def test_pages_that_cannot_be_are_value_errors(field, value):
    nav = json.loads(STORED)["nav"]
    assert nav["stacks"][-1][1][-1]["page"] == "edit"
    nav["stacks"][-1][1][-1][field] = value
    with pytest.raises(ValueError):
        loads(changed(nav=nav))


def test_a_page_about_nobody_is_a_value_error():
    phone = step(boot(3), OpenApp("Contacts"))
    name = phone.of("Contacts").people[0].name
    stored = dumps(press(phone, f"open:{name}"))
    assert loads(stored).frame().item == name
    with pytest.raises(ValueError, match="Zoe"):
        loads(stored.replace(b'"item":"%s"' % name.encode(), b'"item":"Zoe"'))


def test_a_part_is_encoded_once():
    nav = Nav()
    assert nav.canonical is nav.canonical and nav.digest is nav.digest
