"""Tasks in Contacts."""

from dataclasses import replace
from random import Random

from services.worldmodel.phone.apps.contacts import Contacts
from services.worldmodel.phone.look import NAMES
from services.worldmodel.phone.state import Frame, Phone
from services.worldmodel.tasks.task import edited
from services.worldmodel.tasks.template import Draft, Template, change, wordings
from services.worldmodel.tasks.touch import Look

APP = "Contacts"
STAR = ("Star {}.", "Star {} in Contacts.", "Give {} a star.")
UNSTAR = ("Unstar {}.", "Unstar {} in Contacts.", "Take the star from {}.")
CALL = ("Call {} from Contacts.", "In Contacts, call {}.", "Use Contacts to call {}.")
PEOPLE = Frame("People")


def strangers(contacts: Contacts) -> list[str]:
    """Names that nobody on this phone has."""
    return [name for name in NAMES if contacts.person(name) is None]


def _star(starred: bool) -> Template:
    def draft(rng: Random, phone: Phone, _seed: int) -> Draft:
        contacts: Contacts = phone.of(APP)
        name = rng.choice(contacts.people).name
        words = wordings(STAR if starred else UNSTAR, name)
        start, want = contacts.having(name, not starred), contacts.having(name, starred)
        return change(phone, words, APP, start, want)

    return Template("contacts_star" if starred else "contacts_unstar", (APP,), "list", draft)


def _call(rng: Random, phone: Phone, _seed: int) -> Draft:
    contacts: Contacts = phone.of(APP)
    name = rng.choice(contacts.people).name
    return change(phone, wordings(CALL, name), APP, contacts, contacts.calling(name))


def _delete(rng: Random, phone: Phone, _seed: int) -> Draft:
    contacts: Contacts = phone.of(APP)
    name = rng.choice(contacts.people).name
    words = wordings(
        ("Delete the contact {}.", "Remove {} from Contacts.", "Erase the contact {}."), name
    )
    return change(phone, words, APP, contacts, contacts.without(name))


def _add(rng: Random, phone: Phone, _seed: int) -> Draft:
    contacts: Contacts = phone.of(APP)
    name = rng.choice(strangers(contacts))
    words = wordings(
        ("Add {} to Contacts.", "Create the contact {}.", "Save {} as a contact."), name
    )
    return change(phone, words, APP, contacts, contacts.adding(name))


def _add_number(rng: Random, phone: Phone, _seed: int) -> Draft:
    contacts: Contacts = phone.of(APP)
    name, number = rng.choice(strangers(contacts)), f"555-{rng.randrange(10000):04d}"
    words = wordings(
        (
            "Add {} to Contacts with the number {}.",
            "Create the contact {}, phone {}.",
            "Save {} in Contacts, number {}.",
        ),
        name,
        number,
    )
    return change(phone, words, APP, contacts, contacts.adding(name, number))


def _number(rng: Random, phone: Phone, _seed: int) -> Draft:
    person = rng.choice(phone.of(APP).people)
    words = wordings(
        ("What is the number of {}?", "Tell me the number of {}.", "Which number has {}?"),
        person.name,
    )
    look = Look(APP, (PEOPLE, Frame("contact", person.name)))
    return Draft(words, phone.data, phone.data, look, person.number, "phone")


def _last_call(rng: Random, phone: Phone, _seed: int) -> Draft:
    contacts: Contacts = phone.of(APP)
    calls = tuple(rng.choices([p.name for p in contacts.people], k=rng.randint(1, 4)))
    data = edited(phone.data, Contacts=replace(contacts, calls=calls))
    words = (
        "Whom did I call last from Contacts?",
        "Who is the latest of the Calls in Contacts?",
        "Tell me the latest of the Calls in Contacts.",
    )
    return Draft(words, data, data, Look(APP, (Frame("Calls"),)), calls[-1])


def _maybe(rng: Random, phone: Phone, seed: int) -> Draft:
    """On odd seeds there is no such person."""
    contacts: Contacts = phone.of(APP)
    if seed % 2 == 0:
        return _call(rng, phone, seed)
    name = rng.choice(strangers(contacts))
    look = Look(APP, (PEOPLE,), to_end=True)
    return Draft(wordings(CALL, name), phone.data, phone.data, look, feasible=False)


TEMPLATES = (
    _star(True),
    _star(False),
    Template("contacts_call", (APP,), "list", _call),
    Template("contacts_delete", (APP,), "list", _delete),
    Template("contacts_add", (APP,), "form", _add),
    Template("contacts_add_with_number", (APP,), "form", _add_number),
    Template("contacts_number", (APP,), "lookup", _number),
    Template("contacts_last_call", (APP,), "lookup", _last_call),
    Template("contacts_call_maybe", (APP,), "infeasible", _maybe),
)
