"""The commands and their options. What they do is in modules that they import when called."""

from pathlib import Path
from typing import Annotated

import typer

from wmkit.cli.fabric import queue_app, trajectories_app

app = typer.Typer(
    name="wmr1",
    help="Train phone agents inside a world model.\n\nStart here: [bold]wmr1 demo[/bold]",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    rich_markup_mode="rich",
    context_settings={"help_option_names": ["-h", "--help"]},
)
runs_app = typer.Typer(no_args_is_help=True, help="Training runs: list, show, compare, watch.")
app.add_typer(runs_app, name="runs")
dialect_app = typer.Typer(no_args_is_help=True, help="How agents write actions.")
app.add_typer(dialect_app, name="dialect")
judge_app = typer.Typer(no_args_is_help=True, help="Judges that are models.")
app.add_typer(judge_app, name="judge")
app.add_typer(queue_app, name="queue")
app.add_typer(trajectories_app, name="trajectories")

tasks_app = typer.Typer(no_args_is_help=True, help="Tasks: list, generate, check, curate, count.")
app.add_typer(tasks_app, name="tasks")

TrainerAt = Annotated[
    str, typer.Option("--trainer", metavar="HOST:PORT", help="A trainer that is running.")
]
WorldAt = Annotated[
    str,
    typer.Option("--worldmodel", metavar="HOST:PORT", help="A world model that is running."),
]
RunsFolder = Annotated[
    Path | None,
    typer.Option("--folder", help="The folder that holds the runs.", envvar="WMR1_RUNS"),
]
NEAR_TRAINER = "127.0.0.1:50054"


def _version(wanted: bool) -> None:
    if wanted:
        import wmkit

        print(wmkit.__version__)
        raise typer.Exit


@app.callback()
def _root(
    version: Annotated[
        bool, typer.Option("--version", callback=_version, is_eager=True, help="Print the version.")
    ] = False,
) -> None:
    pass


@app.command(epilog="Example: wmr1 demo --seed 2")
def demo(
    seed: Annotated[int | None, typer.Option(min=0, help="Another seed for the run.")] = None,
    recipe: Annotated[str, typer.Option(help="What to train.")] = "recipes/demo.toml",
) -> None:
    """Train the tiny policy on this machine and show what it learned, in a few minutes."""
    from wmkit.cli.demo import demo as run

    run(recipe, seed)


@app.command(epilog="Example: wmr1 up, then in another terminal: python examples/step.py")
def up(
    services: Annotated[
        list[str] | None, typer.Argument(help="Only these services; all of them by default.")
    ] = None,
    checkpoint: Annotated[
        str, typer.Option(help="Checkpoint folder of the policy; the tiny one by default.")
    ] = "",
    redis: Annotated[
        str, typer.Option(metavar="URL", help="A Redis that is running, instead of an own one.")
    ] = "",
    redis_port: Annotated[
        int,
        typer.Option(
            min=0,
            max=65535,
            help="Port of the own Redis; 0 is 6379, or a free one if it is taken.",
        ),
    ] = 0,
    free_ports: Annotated[
        bool, typer.Option("--free-ports", help="Take free ports instead of 50051 to 50055.")
    ] = False,
    state: Annotated[
        Path | None, typer.Option(help="Folder for Redis data and logs; var/ by default.")
    ] = None,
) -> None:
    """Keep a stack running until Ctrl-C: Redis, renderer, world model, policy, rollout, trainer."""
    from wmkit.cli.up import up as run

    run(
        services or [],
        policy=checkpoint,
        redis_url=redis,
        redis_port=redis_port,
        any_port=free_ports,
        state=state.resolve() if state else None,
    )


@app.command(epilog="Example: wmr1 train recipes/demo.toml --seed 3")
def train(
    recipe: Annotated[str, typer.Argument(help="A recipe file.")],
    seed: Annotated[int | None, typer.Option(min=0, help="Another seed for the run.")] = None,
    checkpoint: Annotated[
        str | None, typer.Option(help="Start from these weights instead of the recipe's.")
    ] = None,
    trainer: TrainerAt = "",
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Print the whole recipe and stop.")
    ] = False,
) -> None:
    """Train by a recipe: on a stack of its own, or by a trainer that is running."""
    from wmkit.cli.training import train as run

    run(recipe, {"seed": seed, "checkpoint": checkpoint}, trainer, dry_run=dry_run)


@app.command(epilog="Example: wmr1 sft recipes/sft.toml")
def sft(
    recipe: Annotated[str, typer.Argument(help="A supervised recipe, see docs/training.md.")],
) -> None:
    """Train on stored episodes that succeeded: a cold start before reinforcement learning."""
    from wmkit.cli.training import sft as run

    run(recipe)


@app.command(epilog="Example: wmr1 resume demo-20260101-120000-abcd")
def resume(run_id: str, trainer: TrainerAt = "") -> None:
    """Go on with a run that was interrupted, from its last saved state."""
    from wmkit.cli.training import resume as run

    run(run_id, trainer)


@app.command("eval", epilog="Example: wmr1 eval runs/demo-20260101-120000-abcd/checkpoint")
def evaluate(
    checkpoint: Annotated[str, typer.Argument(help="A checkpoint folder.")],
    recipe: Annotated[
        str, typer.Option(help="Whose held-out tasks and episode settings to use.")
    ] = "recipes/demo.toml",
    n: Annotated[int | None, typer.Option("-n", min=1, help="How many held-out tasks.")] = None,
    tool: Annotated[
        bool, typer.Option("--tool/--no-tool", help="Whether the agent may ask the world model.")
    ] = True,
) -> None:
    """Measure a checkpoint on held-out tasks: success with its interval, by app."""
    from wmkit.cli.training import evaluate as run

    run(checkpoint, recipe, n, tool=tool)


@app.command(epilog="Example: wmr1 play clock_alarm_on --seed 7 --web")
def play(
    task: Annotated[str, typer.Argument(help="A task template; wmr1 tasks lists them.")],
    seed: Annotated[int, typer.Option(min=0, help="Which instance of the task.")] = 0,
    worldmodel: WorldAt = "",
    save: Annotated[
        Path | None, typer.Option(help="Where the screens go as PNG; var/play by default.")
    ] = None,
    web: Annotated[
        bool, typer.Option("--web", help="In a page of this machine: tap, type and scroll.")
    ] = False,
    port: Annotated[
        int, typer.Option(min=0, max=65535, help="Port of the page; 0 takes a free one.")
    ] = 8090,
) -> None:
    """Do a task by hand, in the terminal or in a page: act, imagine, hear the judge."""
    if web:
        from wmkit.cli.web import play_web

        play_web(task, seed, worldmodel, port)
        return
    from wmkit.cli.play import play as run

    run(task, seed, worldmodel, save)


@app.command(epilog="Example: wmr1 doctor")
def doctor() -> None:
    """Check what this machine has and say how to get what is missing; exit code 1 if it lacks."""
    from wmkit.cli.doctor import doctor as run

    raise typer.Exit(run())


@app.command(epilog="Example: wmr1 gc --dry-run")
def gc(
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Only say what would be deleted.")
    ] = False,
    keep_hours: Annotated[
        float, typer.Option(min=0, help="Younger blobs stay: a run may be about to name them.")
    ] = 24.0,
    folder: RunsFolder = None,
    blobs: Annotated[
        str, typer.Option("--blobs", metavar="URL", help="Blob store; WMR1_BLOBS, or var/blobs.")
    ] = "",
) -> None:
    """Delete blobs that no run's files name: states, pictures, weights of deleted runs."""
    from wmkit.cli.gc import collect_garbage

    collect_garbage(folder, blobs, keep_hours, dry_run=dry_run)


@runs_app.command("list", epilog="Example: wmr1 runs list")
def runs_list(folder: RunsFolder = None, trainer: TrainerAt = "") -> None:
    """List runs, the newest first."""
    from wmkit.cli.runs import list_runs

    list_runs(folder, trainer)


@runs_app.command("show", epilog="Example: wmr1 runs show demo-20260101-120000-abcd")
def runs_show(run_id: str, folder: RunsFolder = None) -> None:
    """Show the results of a run."""
    from wmkit.cli.runs import show_run

    show_run(run_id, folder)


@runs_app.command(
    "compare",
    epilog="Example: wmr1 runs compare demo-20260101-120000-abcd demo-20260101-130000-ef01",
)
def runs_compare(
    run_ids: Annotated[list[str], typer.Argument(help="Two runs or more.")],
    folder: RunsFolder = None,
    markdown: Annotated[
        bool, typer.Option("--markdown", help="A Markdown table, for a report.")
    ] = False,
) -> None:
    """Put runs side by side: what differs in their recipes, and what they reached."""
    from wmkit.cli.comparing import compare_runs

    compare_runs(run_ids, folder, markdown=markdown)


@runs_app.command("watch", epilog="Example: wmr1 runs watch demo-20260101-120000-abcd")
def runs_watch(run_id: str, trainer: TrainerAt = NEAR_TRAINER) -> None:
    """Watch a run until it ends."""
    from wmkit.cli.training import watch_run

    watch_run(run_id, trainer)


@runs_app.command("cancel", epilog="Example: wmr1 runs cancel demo-20260101-120000-abcd")
def runs_cancel(run_id: str, trainer: TrainerAt = NEAR_TRAINER) -> None:
    """End a run; what it has found out so far is kept."""
    from wmkit.cli.training import cancel_run

    cancel_run(run_id, trainer)


@tasks_app.command("list", epilog="Example: wmr1 tasks list | grep clock")
def tasks_list(worldmodel: WorldAt = "") -> None:
    """List the task templates."""
    from wmkit.cli.tasks import list_tasks

    list_tasks(worldmodel)


@tasks_app.command(
    "generate", epilog="Example: wmr1 tasks generate --split train -n 500 --out tasks.jsonl"
)
def tasks_generate(
    templates: Annotated[
        list[str] | None, typer.Argument(help="Only these templates; all by default.")
    ] = None,
    split: Annotated[str, typer.Option(help="train, or one of the held_out_ splits.")] = "train",
    n: Annotated[int, typer.Option("-n", min=1, help="How many tasks.")] = 100,
    seed: Annotated[int, typer.Option(min=0, help="Another draw.")] = 0,
    to: Annotated[
        Path | None, typer.Option("--out", help="A file; standard output by default.")
    ] = None,
) -> None:
    """Write task instances as JSON lines: goal, template, seed, split, complexity."""
    from wmkit.cli.tasks import generate

    generate(templates or [], split, n, seed, to)


@tasks_app.command("validate", epilog="Example: wmr1 tasks validate --all")
def tasks_validate(
    templates: Annotated[list[str] | None, typer.Argument(help="Templates to check.")] = None,
    every: Annotated[bool, typer.Option("--all", help="Check every template.")] = False,
    seeds: Annotated[int, typer.Option(min=2, help="Instances per template.")] = 25,
    as_json: Annotated[bool, typer.Option("--json", help="The table as JSON.")] = False,
) -> None:
    """Check templates: the expert wins; doing nothing, giving up and chance do not."""
    from wmkit.cli.validation import validate

    if not templates and not every:
        raise typer.BadParameter("name templates, or --all")
    validate(templates or [], seeds, as_json)


@tasks_app.command("curate", epilog="Example: wmr1 tasks curate -n 200 --out hard.jsonl")
def tasks_curate(
    n: Annotated[int, typer.Option("-n", min=10, help="How many tasks.")] = 2000,
    slip: Annotated[
        float, typer.Option(min=0.01, max=0.9, help="How often the reference slips, per action.")
    ] = 0.4,
    tries: Annotated[int, typer.Option(min=8, help="Recorded tries per task.")] = 16,
    seed: Annotated[int, typer.Option(min=0, help="Another draw.")] = 0,
    to: Annotated[Path, typer.Option("--out", help="The file to write.")] = Path("curated.jsonl"),
    check: Annotated[
        int, typer.Option(min=0, help="Write nothing; measure so many curated tasks again.")
    ] = 0,
) -> None:
    """Choose hard tasks: those that a named reference policy sometimes solves."""
    from wmkit.cli.curation import curate, recheck

    if check:
        recheck(check, to if to.exists() else None)
    else:
        curate(n, slip, tries, seed, to)


@tasks_app.command("stats", epilog="Example: wmr1 tasks stats --json")
def tasks_stats(
    as_json: Annotated[bool, typer.Option("--json", help="As JSON.")] = False,
) -> None:
    """Count templates, apps, kinds, splits and curated tasks."""
    from wmkit.cli.tasks import stats

    stats(as_json)


@dialect_app.command(
    "explain",
    epilog="Example: wmr1 dialect explain qwen3_mobile_use answer.txt --screen 1080x2400",
)
def dialect_explain(
    name: Annotated[str, typer.Argument(help="A dialect; a wrong name lists them.")],
    file: Annotated[
        str, typer.Argument(help="A file with what an agent wrote; - reads standard input.")
    ] = "-",
    screen: Annotated[str, typer.Option(help="The device's screen, WIDTHxHEIGHT.")] = "1080x2400",
    model: Annotated[
        str, typer.Option(help="The size that the model saw; the screen's by default.")
    ] = "",
) -> None:
    """Say how an agent's text is read: thought, world-model calls, action, pixels, errors."""
    from wmkit.cli.dialect import explain

    explain(name, file, screen, model or screen)


@judge_app.command(
    "measure",
    epilog="Example: wmr1 judge measure -n 200 --judge-url http://GPU:8000/v1 --judge-model Qwen",
)
def judge_measure(
    n: Annotated[int, typer.Option("-n", min=1, help="How many episodes; half are solved.")] = 200,
    seed: Annotated[int, typer.Option(min=0, help="Which episodes.")] = 0,
    judge_url: Annotated[
        str, typer.Option(metavar="URL", envvar="WMR1_JUDGE_URL", help="The judge's server.")
    ] = "",
    judge_model: Annotated[
        str, typer.Option(metavar="NAME", envvar="WMR1_JUDGE_MODEL", help="The judge's model.")
    ] = "",
    votes: Annotated[
        int | None, typer.Option(min=1, help="Votes per verdict, odd; WMR1_JUDGE_VOTES or 3.")
    ] = None,
    renderer: Annotated[
        str, typer.Option(metavar="HOST:PORT", help="A renderer that is running.")
    ] = "",
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON instead of tables.")] = False,
) -> None:
    """Measure how often a judge is wrong, on scripted episodes whose truth is known."""
    from wmkit.cli.judge import measure

    measure(
        n, seed, url=judge_url, model=judge_model, votes=votes, renderer=renderer, as_json=as_json
    )
