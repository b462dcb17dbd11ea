"""Tasks in Gallery."""

from dataclasses import replace
from random import Random

from services.worldmodel.phone.apps.gallery import ALBUMS, BIN, SCENES, Gallery, Photo
from services.worldmodel.phone.state import Frame, Phone
from services.worldmodel.tasks.task import edited
from services.worldmodel.tasks.template import Draft, Template, change, wordings
from services.worldmodel.tasks.touch import Look

APP = "Gallery"
PHOTOS, ROOT = Frame("Photos"), Frame("Albums")
PLACES = tuple(name for name in ALBUMS if name != BIN)
STAR = ("Star the photo {}.", "Star {} in Gallery.", "Make the photo {} a favourite.")
UNSTAR = ("Unstar the photo {}.", "Unstar {} in Gallery.", "Make {} no favourite any more.")


def _kept(rng: Random, gallery: Gallery) -> Photo:
    """A photo that is not in the bin."""
    return rng.choice(gallery.shown)


def _star(favourite: bool) -> Template:
    def draft(rng: Random, phone: Phone, _seed: int) -> Draft:
        gallery: Gallery = phone.of(APP)
        name = _kept(rng, gallery).name
        words = wordings(STAR if favourite else UNSTAR, name)
        start = gallery.favouring(name, not favourite)
        return change(phone, words, APP, start, gallery.favouring(name, favourite))

    return Template(f"gallery_{'star' if favourite else 'unstar'}", (APP,), "toggle", draft)


def _star_maybe(rng: Random, phone: Phone, seed: int) -> Draft:
    """On odd seeds there is no such photo."""
    gallery: Gallery = phone.of(APP)
    if seed % 2 == 0:
        name = _kept(rng, gallery).name
        start, want = gallery.favouring(name, False), gallery.favouring(name, True)
        return change(phone, wordings(STAR, name), APP, start, want)
    words = wordings(STAR, rng.choice([s for s in SCENES if gallery.photo(s) is None]))
    look = Look(APP, (PHOTOS,), to_end=True)
    return Draft(words, phone.data, phone.data, look, feasible=False)


def _delete(rng: Random, phone: Phone, _seed: int) -> Draft:
    gallery: Gallery = phone.of(APP)
    name = _kept(rng, gallery).name
    words = wordings(
        ("Delete the photo {}.", "Delete {} in Gallery.", "Move the photo {} to the Bin."), name
    )
    return change(phone, words, APP, gallery, gallery.moving(name, BIN))


def _binned(rng: Random, gallery: Gallery) -> tuple[Gallery, Photo]:
    name = _kept(rng, gallery).name
    start = gallery.moving(name, BIN)
    photo = start.photo(name)
    assert photo is not None
    return start, photo


def _restore(rng: Random, phone: Phone, _seed: int) -> Draft:
    start, photo = _binned(rng, phone.of(APP))
    words = wordings(
        ("Restore the photo {}.", "Get the photo {} out of the Bin.", "Undelete the photo {}."),
        photo.name,
    )
    return change(phone, words, APP, start, start.moving(photo.name, photo.origin))


def _erase(rng: Random, phone: Phone, _seed: int) -> Draft:
    start, photo = _binned(rng, phone.of(APP))
    words = wordings(
        (
            "Delete the photo {} from the Bin.",
            "Delete {} in the Bin of Gallery for good.",
            "Erase the photo {}; it is in the Bin.",
        ),
        photo.name,
    )
    return change(phone, words, APP, start, start.without(photo.name))


def _move(rng: Random, phone: Phone, _seed: int) -> Draft:
    gallery: Gallery = phone.of(APP)
    photo = _kept(rng, gallery)
    target = rng.choice([place for place in PLACES if place != photo.album])
    words = wordings(
        (
            "Move the photo {0} to {1}.",
            "Put {0} into the album {1}.",
            "Move {0} to {1} in Gallery.",
        ),
        photo.name,
        target,
    )
    return change(phone, words, APP, gallery, gallery.moving(photo.name, target))


def _gather(rng: Random, phone: Phone, _seed: int) -> Draft:
    """Three photos into one album."""
    gallery: Gallery = phone.of(APP)
    target = rng.choice(PLACES)
    spare = [photo for photo in gallery.shown if photo.album != target]
    photos = rng.sample(spare, min(3, len(spare)))
    start, want = gallery, gallery
    for photo in photos:
        want = want.moving(photo.name, target)
    names = ", ".join(photo.name for photo in photos)
    words = wordings(
        (
            "Move these photos to {1}: {0}.",
            "Put these photos into the album {1}: {0}.",
            "The album {1} shall have {0} too.",
        ),
        names,
        target,
    )
    return change(phone, words, APP, start, want)


def _shoot(count: int) -> Template:
    sentences = (
        ("Take a photo.", "Take a picture with Gallery.", "Use the camera of Gallery once.")
        if count == 1
        else (
            "Take two photos.",
            "Take two pictures with Gallery.",
            "Use Gallery to take 2 photos.",
        )
    )

    def draft(_rng: Random, phone: Phone, _seed: int) -> Draft:
        gallery: Gallery = phone.of(APP)
        want = gallery
        for _ in range(count):
            want = want.shooting()
        return change(phone, sentences, APP, gallery, want)

    return Template("gallery_shoot" if count == 1 else "gallery_shoot_two", (APP,), "form", draft)


def _count(rng: Random, phone: Phone, _seed: int) -> Draft:
    gallery: Gallery = phone.of(APP)
    album = rng.choice(PLACES)
    words = wordings(
        (
            "How many photos are in {}?",
            "Count the photos in the album {}.",
            "How many photos does the album {} have?",
        ),
        album,
    )
    count = str(len(gallery.inside(album)))
    return Draft(words, phone.data, phone.data, Look(APP, (ROOT,)), count, "count")


def _favourites(_rng: Random, phone: Phone, _seed: int) -> Draft:
    gallery: Gallery = phone.of(APP)
    count = sum(photo.favourite for photo in gallery.shown)
    words = (
        "How many photos have a star?",
        "Count the photos with a star.",
        "How many favourites are in Gallery?",
    )
    look = Look(APP, (PHOTOS,), to_end=True)
    return Draft(words, phone.data, phone.data, look, str(count), "count")


def _album(rng: Random, phone: Phone, _seed: int) -> Draft:
    gallery: Gallery = phone.of(APP)
    photo = _kept(rng, gallery)
    words = wordings(
        (
            "Which album is the photo {} in?",
            "In which album is {}?",
            "What is the album of the photo {}?",
        ),
        photo.name,
    )
    look = Look(APP, (PHOTOS, Frame("photo", photo.name)))
    return Draft(words, phone.data, phone.data, look, photo.album, "choice")


def _if_favourite(rng: Random, phone: Phone, _seed: int) -> Draft:
    """The star decides between moving and deleting."""
    gallery: Gallery = phone.of(APP)
    photo = _kept(rng, gallery)
    target = rng.choice([place for place in PLACES if place != photo.album])
    favourite = rng.random() < 0.5
    start = gallery.favouring(photo.name, favourite)
    words = wordings(
        (
            "If the photo {0} has a star, move it to {1}; otherwise delete it.",
            "Delete the photo {0} unless it has a star; if so, move it to {1}.",
            "Move {0} to {1} if it is a favourite, else delete it.",
        ),
        photo.name,
        target,
    )
    want = start.moving(photo.name, target if favourite else BIN)
    return change(phone, words, APP, start, want)


def _star_all(rng: Random, phone: Phone, _seed: int) -> Draft:
    """One album's photos, of which some have a star already, as do those of other albums."""
    gallery: Gallery = phone.of(APP)
    album = rng.choice(PLACES)
    names = [photo.name for photo in rng.sample(gallery.shown, 3)]
    start = gallery
    for photo in gallery.inside(album):
        start = start.moving(photo.name, rng.choice([p for p in PLACES if p != album]))
    for name in names:
        start = start.having(replace(_found(start, name), album=album, favourite=name == names[0]))
    want = start
    for name in names:
        want = want.favouring(name, True)
    words = wordings(
        (
            "Star every photo of the album {}.",
            "Give each photo in {} a star.",
            "All photos of {} shall be favourites.",
        ),
        album,
    )
    return change(phone, words, APP, start, want)


def _found(gallery: Gallery, name: str) -> Photo:
    photo = gallery.photo(name)
    assert photo is not None
    return photo


def _recent(rng: Random, phone: Phone, _seed: int) -> Draft:
    gallery: Gallery = phone.of(APP)
    album = rng.choice(PLACES)
    start = gallery
    while len(start.inside(album)) < 2:
        start = start.moving(rng.choice(start.shown).name, album)
    words = wordings(
        (
            "What does the first photo of {} show?",
            "Which photo comes first in the album {}?",
            "What is the newest photo in {}?",
        ),
        album,
    )
    data = edited(phone.data, Gallery=start)
    look = Look(APP, (ROOT, Frame("album", album)))
    return Draft(words, data, data, look, start.inside(album)[0].name, "name")


TEMPLATES = (
    _star(True),
    _star(False),
    Template("gallery_star_maybe", (APP,), "infeasible", _star_maybe),
    Template("gallery_delete", (APP,), "list", _delete),
    Template("gallery_restore", (APP,), "list", _restore),
    Template("gallery_erase", (APP,), "list", _erase),
    Template("gallery_move", (APP,), "list", _move),
    Template("gallery_move_three", (APP,), "list", _gather),
    _shoot(1),
    _shoot(2),
    Template("gallery_count", (APP,), "lookup", _count),
    Template("gallery_favourites", (APP,), "lookup", _favourites),
    Template("gallery_album", (APP,), "lookup", _album),
    Template("gallery_first", (APP,), "lookup", _recent),
    Template("gallery_if_favourite", (APP,), "conditional", _if_favourite),
    Template("gallery_star_album", (APP,), "distractor", _star_all),
)
