"""Tasks in Files."""

from dataclasses import replace
from random import Random

from services.worldmodel.phone.apps.files import BIN, FOLDERS, WORDS, File, Files
from services.worldmodel.phone.state import Frame, Phone, Stack
from services.worldmodel.tasks.task import edited
from services.worldmodel.tasks.template import Draft, Template, change, wordings
from services.worldmodel.tasks.touch import Look

APP = "Files"
ROOT = Frame("Folders")
PLACES = tuple(name for name in FOLDERS if name != BIN)
DELETE = (
    "Delete the file {0} from {1}.",
    "Delete {0} in the folder {1}.",
    "Move the file {0} from {1} to the Bin.",
)


def folder(name: str) -> Stack:
    """The page of a folder."""
    return (ROOT, Frame("folder", name))


def _kept(rng: Random, files: Files) -> File:
    """A file that is not in the bin."""
    return rng.choice([file for file in files.files if file.folder != BIN])


def _free(rng: Random, files: Files) -> str:
    """A name that neither a file nor a sealed file has."""
    taken = {file.name for file in files.files} | {item.name for item in files.sealed}
    return rng.choice([word for word in WORDS if word not in taken])


def _delete(rng: Random, phone: Phone, _seed: int) -> Draft:
    files: Files = phone.of(APP)
    file = _kept(rng, files)
    words = wordings(DELETE, file.name, file.folder)
    return change(phone, words, APP, files, files.moving(file.name, BIN))


def _delete_maybe(rng: Random, phone: Phone, seed: int) -> Draft:
    """On odd seeds the file is not in that folder, nor in any other."""
    if seed % 2 == 0:
        return _delete(rng, phone, seed)
    files: Files = phone.of(APP)
    place = rng.choice(PLACES)
    look = Look(APP, folder(place), to_end=True)
    words = wordings(DELETE, _free(rng, files), place)
    return Draft(words, phone.data, phone.data, look, feasible=False)


def _binned(rng: Random, files: Files) -> tuple[Files, str]:
    """The data with one more file in the bin, and its name."""
    name = _kept(rng, files).name
    return files.moving(name, BIN), name


def _restore(rng: Random, phone: Phone, _seed: int) -> Draft:
    start, name = _binned(rng, phone.of(APP))
    file = start.file(name)
    assert file is not None
    words = wordings(
        (
            "Restore the file {}.",
            "Get {} back from the Bin of Files.",
            "Undelete the file {}.",
        ),
        name,
    )
    return change(phone, words, APP, start, start.moving(name, file.origin))


def _erase(rng: Random, phone: Phone, _seed: int) -> Draft:
    start, name = _binned(rng, phone.of(APP))
    words = wordings(
        (
            "Delete {} from the Bin of Files.",
            "Delete the file {} in the Bin for good.",
            "Remove {} from Files for ever; it is in the Bin.",
        ),
        name,
    )
    return change(phone, words, APP, start, start.without(name))


def _empty_bin(rng: Random, phone: Phone, _seed: int) -> Draft:
    start: Files = phone.of(APP)
    while len(start.inside(BIN)) < 2:
        start, _ = _binned(rng, start)
    want = start
    for file in start.inside(BIN):
        want = want.without(file.name)
    words = (
        "Empty the Bin of Files.",
        "Delete every file in the Bin.",
        "Delete all that is in the Bin of Files.",
    )
    return change(phone, words, APP, start, want)


def _rename(rng: Random, phone: Phone, _seed: int) -> Draft:
    files: Files = phone.of(APP)
    file, name = _kept(rng, files), _free(rng, files)
    words = wordings(
        (
            "Rename the file {0} in {2} to {1}.",
            "Give {0} in the folder {2} the name {1}.",
            "Call the file {0} in {2} {1} from now on.",
        ),
        file.name,
        name,
        file.folder,
    )
    return change(phone, words, APP, files, files.renaming(file.name, name))


def _move(rng: Random, phone: Phone, _seed: int) -> Draft:
    files: Files = phone.of(APP)
    file = _kept(rng, files)
    target = rng.choice([place for place in PLACES if place != file.folder])
    words = wordings(
        (
            "Move the file {0} from {1} to {2}.",
            "Move {0} out of {1} into {2}.",
            "Put {0} of {1} into the folder {2}.",
        ),
        file.name,
        file.folder,
        target,
    )
    return change(phone, words, APP, files, files.moving(file.name, target))


def _tidy(rng: Random, phone: Phone, _seed: int) -> Draft:
    """Every file of one folder goes to another."""
    start: Files = phone.of(APP)
    source, target = rng.sample(PLACES, 2)
    count = rng.randint(2, 4)
    while len(start.inside(source)) < count:
        spare = [f.name for f in start.files if f.folder not in (source, BIN)]
        start = start.moving(rng.choice(spare), source)
    while len(start.inside(source)) > count:
        start = start.moving(start.inside(source)[0].name, target)
    want = start
    for file in start.inside(source):
        want = want.moving(file.name, target)
    words = wordings(
        (
            "Move every file in {0} to {1}.",
            "Move all files from {0} to {1}.",
            "Put all that is in {0} into the folder {1}.",
        ),
        source,
        target,
    )
    return change(phone, words, APP, start, want)


def _size(rng: Random, phone: Phone, _seed: int) -> Draft:
    files: Files = phone.of(APP)
    file = _kept(rng, files)
    words = wordings(
        (
            "How many MB has the file {0} in {1}?",
            "What is the size of {0} in {1}, in MB?",
            "How large is {0} in the folder {1}? Answer in MB.",
        ),
        file.name,
        file.folder,
    )
    look = Look(APP, folder(file.folder), item=f"open:{file.name}")
    return Draft(words, phone.data, phone.data, look, str(file.megabytes), "number")


def _largest(rng: Random, phone: Phone, _seed: int) -> Draft:
    files: Files = phone.of(APP)
    place = rng.choice([p for p in PLACES if files.inside(p)])
    files = _at_least(rng, files, place, 3)
    largest = max(files.inside(place), key=lambda file: file.megabytes)
    words = wordings(
        (
            "Which file in {} is the largest?",
            "What is the name of the largest file in {}?",
            "Which file takes most space in {}?",
        ),
        place,
    )
    data = edited(phone.data, Files=files)
    return Draft(words, data, data, Look(APP, folder(place), to_end=True), largest.name, "name")


def _at_least(rng: Random, files: Files, place: str, count: int) -> Files:
    while len(files.inside(place)) < count:
        others = [file.name for file in files.files if file.folder not in (place, BIN)]
        files = files.moving(rng.choice(others), place)
    return files


def _count(rng: Random, phone: Phone, _seed: int) -> Draft:
    files: Files = phone.of(APP)
    place = rng.choice(PLACES)
    words = wordings(
        (
            "How many files are in {}?",
            "Count the files in {}.",
            "How many files does the folder {} have?",
        ),
        place,
    )
    count = str(len(files.inside(place)))
    return Draft(words, phone.data, phone.data, Look(APP, (ROOT,)), count, "count")


def _if_large(rng: Random, phone: Phone, _seed: int) -> Draft:
    """The size decides between deleting and moving."""
    files: Files = phone.of(APP)
    file = _kept(rng, files)
    target = rng.choice([place for place in PLACES if place != file.folder])
    limit = rng.choice([n for n in range(10, 90, 10) if n != file.megabytes])
    words = wordings(
        (
            "If {0} in {1} is larger than {2} MB, delete it; otherwise move it to {3}.",
            "Delete {0} in {1} if it has more than {2} MB, else move it to {3}.",
            "Move {0} from {1} to {3}, but delete it if it is over {2} MB.",
        ),
        file.name,
        file.folder,
        str(limit),
        target,
    )
    place = BIN if file.megabytes > limit else target
    return change(phone, words, APP, files, files.moving(file.name, place))


def _sort(rng: Random, phone: Phone, _seed: int) -> Draft:
    files: Files = phone.of(APP)
    words = (
        "Sort Files by size.",
        "Show the largest files first.",
        "Let Files sort its folders by size.",
    )
    return change(phone, words, APP, files, replace(files, by_size=True))


TEMPLATES = (
    Template("files_delete", (APP,), "list", _delete),
    Template("files_delete_maybe", (APP,), "infeasible", _delete_maybe),
    Template("files_restore", (APP,), "list", _restore),
    Template("files_erase", (APP,), "list", _erase),
    Template("files_empty_bin", (APP,), "list", _empty_bin),
    Template("files_rename", (APP,), "form", _rename),
    Template("files_move", (APP,), "list", _move),
    Template("files_move_all", (APP,), "list", _tidy),
    Template("files_size", (APP,), "lookup", _size),
    Template("files_largest", (APP,), "lookup", _largest),
    Template("files_count", (APP,), "lookup", _count),
    Template("files_if_large", (APP,), "conditional", _if_large),
    Template("files_sort", (APP,), "toggle", _sort),
)
