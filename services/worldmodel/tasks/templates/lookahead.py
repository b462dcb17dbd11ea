"""Tasks where looking ahead pays: the right touch shows only by what it does, and a wrong one
is for good.

Speed dial is in `phone`; the others are here. Most start where the touch is decided.
"""

from dataclasses import replace
from random import Random

from services.worldmodel.phone.apps.calendar import Calendar
from services.worldmodel.phone.apps.files import Files
from services.worldmodel.phone.apps.gallery import Gallery
from services.worldmodel.phone.apps.threads import Messages
from services.worldmodel.phone.state import Frame, Phone
from services.worldmodel.phone.tiles import Tiles
from services.worldmodel.tasks.template import Draft, Template, change, near, wordings


def one_of(rng: Random, places: Tiles) -> str:
    """What lies behind one of the tiles."""
    return rng.choice(places)[1]


def _gift(rng: Random, phone: Phone, _seed: int) -> Draft:
    messages: Messages = phone.of("Messages")
    name = one_of(rng, messages.gifts)
    words = wordings(
        ("Open the gift of {}.", "Open only the gift from {}.", "Which gift is from {}? Open it."),
        name,
    )
    draft = change(phone, words, "Messages", messages, messages.opening(name))
    root = (Frame("list"),)
    return replace(draft, starts=near("Messages", (*root, Frame("gifts")), root))


def _invite(rng: Random, phone: Phone, _seed: int) -> Draft:
    calendar: Calendar = phone.of("Calendar")
    title = one_of(rng, calendar.invites)
    words = wordings(
        (
            "Accept the invitation to {}.",
            "Accept only the {} among the Invites.",
            "Open the envelope with the {}.",
        ),
        title,
    )
    draft = change(phone, words, "Calendar", calendar, calendar.accepting(title))
    starts = near("Calendar", (Frame("Invites"),), (Frame("Days"),), (Frame("Agenda"),))
    return replace(draft, starts=starts)


def _once(rng: Random, phone: Phone, _seed: int) -> Draft:
    gallery: Gallery = phone.of("Gallery")
    name = one_of(rng, gallery.once)
    words = wordings(
        (
            "See the photo that {} sent once.",
            "Open the Once photo of {}.",
            "Look at the photo of {} under Once.",
        ),
        name,
    )
    draft = change(phone, words, "Gallery", gallery, gallery.seeing(name))
    starts = near("Gallery", (Frame("Once"),), (Frame("Photos"),), (Frame("Albums"),))
    return replace(draft, starts=starts)


def _sealed(fate: str, sentences: tuple[str, str, str]) -> Template:
    def draft(rng: Random, phone: Phone, _seed: int) -> Draft:
        files: Files = phone.of("Files")
        name = rng.choice(files.sealed).name
        words = wordings(sentences, name)
        made = change(phone, words, "Files", files, files.unsealing(name, fate))
        seals = (Frame("Sealed"),)
        page = (*seals, Frame("seal", name))
        return replace(made, starts=near("Files", page, seals))

    return Template(f"lookahead_{fate.lower()}", ("Files",), "look_ahead", draft)


TEMPLATES = (
    Template("lookahead_gift", ("Messages",), "look_ahead", _gift),
    Template("lookahead_invite", ("Calendar",), "look_ahead", _invite),
    Template("lookahead_once", ("Gallery",), "look_ahead", _once),
    _sealed(
        "Keep", ("Keep the sealed file {}.", "Keep {} of the Sealed.", "Unseal {} and keep it.")
    ),
    _sealed(
        "Shred",
        ("Shred the sealed file {}.", "Shred {} of the Sealed.", "Unseal {} by shredding it."),
    ),
    _sealed(
        "Share", ("Share the sealed file {}.", "Share {} of the Sealed.", "Unseal {} and share it.")
    ),
)
