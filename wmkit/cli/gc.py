"""`wmr1 gc`: mark what the runs' files name, sweep the other blobs.

Marked are, for every folder with a `trajectories.jsonl`: its trajectories, the states and
pictures that they name, and the last two published weights (a policy that restarts loads the
last ones; a run's result is its checkpoint folder). States in Redis are younger than
`keep_hours` or made again from their task.
"""

import asyncio
import json
import os
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from rich.filesize import decimal

from wmkit.blobs import ObjectBlobs, open_blobs
from wmkit.cli import places
from wmkit.cli.console import out
from wmkit.domain.episode import Trajectory
from wmkit.domain.errors import InvalidRequest, NotFound
from wmkit.trajectories import named_blobs

WEIGHTS_KEPT = 2


def collect_garbage(folder: Path | None, blobs: str, keep_hours: float, *, dry_run: bool) -> None:
    """Raises NotFound without runs, InvalidRequest for a store in memory, Unavailable."""
    runs = folder or Path(os.environ.get("WMR1_RUNS", places.root() / "runs"))
    url = blobs or os.environ.get("WMR1_BLOBS", str(places.root() / "var" / "blobs"))
    kept = open_blobs(url)
    if not isinstance(kept, ObjectBlobs):
        raise InvalidRequest(f"{url} is gone with its process; there is nothing to collect")
    if not runs.is_dir():
        # With a wrong folder everything would look like garbage.
        raise NotFound(f"there is no folder of runs {places.shown(runs)}", str(runs))
    with out.status("marking"):
        marked = asyncio.run(mark(runs, kept))
    newest = time.time() - keep_hours * 3600
    old = [b for b in kept.stored() if b.digest not in marked and b.changed < newest]
    size = decimal(sum(blob.size for blob in old))
    if not dry_run:
        kept.delete([blob.digest for blob in old])
    done = "would be deleted" if dry_run else "deleted"
    out.print(f"{len(old)} blobs, {size}, {done}; {len(marked)} are named by runs")


async def mark(runs: Path, blobs: ObjectBlobs) -> set[str]:
    """Digests of everything that the runs in the folder name.

    Raises InvalidRequest for a trajectory that cannot be read: what it names is unknown.
    """
    marked: set[str] = set()
    for manifest in sorted(runs.glob("*/trajectories.jsonl")):
        weights = [line["weights"] for line in _lines(manifest.parent / "versions.jsonl")]
        marked.update(weights[-WEIGHTS_KEPT:])
        for line in _lines(manifest):
            digest = line["trajectory"]
            if not digest or digest in marked:
                continue
            marked.add(digest)
            try:
                played = Trajectory.model_validate_json(await blobs.get(digest))
            except NotFound:
                continue  # the run has outlived its blobs; nothing of it is left to keep
            except ValueError:
                raise InvalidRequest(
                    f"trajectory {digest} of {manifest.parent.name} is of another version, so "
                    "what it names cannot be told; delete that run's folder, or use its version"
                ) from None
            marked |= named_blobs(played)
    return marked


def _lines(path: Path) -> Iterator[dict[str, Any]]:
    if path.is_file():
        for text in path.read_text("utf-8").splitlines():
            yield json.loads(text)
