"""Only what was written is read."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from services.worldmodel.phone import boot, dumps, loads
from services.worldmodel.phone.state import Nav
from tests.unit.phone.play import press

STORED = dumps(press(boot(3), "app:Notes", "add"))


def changed(**changes) -> bytes:
    raw = json.loads(STORED) | changes
    return json.dumps(raw, sort_keys=True, separators=(",", ":")).encode()


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
        changed(version=2),
        changed(clock=-1),
        changed(clock=10**30),
        changed(clock="12"),
        changed(nav={"front": "Maps", "stacks": []}),
        changed(nav={"front": "Notes", "stacks": []}),
        changed(nav={"front": "Notes", "stacks": [["Notes", []]]}),
        changed(launcher={"icons": [["Maps", 0, 2]]}),
        changed(launcher={"icons": [["Notes", 9, 2]]}),
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
    phone = press(boot(3), "app:Contacts")
    name = phone.of("Contacts").people[0].name
    stored = dumps(press(phone, f"open:{name}"))
    assert loads(stored).frame().item == name
    with pytest.raises(ValueError, match="Zoe"):
        loads(stored.replace(b'"item":"%s"' % name.encode(), b'"item":"Zoe"'))


def test_a_part_is_encoded_once():
    nav = Nav()
    assert nav.canonical is nav.canonical and nav.digest is nav.digest
