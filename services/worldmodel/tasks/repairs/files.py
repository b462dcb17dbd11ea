"""What to do next in Files."""

from services.worldmodel.phone.apps.files import BIN, File, Files
from services.worldmodel.phone.state import Frame, Phone, Stack
from services.worldmodel.phone.tiles import key_of
from services.worldmodel.tasks.touch import GIVE_UP, fill, press, reach
from wmkit.domain.actions import Action

APP = "Files"


def files(phone: Phone, now: Files, want: Files) -> Action | None:
    """Unseal, then rename, move, restore and delete; what is gone stays gone."""
    if want.unsealed[: len(now.unsealed)] != now.unsealed:
        return GIVE_UP
    for name, fate in want.unsealed[len(now.unsealed) :]:
        page = (Frame("Sealed"), Frame("seal", name))
        fates = next(item.fates for item in now.sealed if item.name == name)
        return reach(phone, APP, page) or press(phone, key_of(fates, fate))
    for file in now.files:
        if want.file(file.name) != file:
            return _change(phone, file, now, want)
    if any(now.file(file.name) is None for file in want.files):
        return GIVE_UP
    if now.by_size != want.by_size:
        return _sort(phone)
    return None


def _sort(phone: Phone) -> Action:
    """In the folder in front, if it is one, else in any."""
    frame = phone.frame()
    here = frame is not None and phone.nav.front == APP and frame.page == "folder"
    name = frame.item if frame is not None and here else "Documents"
    page = (Frame("Folders"), Frame("folder", name))
    return reach(phone, APP, page) or press(phone, "sort")


def _change(phone: Phone, file: File, now: Files, want: Files) -> Action:
    """Bring one file to its wanted name and folder, or delete it."""
    page = page_of(file)
    kept = want.file(file.name)
    frame = phone.frame()
    if kept is None:
        missing = [f for f in want.files if now.file(f.name) is None]
        alike = [f for f in missing if f.megabytes == file.megabytes]
        if alike and file.folder != BIN:
            form = (*page, Frame("rename", file.name))
            return reach(phone, APP, form) or fill(phone, {"Name": alike[0].name})
        if phone.nav.front == APP and frame is not None and frame.dialog == file.name:
            return press(phone, "confirm")
        return reach(phone, APP, page) or press(phone, "delete")
    if kept.megabytes != file.megabytes:
        return GIVE_UP
    if kept.folder == BIN:
        return reach(phone, APP, page) or press(phone, "delete")
    if file.folder == BIN:
        return reach(phone, APP, page) or press(phone, "restore")
    target = (*page, Frame("move", file.name))
    return reach(phone, APP, target) or press(phone, f"to:{kept.folder}")


def page_of(file: File) -> Stack:
    """The page of a file."""
    return (Frame("Folders"), Frame("folder", file.folder), Frame("file", file.name))
