"""Phones as canonical JSON and back.

`loads` accepts exactly what `dumps` writes: anything else, however close, is a ValueError,
so that bytes and digests correspond one to one.
"""

from functools import cache
from typing import Any

from pydantic import ValidationError, create_model

from services.worldmodel.phone.app import App
from services.worldmodel.phone.apps import APPS
from services.worldmodel.phone.launcher import check_launcher
from services.worldmodel.phone.state import (
    HOME,
    MAX_CLOCK_S,
    RECENTS,
    Launcher,
    Nav,
    Part,
    Phone,
    Stack,
    System,
)
from services.worldmodel.phone.system import check_system

VERSION = 2


def dumps(phone: Phone) -> bytes:
    """Canonical JSON: equal phones, and only those, give equal bytes."""
    apps = b",".join(
        b'"%s":%s' % (name.encode(), part.canonical)
        for name, part in sorted(phone.data, key=lambda entry: entry[0])
    )
    return b'{"apps":{%s},"clock":%d,"launcher":%s,"nav":%s,"system":%s,"version":%d}' % (
        apps,
        phone.clock,
        phone.launcher.canonical,
        phone.nav.canonical,
        phone.system.canonical,
        VERSION,
    )


def loads(data: bytes) -> Phone:
    """The phone that `dumps` wrote. Raises ValueError on anything else."""
    try:
        stored = _stored().model_validate_json(data, strict=True)
        phone = Phone(
            clock=stored.clock,
            launcher=stored.launcher,
            system=stored.system,
            nav=stored.nav,
            data=tuple((name, getattr(stored.apps, name)) for name in APPS),
        )
        _check(phone)
    except (AssertionError, LookupError, ValidationError) as error:
        raise ValueError(f"not a phone: {type(error).__name__}: {error}") from None
    if dumps(phone) != data:
        raise ValueError("not a phone in canonical form")
    return phone


def _check(phone: Phone) -> None:
    """Every page that is open or in the background must exist and be drawable."""
    if not 0 <= phone.clock <= MAX_CLOCK_S:
        raise ValueError(f"not a phone: the clock shows {phone.clock} s")
    open_apps = [app for app, _ in phone.nav.stacks]
    if len(set(open_apps)) != len(open_apps):
        raise ValueError("not a phone: an app is open twice")
    if phone.nav.front not in (HOME, RECENTS, *open_apps):
        raise ValueError(f"not a phone: {phone.nav.front!r} is in front but not open")
    for app, stack in phone.nav.stacks:
        if not stack:
            raise ValueError(f"not a phone: {app} is open without a page")
        for depth in range(1, len(stack) + 1):
            _check_page(APPS[app], phone.of(app), stack[:depth])
    check_launcher(phone.launcher, phone.nav)
    check_system(phone)


def _check_page(app: App[Any], data: Part, stack: Stack) -> None:
    frame = stack[-1]
    listing = app.listing(data, frame)
    if not 0 <= frame.scroll <= (listing.last if listing else 0):
        raise ValueError(f"not a phone: {app.name} is scrolled to {frame.scroll}")
    known = app.fields(frame)
    if {name for name, _ in frame.fields} - set(known) or frame.focus not in ("", *known):
        raise ValueError(f"not a phone: {app.name} has no such field")
    app.draw(data, stack)


@cache
def _stored() -> Any:
    """The type of the JSON, as a model that validates it."""
    apps = create_model("Apps", **{name: (app.data, ...) for name, app in APPS.items()})  # type: ignore[call-overload]
    return create_model(
        "Stored", apps=(apps, ...), clock=int, launcher=Launcher, nav=Nav, system=System
    )
