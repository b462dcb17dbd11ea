"""Tasks in Notes."""

from random import Random

from services.worldmodel.phone.apps.notes import BODIES, Notes
from services.worldmodel.phone.state import Frame, Phone
from services.worldmodel.tasks.template import Draft, Template, change, wordings
from services.worldmodel.tasks.touch import Look

APP = "Notes"
PIN = ("Pin the note {}.", "Pin {} in Notes.", "Put a pin on the note {}.")
UNPIN = ("Unpin the note {}.", "Unpin {} in Notes.", "Take the pin off the note {}.")
WORDS = ("Milk", "Keys", "Taxes", "Paint", "Tent", "Bike", "Cake", "Visa", "Lamp", "Soap")


def _pin(pinned: bool) -> Template:
    def draft(rng: Random, phone: Phone, _seed: int) -> Draft:
        notes: Notes = phone.of(APP)
        name = rng.choice(notes.notes).title
        words = wordings(PIN if pinned else UNPIN, name)
        start, want = notes.having(name, not pinned), notes.having(name, pinned)
        return change(phone, words, APP, start, want)

    return Template("notes_pin" if pinned else "notes_unpin", (APP,), "list", draft)


def _delete(rng: Random, phone: Phone, _seed: int) -> Draft:
    notes: Notes = phone.of(APP)
    name = rng.choice(notes.notes).title
    words = wordings(("Delete the note {}.", "Remove {} from Notes.", "Erase the note {}."), name)
    return change(phone, words, APP, notes, notes.without(name))


def _create(rng: Random, phone: Phone, _seed: int) -> Draft:
    notes: Notes = phone.of(APP)
    name = rng.choice(WORDS)
    words = wordings(
        ("Create a note titled {}.", "Add the note {}.", "Write a note called {}."), name
    )
    return change(phone, words, APP, notes, notes.adding(name))


def _write(rng: Random, phone: Phone, _seed: int) -> Draft:
    notes: Notes = phone.of(APP)
    name, body = rng.sample(WORDS, 2)
    words = wordings(
        (
            "Create a note titled {} with the text {}.",
            "Add the note {} that says {}.",
            "Write {1} into a new note called {0}.",
        ),
        name,
        body,
    )
    return change(phone, words, APP, notes, notes.adding(name, body))


def _maybe(rng: Random, phone: Phone, seed: int) -> Draft:
    """On odd seeds there is no such note."""
    notes: Notes = phone.of(APP)
    if seed % 2 == 0:
        name = rng.choice(notes.notes).title
        start, want = notes.having(name, False), notes.having(name, True)
        return change(phone, wordings(PIN, name), APP, start, want)
    name = rng.choice([title for title in BODIES if notes.note(title) is None])
    look = Look(APP, (Frame("list"),), to_end=True)
    return Draft(wordings(PIN, name), phone.data, phone.data, look, feasible=False)


TEMPLATES = (
    _pin(True),
    _pin(False),
    Template("notes_delete", (APP,), "list", _delete),
    Template("notes_create", (APP,), "form", _create),
    Template("notes_create_with_text", (APP,), "form", _write),
    Template("notes_pin_maybe", (APP,), "infeasible", _maybe),
)
