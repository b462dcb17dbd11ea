"""`wmr1 trajectories`: stored episodes as files, checked, and shown.

A trajectory is named by a file, by its digest in the blob store, or by a run, which means
all that the run's `trajectories.jsonl` lists.
"""

import asyncio
import json
import os
import re
import webbrowser
from collections.abc import AsyncIterator, Sequence
from pathlib import Path

from rich.progress import track

from wmkit.blobs import open_blobs
from wmkit.cli import places
from wmkit.cli.console import out
from wmkit.domain.episode import Trajectory
from wmkit.domain.errors import CorruptBlob, InvalidRequest, NotFound, WMError
from wmkit.domain.validation import problems
from wmkit.ports import BlobStore
from wmkit.trajectories import Bundle, collect, named_blobs, pack, store, unpack
from wmkit.trajectories.film import film, lines

SUFFIX = ".safetensors"


def export(names: Sequence[str], to: Path, blobs: str, *, phase: str, bare: bool) -> None:
    """Write one file each into the folder `to`. Raises NotFound, InvalidRequest."""
    kept = _blobs(blobs)

    async def write() -> int:
        to.mkdir(parents=True, exist_ok=True)
        count = 0
        for digest in track(_digests(names, phase), "exporting", console=out, transient=True):
            bundle = await collect(await _stored(digest, kept), kept, pictures=not bare)
            name = re.sub(r"[^\w.~-]+", "-", bundle.trajectory.job.job_id)
            (to / f"{name}{SUFFIX}").write_bytes(pack(bundle))
            count += 1
        return count

    out.print(f"{asyncio.run(write())} files in {places.shown(to)}", soft_wrap=True)


def bring_in(files: Sequence[Path], blobs: str) -> None:
    """Put files into the blob store and print their digests. Raises InvalidRequest.

    They are listed, each once, in the run `imported`, without which they would be garbage and
    from which `wmr1 sft` learns.
    """
    kept = _blobs(blobs)
    manifest = _run_folder("imported") / "trajectories.jsonl"

    async def read() -> None:
        manifest.parent.mkdir(parents=True, exist_ok=True)
        known = manifest.read_text("utf-8").splitlines() if manifest.exists() else []
        listed = {json.loads(line)["trajectory"] for line in known}
        with manifest.open("a", encoding="utf-8") as file:
            for path in files:
                bundle = _unpacked(path)
                digest = await store(bundle, kept)
                if digest not in listed:
                    line = {"phase": "imported", "status": "accepted", "trajectory": digest}
                    file.write(json.dumps({"job_id": bundle.trajectory.job.job_id} | line) + "\n")
                    listed.add(digest)
                print(digest)

    asyncio.run(read())


def validate(names: Sequence[str], blobs: str, *, phase: str) -> bool:
    """Say what is wrong with which one; True when nothing is."""

    async def check() -> tuple[int, int]:
        count = wrong = 0
        async for name, found in _checked(names, blobs, phase):
            count += 1
            wrong += bool(found)
            for problem in found:
                out.print(f"{name}: {problem}", soft_wrap=True, markup=False)
        return count, wrong

    count, wrong = asyncio.run(check())
    out.print(f"{count} trajectories, {wrong} with problems")
    return not wrong


def show(name: str, html: Path | None, blobs: str, *, browse: bool) -> None:
    """Print an episode, or write its filmstrip. Raises NotFound, InvalidRequest."""
    kept = _blobs(blobs)

    async def read() -> Bundle:
        if Path(name).is_file():
            return _unpacked(Path(name))
        found = await _stored(name, kept)
        return await collect(found, kept) if html else Bundle(found)

    bundle = asyncio.run(read())
    if html is None:
        for line in lines(bundle.trajectory):
            out.print(line, soft_wrap=True, markup=False)
        return
    html.write_text(film(bundle), "utf-8")
    out.print(f"filmstrip in {places.shown(html)}", soft_wrap=True)
    if browse:
        webbrowser.open(html.resolve().as_uri())


async def _checked(
    names: Sequence[str], blobs: str, phase: str
) -> AsyncIterator[tuple[str, list[str]]]:
    files = [name for name in names if Path(name).is_file()]
    for name in files:
        try:
            yield name, problems(_unpacked(Path(name)).trajectory)
        except (InvalidRequest, CorruptBlob) as error:
            yield name, [error.message]
    others = [name for name in names if name not in files]
    kept = _blobs(blobs)
    for digest in _digests(others, phase) if others else ():
        try:
            found = await _stored(digest, kept)
            missing = [b for b in sorted(named_blobs(found)) if not await kept.has(b)]
        except WMError as error:
            yield digest, [error.message]
        else:
            yield digest, problems(found) + [f"blob {b} is not in the store" for b in missing]


def _digests(names: Sequence[str], phase: str) -> list[str]:
    """Digests of what is named: a digest itself, or all accepted episodes of a run."""
    found = []
    for name in names:
        if re.fullmatch(r"[0-9a-f]{64}", name):
            found.append(name)
            continue
        log = _run_folder(name) / "trajectories.jsonl"
        if not log.is_file():
            raise NotFound(
                f"{name!r} is no trajectory file, no digest, and no run in "
                f"{places.shown(log.parent.parent)}",
                name,
            )
        for text in log.read_text("utf-8").splitlines():
            line = json.loads(text)
            if line["trajectory"] and phase in ("", line["phase"]):
                found.append(line["trajectory"])
    if not found:
        raise NotFound(f"{', '.join(names)}: no trajectories" + (f" of {phase}" if phase else ""))
    return found


def _run_folder(name: str) -> Path:
    if (Path(name) / "run.json").is_file():
        return Path(name)
    return Path(os.environ.get("WMR1_RUNS", places.root() / "runs")) / name


def _blobs(url: str) -> BlobStore:
    return open_blobs(url or os.environ.get("WMR1_BLOBS", str(places.root() / "var" / "blobs")))


async def _stored(digest: str, blobs: BlobStore) -> Trajectory:
    try:
        return Trajectory.model_validate_json(await blobs.get(digest))
    except ValueError:
        raise InvalidRequest(f"blob {digest} holds no trajectory of this version") from None


def _unpacked(path: Path) -> Bundle:
    try:
        return unpack(path.read_bytes())
    except OSError as error:
        raise InvalidRequest(f"{path} cannot be read: {error.strerror}") from None
    except WMError as error:
        raise type(error)(f"{path}: {error.message}") from None
