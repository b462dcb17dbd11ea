"""The scripted phone: apps as pure state machines that emit the HTML contract.

Pure and synchronous: no I/O, no browser, no randomness but the seed of `boot`. States are
immutable values; the geometry is computed here, so hit-testing needs no rendering.
"""

from random import Random

from services.worldmodel.phone.apps import APPS
from services.worldmodel.phone.apps.settings import Settings
from services.worldmodel.phone.codec import dumps, loads
from services.worldmodel.phone.geometry import HEIGHT, WIDTH, Element
from services.worldmodel.phone.launcher import boot_launcher
from services.worldmodel.phone.reducer import step
from services.worldmodel.phone.render import html
from services.worldmodel.phone.screen import elements, screen_digest, title
from services.worldmodel.phone.state import Nav, Phone, System
from services.worldmodel.phone.system import boot_system

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


def boot(seed: int, varied: bool = False) -> Phone:
    """A phone on its home screen; content, states and icon places follow from the seed.

    Each app draws from a source of its own, so that an app more or less changes no other.
    A plain phone is light, with normal text and nothing that interrupts; a `varied` one
    differs by seed in theme, text size, density, notifications and interruptions.
    """
    data = tuple((name, app.boot(Random(f"phone/{seed}/{name}"))) for name, app in APPS.items())
    rng = Random(f"phone/{seed}/system")
    clock = 60 * rng.randrange(7 * 60, 22 * 60)
    system = System()
    if varied:
        dark = rng.random() < 0.5
        data = tuple(
            (n, p.having("Night", dark) if isinstance(p, Settings) else p) for n, p in data
        )
        system = boot_system(rng)
    launcher = boot_launcher(Random(f"phone/{seed}/launcher"))
    return Phone(clock, launcher, system, Nav(), data)


def digest(phone: Phone) -> str:
    """Hex BLAKE3 of the whole hidden state; equal phones, and only those, share it."""
    return phone.digest
