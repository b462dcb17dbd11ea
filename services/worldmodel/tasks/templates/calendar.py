"""Tasks in Calendar."""

from dataclasses import replace
from random import Random

from services.worldmodel.phone.apps.calendar import DAYS, TITLES, Calendar, Event, day_name
from services.worldmodel.phone.state import Frame, Phone
from services.worldmodel.tasks.task import edited
from services.worldmodel.tasks.template import Draft, Template, change, wordings
from services.worldmodel.tasks.touch import Look

APP = "Calendar"
AGENDA = Frame("Agenda")
DELETE = ("Delete the event {}.", "Delete {} from Calendar.", "Cancel {} in Calendar.")


def free_titles(calendar: Calendar) -> list[str]:
    """Titles that are neither an event nor an invitation."""
    invited = {title for _, title in calendar.invites}
    return [t for t in TITLES if calendar.event(t) is None and t not in invited]


def _add(rng: Random, phone: Phone, _seed: int) -> Draft:
    calendar: Calendar = phone.of(APP)
    event = Event(
        rng.choice(free_titles(calendar)), rng.randrange(DAYS), 30 * rng.randrange(14, 44)
    )
    words = wordings(
        (
            "Add {0} on {1} at {2}.",
            "Create the event {0} for {1}, {2}.",
            "Put {0} into Calendar: {1} at {2}.",
        ),
        event.title,
        day_name(event.day),
        event.time,
    )
    return change(phone, words, APP, calendar, calendar.adding(event))


def _delete(rng: Random, phone: Phone, _seed: int) -> Draft:
    calendar: Calendar = phone.of(APP)
    title = rng.choice(calendar.events).title
    return change(phone, wordings(DELETE, title), APP, calendar, calendar.without(title))


def _delete_maybe(rng: Random, phone: Phone, seed: int) -> Draft:
    """On odd seeds there is no such event."""
    if seed % 2 == 0:
        return _delete(rng, phone, seed)
    calendar: Calendar = phone.of(APP)
    words = wordings(DELETE, rng.choice(free_titles(calendar)))
    look = Look(APP, (AGENDA,), to_end=True)
    return Draft(words, phone.data, phone.data, look, feasible=False)


def _move(rng: Random, phone: Phone, _seed: int) -> Draft:
    calendar: Calendar = phone.of(APP)
    event = rng.choice(calendar.events)
    day = rng.choice([d for d in range(DAYS) if d != event.day])
    words = wordings(
        ("Move {0} to {1}.", "Move the event {0} to {1}.", "{0} is on {1} now: move it."),
        event.title,
        day_name(day),
    )
    return change(phone, words, APP, calendar, calendar.adding(replace(event, day=day)))


def _move_two(rng: Random, phone: Phone, _seed: int) -> Draft:
    calendar: Calendar = phone.of(APP)
    first, second = rng.sample(calendar.events, 2)
    day = rng.choice([d for d in range(DAYS) if d not in (first.day, second.day)])
    words = wordings(
        (
            "Move {0} and {1} to {2}.",
            "Move both {0} and {1} to {2}.",
            "{0} and {1} are on {2} now: move them.",
        ),
        first.title,
        second.title,
        day_name(day),
    )
    want = calendar.adding(replace(first, day=day)).adding(replace(second, day=day))
    return change(phone, words, APP, calendar, want)


def _remind(remind: bool) -> Template:
    sentences = (
        ("Remind me of {}.", "Set a reminder for {}.", "Turn on the reminder of {}.")
        if remind
        else ("Silence {}.", "Remove the reminder of {}.", "Turn off the reminder of {}.")
    )

    def draft(rng: Random, phone: Phone, _seed: int) -> Draft:
        calendar: Calendar = phone.of(APP)
        event = replace(rng.choice(calendar.events), remind=not remind)
        start = calendar.adding(event)
        want = start.adding(replace(event, remind=remind))
        return change(phone, wordings(sentences, event.title), APP, start, want)

    return Template(f"calendar_{'remind' if remind else 'silence'}", (APP,), "toggle", draft)


def _time(rng: Random, phone: Phone, _seed: int) -> Draft:
    event = rng.choice(phone.of(APP).events)
    words = wordings(
        ("When does {} begin?", "At what time is {}?", "What time is {} in Calendar?"), event.title
    )
    look = Look(APP, (AGENDA,), item=f"open:{event.title}")
    return Draft(words, phone.data, phone.data, look, event.time, "time")


def _count(rng: Random, phone: Phone, _seed: int) -> Draft:
    calendar: Calendar = phone.of(APP)
    day = rng.choice(calendar.events).day
    words = wordings(
        (
            "How many events are on {}?",
            "Count the events of {}.",
            "How many things do I have on {}?",
        ),
        day_name(day),
    )
    look = Look(APP, (Frame("Days"),), item=f"day:{day}")
    return Draft(words, phone.data, phone.data, look, str(len(calendar.on(day))), "count")


def _next(rng: Random, phone: Phone, _seed: int) -> Draft:
    calendar: Calendar = phone.of(APP)
    i = rng.randrange(len(calendar.events) - 1)
    words = wordings(
        ("What comes after {}?", "Which event follows {}?", "What is the next event after {}?"),
        calendar.events[i].title,
    )
    title = calendar.events[i + 1].title
    look = Look(APP, (AGENDA,), item=f"open:{title}")
    return Draft(words, phone.data, phone.data, look, title, "name")


def _clear(rng: Random, phone: Phone, _seed: int) -> Draft:
    """Two or three events on one day, all of which have to go."""
    calendar: Calendar = phone.of(APP)
    day = rng.randrange(DAYS)
    start = calendar
    for event in rng.sample(calendar.events, rng.choice((2, 3))):
        start = start.adding(replace(event, day=day))
    want = start
    for event in start.on(day):
        want = want.without(event.title)
    words = wordings(
        ("Delete all events on {}.", "Clear {}.", "Make {} free: delete its events."),
        day_name(day),
    )
    return change(phone, words, APP, start, want)


def _if_free(rng: Random, phone: Phone, _seed: int) -> Draft:
    """Whether a day is free decides where the new event goes."""
    calendar: Calendar = phone.of(APP)
    first, second = rng.sample(range(DAYS), 2)
    title, hour = rng.choice(free_titles(calendar)), rng.randrange(8, 21)
    start = calendar
    for event in calendar.on(first):
        start = start.without(event.title)
    free = rng.random() < 0.5
    if not free:
        start = start.adding(replace(rng.choice(calendar.events), day=first))
    event = Event(title, first if free else second, 60 * hour)
    words = wordings(
        (
            "If {1} is free, add {0} there at {3}, otherwise on {2} at {3}.",
            "Add {0} at {3} on {1} if it has no events, else on {2}.",
            "Put {0} on {1} at {3}, but on {2} if {1} has events.",
        ),
        title,
        day_name(first),
        day_name(second),
        event.time,
    )
    return change(phone, words, APP, start, start.adding(event))


def _remind_at(rng: Random, phone: Phone, _seed: int) -> Draft:
    """An event of the same time on another day has its reminder already."""
    calendar: Calendar = phone.of(APP)
    right, same_time, same_day = rng.sample(calendar.events, 3)
    day, other = rng.sample(range(DAYS), 2)
    minute = 60 * rng.randrange(8, 20)
    right = replace(right, day=day, minute=minute, remind=False)
    start = calendar.adding(right)
    start = start.adding(replace(same_time, day=other, minute=minute, remind=True))
    start = start.adding(replace(same_day, day=day, minute=minute + 60, remind=True))
    words = wordings(
        (
            "Set a reminder for the event of {0} at {1}.",
            "Remind me of what is on {0} at {1}.",
            "Turn on the reminder of the event on {0}, {1}.",
        ),
        day_name(day),
        right.time,
    )
    return change(phone, words, APP, start, start.adding(replace(right, remind=True)))


def _free_day(rng: Random, phone: Phone, _seed: int) -> Draft:
    """The first of the days in view that has no events."""
    calendar: Calendar = phone.of(APP)
    free = rng.randrange(2, 8)
    start = calendar
    for event in calendar.on(free):
        start = start.adding(replace(event, day=DAYS - 1))
    for day, event in zip(
        [d for d in range(free) if not start.on(d)],
        [e for e in start.events if e.day > free],
        strict=False,
    ):
        start = start.adding(replace(event, day=day))
    first = next(d for d in range(DAYS) if not start.on(d))
    words = (
        "What is my first free day in Calendar? Give its number.",
        "Give the number of the first day without events.",
        "On which day of the month am I free first?",
    )
    data = edited(phone.data, Calendar=start)
    look = Look(APP, (Frame("Days"),), item=f"day:{first}")
    return Draft(words, data, data, look, day_name(first).split()[1], "count")


TEMPLATES = (
    Template("calendar_add", (APP,), "form", _add),
    Template("calendar_delete", (APP,), "list", _delete),
    Template("calendar_delete_maybe", (APP,), "infeasible", _delete_maybe),
    Template("calendar_move", (APP,), "list", _move),
    Template("calendar_move_two", (APP,), "list", _move_two),
    _remind(True),
    _remind(False),
    Template("calendar_time", (APP,), "lookup", _time),
    Template("calendar_count", (APP,), "lookup", _count),
    Template("calendar_next", (APP,), "lookup", _next),
    Template("calendar_free_day", (APP,), "lookup", _free_day),
    Template("calendar_clear_day", (APP,), "list", _clear),
    Template("calendar_if_free", (APP,), "conditional", _if_free),
    Template("calendar_remind_at", (APP,), "distractor", _remind_at),
)
