"""`wmr1 demo`: what a newcomer sees first."""

from wmkit.cli.console import out
from wmkit.cli.recipes import changed, read
from wmkit.cli.running import run_here


def demo(recipe: str, seed: int | None) -> None:
    """Train by the recipe on a stack of its own. Raises WMError."""
    chosen = changed(read(recipe), {"seed": seed})
    tasks, schedule = chosen.tasks, chosen.schedule
    out.print(
        f"[bold]WM-R1[/bold] trains a small agent by GRPO inside a world model: seed "
        f"{chosen.seed}, {len(tasks.templates)} kinds of tasks on a simulated phone. Before it "
        "acts, the agent may ask the world model what an action would lead to. The same "
        f"{tasks.eval_n} held-out tasks are played before and after"
        + (f" {schedule.max_train_s:.0f} s of training." if schedule.max_train_s else " training.")
    )
    run = run_here(chosen, "demo")
    out.print(f"results       wmr1 runs show {run.run_id}", soft_wrap=True)
