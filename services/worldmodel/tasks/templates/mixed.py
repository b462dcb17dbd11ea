"""Tasks that need two apps."""

from random import Random

from services.worldmodel.phone.apps.clock import Clock
from services.worldmodel.phone.apps.contacts import Contacts
from services.worldmodel.phone.apps.notes import Notes
from services.worldmodel.phone.apps.settings import Settings
from services.worldmodel.phone.state import Frame, Phone
from services.worldmodel.tasks.task import edited
from services.worldmodel.tasks.template import Draft, Template, wordings
from services.worldmodel.tasks.touch import Look


def _star_and_toggle(rng: Random, phone: Phone, _seed: int) -> Draft:
    contacts: Contacts = phone.of("Contacts")
    settings: Settings = phone.of("Settings")
    name = rng.choice(contacts.people).name
    toggle = rng.choice(settings.toggles)[0]
    words = wordings(
        ("Star {} and turn on {}.", "Turn on {1} and star {0}.", "Give {} a star, then enable {}."),
        name,
        toggle,
    )
    data = edited(
        phone.data, Contacts=contacts.having(name, False), Settings=settings.having(toggle, False)
    )
    want = edited(
        data, Contacts=contacts.having(name, True), Settings=settings.having(toggle, True)
    )
    return Draft(words, data, want)


def _alarm_and_pin(rng: Random, phone: Phone, _seed: int) -> Draft:
    clock: Clock = phone.of("Clock")
    notes: Notes = phone.of("Notes")
    label, name = rng.choice(clock.alarms).label, rng.choice(notes.notes).title
    words = wordings(
        (
            "Turn off the {} alarm and pin the note {}.",
            "Pin the note {1}, then turn off {0}.",
            "Disable the alarm {} and put a pin on the note {}.",
        ),
        label,
        name,
    )
    data = edited(phone.data, Clock=clock.having(label, True), Notes=notes.having(name, False))
    want = edited(data, Clock=clock.having(label, False), Notes=notes.having(name, True))
    return Draft(words, data, want)


def _note_number(rng: Random, phone: Phone, _seed: int) -> Draft:
    contacts: Contacts = phone.of("Contacts")
    notes: Notes = phone.of("Notes")
    person = rng.choice(contacts.people)
    words = wordings(
        (
            "Create a note titled {0} with the number of {0}.",
            "Look up the number of {0} and write it into a note titled {0}.",
            "Write a note called {0} that holds the number of {0}.",
        ),
        person.name,
    )
    look = Look("Contacts", (Frame("People"), Frame("contact", person.name)), noted=person.number)
    want = edited(phone.data, Notes=notes.adding(person.name, person.number))
    return Draft(words, phone.data, want, look)


TEMPLATES = (
    Template("mixed_star_and_turn_on", ("Contacts", "Settings"), "cross_app", _star_and_toggle),
    Template("mixed_alarm_and_pin", ("Clock", "Notes"), "cross_app", _alarm_and_pin),
    Template("mixed_note_number", ("Notes", "Contacts"), "cross_app", _note_number),
)
