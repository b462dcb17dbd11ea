"""Commands and options of `wmr1 queue` and `wmr1 trajectories`; see those modules."""

from pathlib import Path
from typing import Annotated

import typer

queue_app = typer.Typer(no_args_is_help=True, help="The job queue: stats, dead jobs, drain.")
dead_app = typer.Typer(no_args_is_help=True, help="Jobs that ended without an episode.")
queue_app.add_typer(dead_app, name="dead")
trajectories_app = typer.Typer(
    no_args_is_help=True, help="Stored episodes: export, import, validate, show."
)

Redis = Annotated[
    str, typer.Option("--redis", metavar="URL", help="WMR1_REDIS_URL, or the local one.")
]
Json = Annotated[bool, typer.Option("--json", help="Print JSON.")]
OfRun = Annotated[str, typer.Option("--run", metavar="RUN", help="Of this run only.")]
Blobs = Annotated[
    str, typer.Option("--blobs", metavar="URL", help="Blob store; WMR1_BLOBS, or var/blobs.")
]
Names = Annotated[list[str], typer.Argument(help="Files, digests in the blob store, or runs.")]
Phase = Annotated[str, typer.Option(help='Of a run, this phase only, such as "train-3".')]


@queue_app.command("stats", epilog="Example: wmr1 queue stats --redis redis://127.0.0.1:6379/0")
def queue_stats(redis: Redis = "", as_json: Json = False) -> None:
    """Show what waits, what is being played, and the ledger of every run."""
    from wmkit.cli.queue import stats

    stats(redis, as_json=as_json)


@queue_app.command(
    "drain", epilog="Example: wmr1 queue drain --run demo-20260101-120000-abcd --yes"
)
def queue_drain(
    run: OfRun = "",
    reason: Annotated[str, typer.Option(help="Goes into the ledger.")] = "drained by hand",
    yes: Annotated[bool, typer.Option("--yes", help="Really do it.")] = False,
    redis: Redis = "",
) -> None:
    """End all outstanding jobs as dead, so that the ledger balances."""
    from wmkit.cli.queue import drain

    drain(redis, run, reason, sure=yes)


@dead_app.command("list", epilog="Example: wmr1 queue dead list --json")
def queue_dead_list(run: OfRun = "", as_json: Json = False, redis: Redis = "") -> None:
    """List jobs that ended without an episode, with the reason; --json has the tracebacks."""
    from wmkit.cli.queue import dead_list

    dead_list(redis, run, as_json=as_json)


@dead_app.command("retry", epilog="Example: wmr1 queue dead retry 1767225600000-0")
def queue_dead_retry(
    letters: Annotated[
        list[str] | None, typer.Argument(help="Ids from wmr1 queue dead list.")
    ] = None,
    run: OfRun = "",
    everything: Annotated[bool, typer.Option("--all", help="All of them.")] = False,
    redis: Redis = "",
) -> None:
    """Play dead jobs again, for RUN~again: the books of RUN itself stay closed."""
    from wmkit.cli.queue import dead_retry

    dead_retry(redis, letters or [], run, everything=everything)


@trajectories_app.command(
    "export", epilog="Example: wmr1 trajectories export demo-20260101-120000-abcd --to out"
)
def trajectories_export(
    names: Names,
    to: Annotated[Path, typer.Option(help="Folder for the files.")],
    phase: Phase = "",
    bare: Annotated[bool, typer.Option("--bare", help="Leave the pictures out.")] = False,
    blobs: Blobs = "",
) -> None:
    """Write episodes as safetensors files, one each, with their pictures and states."""
    from wmkit.cli.trajectories import export

    export(names, to, blobs, phase=phase, bare=bare)


@trajectories_app.command("import", epilog="Example: wmr1 trajectories import out/*.safetensors")
def trajectories_import(
    files: Annotated[list[Path], typer.Argument(help="Files that export wrote.")],
    blobs: Blobs = "",
) -> None:
    """Put files into the blob store; prints the digest of each."""
    from wmkit.cli.trajectories import bring_in

    bring_in(files, blobs)


@trajectories_app.command(
    "validate", epilog="Example: wmr1 trajectories validate out/*.safetensors"
)
def trajectories_validate(names: Names, phase: Phase = "", blobs: Blobs = "") -> None:
    """Check episodes; exit code 1 when one is not what it should be."""
    from wmkit.cli.trajectories import validate

    raise typer.Exit(0 if validate(names, blobs, phase=phase) else 1)


@trajectories_app.command("show", epilog="Example: wmr1 trajectories show FILE --html film.html")
def trajectories_show(
    name: Annotated[str, typer.Argument(help="A file, or a digest in the blob store.")],
    html: Annotated[Path | None, typer.Option(help="Write a filmstrip there.")] = None,
    browse: Annotated[bool, typer.Option("--open", help="Open the filmstrip.")] = False,
    blobs: Blobs = "",
) -> None:
    """Print an episode step by step, or draw it as a filmstrip."""
    from wmkit.cli.trajectories import show

    show(name, html, blobs, browse=browse)
