"""Tasks in Clock."""

from dataclasses import replace
from random import Random

from services.worldmodel.phone.apps.clock import PRESETS, VISIBLE, Clock
from services.worldmodel.phone.state import Frame, Phone
from services.worldmodel.tasks.task import edited
from services.worldmodel.tasks.template import Draft, Template, change, wordings
from services.worldmodel.tasks.touch import Look

APP = "Clock"
ON = ("Turn on the {} alarm.", "Switch the {} alarm on.", "Enable the {} alarm.")
OFF = ("Turn off the {} alarm.", "Switch the {} alarm off.", "Disable the {} alarm.")
ALARMS = (Frame("Alarms"),)


def labels(rng: Random, clock: Clock, count: int) -> list[str]:
    """Some of the alarms, in random order."""
    return rng.sample([alarm.label for alarm in clock.alarms], count)


def _turn(on: bool) -> Template:
    def draft(rng: Random, phone: Phone, _seed: int) -> Draft:
        clock: Clock = phone.of(APP)
        (label,) = labels(rng, clock, 1)
        words = wordings(ON if on else OFF, label)
        return change(phone, words, APP, clock.having(label, not on), clock.having(label, on))

    return Template(f"clock_alarm_{'on' if on else 'off'}", (APP,), "list", draft)


def _two(rng: Random, phone: Phone, _seed: int) -> Draft:
    clock: Clock = phone.of(APP)
    a, b = labels(rng, clock, 2)
    words = wordings(
        (
            "Turn on the alarms {} and {}.",
            "Switch the {} and {} alarms on.",
            "Enable alarms {} and {}.",
        ),
        a,
        b,
    )
    start = clock.having(a, False).having(b, False)
    return change(phone, words, APP, start, start.having(a, True).having(b, True))


def _delete(rng: Random, phone: Phone, _seed: int) -> Draft:
    clock: Clock = phone.of(APP)
    (label,) = labels(rng, clock, 1)
    words = wordings(("Delete the {} alarm.", "Remove the {} alarm.", "Erase the alarm {}."), label)
    return change(phone, words, APP, clock, clock.without(label))


def _timer(rng: Random, phone: Phone, _seed: int) -> Draft:
    clock: Clock = phone.of(APP)
    minutes = rng.choice(PRESETS)
    words = wordings(
        ("Start a Timer for {} min.", "Run the {} min Timer.", "Time {} min."), str(minutes)
    )
    want = replace(clock, timer_min=minutes, timer_left_s=60 * minutes)
    return change(phone, words, APP, clock, want)


def _time(rng: Random, phone: Phone, _seed: int) -> Draft:
    alarm = rng.choice(phone.of(APP).alarms)
    words = wordings(
        ("When does the {} alarm ring?", "What time is the {} alarm?", "Tell me when {} rings."),
        alarm.label,
    )
    return Draft(
        words,
        phone.data,
        phone.data,
        Look(APP, ALARMS, item=f"flip:{alarm.label}"),
        alarm.time,
        "time",
    )


def _count(_rng: Random, phone: Phone, _seed: int) -> Draft:
    count = sum(alarm.on for alarm in phone.of(APP).alarms)
    words = (
        "How many alarms are on?",
        "Count the alarms that are on.",
        "Tell me how many alarms are on.",
    )
    look = Look(APP, ALARMS, to_end=True)
    return Draft(words, phone.data, phone.data, look, str(count), "count")


def _conditional(rng: Random, phone: Phone, _seed: int) -> Draft:
    """Both branches are possible on screen; the condition decides which one is right.

    All three rows are in view however far the list is scrolled, so no memory is needed.
    """
    clock: Clock = phone.of(APP)
    middle = clock.alarms[len(clock.alarms) - VISIBLE : VISIBLE]
    asked, a, b = rng.sample([alarm.label for alarm in middle], 3)
    words = wordings(
        (
            "If the {0} alarm is on, turn off {1}; otherwise turn on {2}.",
            "Turn off {1} if the {0} alarm is on, else turn on {2}.",
            "Is the {0} alarm on? Then turn off {1}, otherwise turn on {2}.",
        ),
        asked,
        a,
        b,
    )
    start = clock.having(a, True).having(b, False)
    alarm = start.alarm(asked)
    assert alarm is not None
    want = start.having(a, False) if alarm.on else start.having(b, True)
    return change(phone, words, APP, start, want)


def _maybe(rng: Random, phone: Phone, seed: int) -> Draft:
    """On odd seeds the alarm does not exist."""
    clock: Clock = phone.of(APP)
    label, other = labels(rng, clock, 2)
    words = wordings(ON, label)
    if seed % 2 == 0:
        start = clock.without(other).having(label, False)
        return change(phone, words, APP, start, start.having(label, True))
    data = edited(phone.data, Clock=clock.without(label))
    return Draft(words, data, data, Look(APP, ALARMS, to_end=True), feasible=False)


TEMPLATES = (
    _turn(True),
    _turn(False),
    Template("clock_two_alarms", (APP,), "list", _two),
    Template("clock_delete_alarm", (APP,), "list", _delete),
    Template("clock_timer", (APP,), "toggle", _timer),
    Template("clock_alarm_time", (APP,), "lookup", _time),
    Template("clock_count_on", (APP,), "lookup", _count),
    Template("clock_conditional", (APP,), "conditional", _conditional),
    Template("clock_alarm_on_maybe", (APP,), "infeasible", _maybe),
)
