"""What differs between phones beside their apps' data: text size, notifications, interruptions.

A plain phone has none of it. Not here: how it is drawn (`shade`, `overlays`).
"""

from dataclasses import dataclass
from random import Random

from services.worldmodel.phone.apps import APPS
from services.worldmodel.phone.look import BLUE, GREEN, RED
from services.worldmodel.phone.state import Due, Notice, Phone, System

FONTS = (100, 115)
NOTICES = 5
"""How many notifications are kept."""
MAX_DUE = 20


@dataclass(frozen=True)
class Popup:
    """An interruption: a dialog of the system with two answers, (word, key) each.

    The first answer, which is also what back does, just closes it.
    """

    title: str
    text: str
    color: str
    glyph: str
    answers: tuple[tuple[str, str], tuple[str, str]]


POPUPS = {
    "battery": Popup(
        "Battery is low", "Save power?", RED, "battery", (("Close", "close"), ("Save", "saver"))
    ),
    "update": Popup(
        "System update", "Restarts now", BLUE, "turn", (("Later", "close"), ("Install", "restart"))
    ),
    "call": Popup(
        "Unknown", "Incoming call", GREEN, "phone", (("Decline", "close"), ("Answer", "answer"))
    ),
}

# Notifications that wait on varied phones: they belong to nobody's goal.
NOISE = (
    Notice("Shop", "Sale", "Two for one"),
    Notice("Mail", "News", "Five stories"),
    Notice("Music", "New album", "Listen now"),
    Notice("Calendar", "Free day", "No events"),
    Notice("Gallery", "Memories", "A year ago"),
    Notice("Files", "Storage", "Almost full"),
    Notice("Browser", "Download", "Finished"),
    Notice("Messages", "Bank", "All is well"),
)


def boot_system(rng: Random) -> System:
    """The system of a varied phone."""
    kinds = rng.sample(tuple(POPUPS), rng.choice((0, 0, 1, 1, 2)))
    return System(
        font_percent=rng.choice(FONTS),
        compact=rng.random() < 0.3,
        notices=tuple(rng.sample(NOISE, rng.randrange(4))),
        due=tuple(Due(kind, rng.randint(1, 6)) for kind in kinds),
    )


def check_system(phone: Phone) -> None:
    """Raises ValueError for a system, prompt or popup that cannot be."""
    system, nav = phone.system, phone.nav
    if system.font_percent not in FONTS:
        raise ValueError(f"not a phone: text at {system.font_percent} %")
    if len(system.notices) > NOTICES or len(set(system.notices)) < len(system.notices):
        raise ValueError("not a phone: too many notifications")
    known = {app for page in phone.launcher.pages for app, _, _ in page} | set(phone.launcher.dock)
    if not {notice.app for notice in system.notices} <= known | set(APPS):
        raise ValueError("not a phone: a notification of no app")
    if list(system.granted) != sorted(set(system.granted)):
        raise ValueError("not a phone: permissions out of order")
    if any(due.popup not in POPUPS or not 0 < due.actions <= MAX_DUE for due in system.due):
        raise ValueError("not a phone: an interruption that cannot come")
    if nav.popup and nav.popup not in POPUPS:
        raise ValueError(f"not a phone: {nav.popup!r} is no interruption")
    prompt = nav.prompt
    if prompt is not None:
        if prompt.app != nav.front or prompt.app not in APPS or not prompt.permission:
            raise ValueError("not a phone: a prompt of no app")
        # Whatever waits for the answer must be something that the app understands.
        APPS[prompt.app].tap(phone.of(prompt.app), nav.stack(prompt.app), prompt.then)
