"""The scripted phone: apps as pure state machines that emit the HTML contract.

Pure and synchronous: no I/O, no browser, no randomness but the seed of `boot`. States are
immutable values; the geometry is computed here, so hit-testing needs no rendering.
"""

from random import Random

from services.worldmodel.phone.apps import APPS
from services.worldmodel.phone.codec import dumps, loads
from services.worldmodel.phone.geometry import HEIGHT, WIDTH, Element
from services.worldmodel.phone.reducer import step
from services.worldmodel.phone.render import html
from services.worldmodel.phone.screen import elements, screen_digest, title
from services.worldmodel.phone.state import Launcher, Nav, Phone

__all__ = [
    "APPS",
    "HEIGHT",
    "WIDTH",
    "Element",
    "Phone",
    "boot",
    "digest",
    "dumps",
    "elements",
    "html",
    "loads",
    "screen_digest",
    "step",
    "title",
]


def boot(seed: int) -> Phone:
    """A phone on its home screen; content, states and icon places follow from the seed."""
    rng = Random(f"phone/{seed}")
    places = rng.sample([(c, r) for r in range(2, 9) for c in range(4)], len(APPS))
    icons = tuple((app, *place) for app, place in zip(APPS, places, strict=True))
    return Phone(
        clock=60 * rng.randrange(7 * 60, 22 * 60),
        launcher=Launcher(icons),
        nav=Nav(),
        data=tuple((name, app.boot(rng)) for name, app in APPS.items()),
    )


def digest(phone: Phone) -> str:
    """Hex BLAKE3 of the whole hidden state; equal phones, and only those, share it."""
    return phone.digest
