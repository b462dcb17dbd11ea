"""Tasks in Settings."""

from dataclasses import replace
from random import Random

from services.worldmodel.phone.apps.settings import CATEGORY, TIMEOUTS, TOGGLES, Settings
from services.worldmodel.phone.state import Frame, Phone
from services.worldmodel.tasks.task import edited
from services.worldmodel.tasks.template import Draft, Template, change, wordings
from services.worldmodel.tasks.touch import Look

APP = "Settings"
ON = ("Turn on {}.", "Switch {} on.", "Enable {}.")
OFF = ("Turn off {}.", "Switch {} off.", "Disable {}.")


def names(settings: Settings) -> list[str]:
    """The toggles that a phone has."""
    return [name for name, _ in settings.toggles]


def _turn(on: bool) -> Template:
    def draft(rng: Random, phone: Phone, _seed: int) -> Draft:
        settings: Settings = phone.of(APP)
        name = rng.choice(names(settings))
        words = wordings(ON if on else OFF, name)
        return change(phone, words, APP, settings.having(name, not on), settings.having(name, on))

    return Template(f"settings_turn_{'on' if on else 'off'}", (APP,), "toggle", draft)


def _two(rng: Random, phone: Phone, _seed: int) -> Draft:
    settings: Settings = phone.of(APP)
    a, b = rng.sample(names(settings), 2)
    words = wordings(
        ("Turn on {} and turn off {}.", "Switch {} on and {} off.", "Enable {} and disable {}."),
        a,
        b,
    )
    start = settings.having(a, False).having(b, True)
    return change(phone, words, APP, start, start.having(a, True).having(b, False))


def _timeout(rng: Random, phone: Phone, _seed: int) -> Draft:
    settings: Settings = phone.of(APP)
    choice = rng.choice([t for t in TIMEOUTS if t != settings.timeout])
    words = wordings(
        ("Set the Timeout to {}.", "Change Timeout to {}.", "Make the Timeout {}."), choice
    )
    return change(phone, words, APP, settings, replace(settings, timeout=choice))


def _conditional(rng: Random, phone: Phone, _seed: int) -> Draft:
    """Both branches are possible on screen; the condition decides which one is right."""
    settings: Settings = phone.of(APP)
    network = [name for name in names(settings) if CATEGORY[name] == "Network"]
    asked, a, b = rng.sample(network, 3)
    words = wordings(
        (
            "If {0} is on, turn off {1}; otherwise turn on {2}.",
            "Turn off {1} if {0} is on, else turn on {2}.",
            "Is {0} on? Then turn off {1}, otherwise turn on {2}.",
        ),
        asked,
        a,
        b,
    )
    start = settings.having(a, True).having(b, False)
    want = start.having(a, False) if start.on(asked) else start.having(b, True)
    return change(phone, words, APP, start, want)


def _maybe(rng: Random, phone: Phone, seed: int) -> Draft:
    """On odd seeds the phone does not have the toggle."""
    settings: Settings = phone.of(APP)
    have = names(settings)
    lacking = [n for n in CATEGORY if n not in have]
    if seed % 2 == 0:
        larger = [n for n in have if len(TOGGLES[CATEGORY[n]]) > 2]
        name = rng.choice(larger)
        start, want = settings.having(name, False), settings.having(name, True)
        return change(phone, wordings(ON, name), APP, start, want)
    name = rng.choice(lacking)
    page = Look(APP, (Frame("main"), Frame("category", CATEGORY[name])))
    data = edited(phone.data)
    return Draft(wordings(ON, name), data, data, page, feasible=False)


TEMPLATES = (
    _turn(True),
    _turn(False),
    Template("settings_two_toggles", (APP,), "toggle", _two),
    Template("settings_timeout", (APP,), "toggle", _timeout),
    Template("settings_conditional", (APP,), "conditional", _conditional),
    Template("settings_turn_on_maybe", (APP,), "infeasible", _maybe),
)
