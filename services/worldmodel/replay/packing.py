"""From image files and played trajectories to a packed file of recordings.

Every picture goes into the blob store once; the packed file names it by digest. A source line
is a `Recording`, or a line of a run's `trajectories.jsonl`, whose trajectory the store holds.
"""

import asyncio
import json
from collections.abc import AsyncIterator
from pathlib import Path

from pydantic import ValidationError

from services.worldmodel import screenshots
from services.worldmodel.replay.recording import (
    RecordedScreen,
    Recording,
    json_lines,
    read_lines,
)
from wmkit.domain.actions import TERMINAL, from_dict
from wmkit.domain.episode import Trajectory
from wmkit.domain.errors import InvalidRequest, NotFound, WMError
from wmkit.domain.tasks import Verdict
from wmkit.ports import BlobStore


async def pack(source: Path, target: Path, blobs: BlobStore) -> int:
    """Write `target` from `source`; how many episodes it holds.

    Raises InvalidRequest for a line that is neither, a file that is missing or no picture.
    `target` appears complete or not at all.
    """
    part = target.with_name(target.name + ".part")
    count = 0
    try:
        with part.open("w", encoding="utf-8") as out:
            async for recording in _recordings(source, blobs):
                screens = [await _packed(s, source.parent, blobs) for s in recording.screens]
                done = recording.model_copy(update={"screens": tuple(screens)})
                out.write(done.model_dump_json(exclude_defaults=True) + "\n")
                count += 1
        part.replace(target)
    finally:
        part.unlink(missing_ok=True)
    return count


def from_trajectory(trajectory: Trajectory) -> Recording:
    """What was committed in a played episode; imagined steps and unread actions are left out."""
    screens, actions = [], []
    for step in trajectory.steps:
        if step.action is None or isinstance(from_dict(step.action), TERMINAL):
            continue
        screens.append(RecordedScreen(picture=step.screenshot))
        actions.append(step.action)
    screens.append(RecordedScreen(picture=trajectory.final_screenshot))
    verdict = trajectory.judgement.verdict
    return Recording(
        episode=trajectory.job.job_id,
        goal=trajectory.task.goal,
        screens=tuple(screens),
        actions=tuple(actions),
        answer=trajectory.answer,
        finish_status=trajectory.finish_status,
        succeeded=None if verdict is Verdict.UNSURE else verdict is Verdict.SUCCESS,
    )


async def _recordings(source: Path, blobs: BlobStore) -> AsyncIterator[Recording]:
    for number, line in json_lines(source):
        try:
            data = json.loads(line)
        except ValueError as error:
            raise InvalidRequest(f"{source}:{number}: no JSON: {error}", "replay") from None
        if not isinstance(data, dict) or "trajectory" not in data:
            break
        if data["trajectory"]:
            stored = await blobs.get(data["trajectory"])
            try:
                yield from_trajectory(Trajectory.model_validate_json(stored))
            except ValidationError:
                raise InvalidRequest(
                    f"{source}:{number}: blob {data['trajectory']} is no trajectory", "replay"
                ) from None
    else:
        return
    for _, recording in read_lines(source):
        yield recording


async def _packed(screen: RecordedScreen, folder: Path, blobs: BlobStore) -> RecordedScreen:
    if screen.packed:
        return screen
    if screen.file:
        path = folder / screen.file
        try:
            data = await asyncio.to_thread(path.read_bytes)
        except OSError as error:
            raise InvalidRequest(f"{path} cannot be read: {error.strerror}", "replay") from None
        name = await blobs.put(data)
    else:
        path, name = Path(screen.picture), screen.picture
        try:
            data = await blobs.get(name)
        except NotFound:
            raise InvalidRequest(f"the blob store has no picture {name}", "replay") from None
    try:
        size, form = await screenshots.inspect(data)
    except WMError as error:
        raise InvalidRequest(f"{path}: {error.message}", "replay") from None
    return RecordedScreen(
        picture=name, format=form, width_px=size.width_px, height_px=size.height_px
    )
