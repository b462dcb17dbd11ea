"""`wmr1 queue`: what waits, what died, playing it again, ending what is left."""

import asyncio
import json
import os
from collections.abc import Awaitable, Callable, Sequence
from typing import TypeVar

from rich.table import Table

from wmkit.cli.console import out
from wmkit.domain.errors import InvalidRequest
from wmkit.queue.admin import QueueAdmin, QueueStats

T = TypeVar("T")
DEFAULT_REDIS = "redis://127.0.0.1:6379/0"


def stats(redis: str, *, as_json: bool) -> None:
    """Streams, dead letters and the ledger of each run. Raises Unavailable."""
    found = _ask(redis, lambda admin: admin.stats())
    if as_json:
        print(json.dumps(found.as_dict(), indent=2))
    else:
        _show(found)


def dead_list(redis: str, run_id: str, *, as_json: bool) -> None:
    """Dead letters, the oldest first, tracebacks included in JSON only. Raises Unavailable."""
    letters = _ask(redis, lambda admin: admin.letters(run_id))
    if as_json:
        print(json.dumps([{"id": n} | x.model_dump(mode="json") for n, x in letters], indent=2))
        return
    if not letters:
        out.print("no dead letters")
    for letter_id, letter in letters:
        out.print(f"[bold]{letter_id}[/bold] {letter.status} {letter.job.job_id}", soft_wrap=True)
        out.print(f"    {letter.reason}", soft_wrap=True, markup=False)
        if last := letter.traceback.strip().splitlines()[-1:]:
            out.print(f"    {last[0]}", soft_wrap=True, markup=False)


def dead_retry(redis: str, letter_ids: Sequence[str], run_id: str, *, everything: bool) -> None:
    """Play dead jobs again. Raises NotFound, Unavailable, InvalidRequest without a choice."""
    if not (letter_ids or run_id or everything):
        raise InvalidRequest("name letters, or a run by --run, or --all; see wmr1 queue dead list")

    async def again(admin: QueueAdmin) -> list[str]:
        chosen = letter_ids or [letter_id for letter_id, _ in await admin.letters(run_id)]
        return sorted({job.run_id for job in await admin.play_again(chosen)})

    runs = _ask(redis, again)
    if runs:
        out.print(f"queued again, for {', '.join(runs)}", soft_wrap=True)
    else:
        out.print("no dead letters")


def drain(redis: str, run_id: str, reason: str, *, sure: bool) -> None:
    """End all outstanding jobs as dead. Raises Unavailable, InvalidRequest unless `sure`."""
    if not sure:
        of = f"of {run_id} " if run_id else ""
        raise InvalidRequest(f"this ends all outstanding jobs {of}as dead; add --yes to do it")
    ended = _ask(redis, lambda admin: admin.drain(reason, run_id))
    out.print(f"{ended} jobs ended as dead")


def _ask(redis: str, what: Callable[[QueueAdmin], Awaitable[T]]) -> T:
    async def ask() -> T:
        async with QueueAdmin(redis or os.environ.get("WMR1_REDIS_URL", DEFAULT_REDIS)) as admin:
            return await what(admin)

    return asyncio.run(ask())


def _show(found: QueueStats) -> None:
    table = Table(title="jobs", title_justify="left")
    for column in ("priority", "waiting", "held", "workers", "oldest renewal"):
        table.add_column(column, justify="left" if column == "priority" else "right")
    for stream in found.streams:
        oldest = f"{stream.oldest_held_s:.0f} s" if stream.held else "-"
        row = (stream.waiting, stream.held, len(stream.workers), oldest)
        table.add_row(stream.priority, *map(str, row))
    out.print(table)
    out.print(f"{found.pausing} pause before a retry, {found.letters} dead letters")
    runs = Table(title="runs", title_justify="left")
    for column in ("run", "requested", "accepted", "masked", "dead", "outstanding"):
        runs.add_column(column, justify="left" if column == "run" else "right")
    for run_id, ledger in found.runs.items():
        counts = (ledger.requested, ledger.accepted, ledger.masked, ledger.dead)
        runs.add_row(run_id, *map(str, (*counts, ledger.requested - ledger.ended)))
    if found.runs:
        out.print(runs)
