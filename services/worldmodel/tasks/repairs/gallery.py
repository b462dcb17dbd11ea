"""What to do next in Gallery."""

from services.worldmodel.phone.apps.gallery import BIN, Gallery, Photo
from services.worldmodel.phone.screen import find
from services.worldmodel.phone.state import Frame, Phone, Stack
from services.worldmodel.phone.tiles import key_of
from services.worldmodel.tasks.touch import GIVE_UP, press, reach
from wmkit.domain.actions import Action

APP = "Gallery"


def gallery(phone: Phone, now: Gallery, want: Gallery) -> Action | None:
    """See what is seen once, change and delete pictures, then take the ones that are missing."""
    if want.seen[: len(now.seen)] != now.seen or now.shots > want.shots:
        return GIVE_UP
    for name in want.seen[len(now.seen) :]:
        once = (Frame("Once"),)
        return reach(phone, APP, once) or press(phone, key_of(now.once, name))
    for photo in now.photos:
        if want.photo(photo.name) != photo:
            return _change(phone, photo, want.photo(photo.name))
    missing = [photo for photo in want.photos if now.photo(photo.name) is None]
    if len(missing) != want.shots - now.shots:
        return GIVE_UP
    if missing:
        allow = find(phone, "os.allow")
        if allow is not None:
            return press(phone, "os.allow")
        page = (Frame("Photos"), Frame("camera"))
        return reach(phone, APP, page) or press(phone, "shoot")
    return None


def _change(phone: Phone, photo: Photo, kept: Photo | None) -> Action:
    """Bring one picture to its wanted album and state, or delete it."""
    page = page_of(phone, photo)
    frame = phone.frame()
    if kept is None or kept.album == BIN != photo.album:
        if phone.nav.front == APP and frame is not None and frame.dialog == photo.name:
            return press(phone, "confirm")
        if kept is None or kept.favourite == photo.favourite:
            return reach(phone, APP, page) or press(phone, "delete")
    if photo.album == BIN:
        return reach(phone, APP, page) or press(phone, "restore")
    if kept.favourite != photo.favourite:
        return reach(phone, APP, page) or press(phone, "star")
    moving = (*page, Frame("move", photo.name))
    return reach(phone, APP, moving) or press(phone, f"to:{kept.album}")


def page_of(phone: Phone, photo: Photo) -> Stack:
    """The page of a picture: from all pictures, or from its album where that is needed or open."""
    stack = phone.nav.stack(APP)
    inner = Frame("photo", photo.name)
    here = len(stack) > 1 and stack[1].page == "album" and stack[1].item == photo.album
    if photo.album == BIN or (here and phone.nav.front == APP):
        return (Frame("Albums"), Frame("album", photo.album), inner)
    return (Frame("Photos"), inner)
