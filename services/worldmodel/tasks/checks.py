"""What every template must satisfy, as a function; also runs as a command.

`python -m services.worldmodel.tasks.checks [seeds]` prints one line per template and ends
with status 1 when one of them breaks a rule.
"""

import sys
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from random import Random

from services.worldmodel.phone import Phone, elements, step
from services.worldmodel.tasks import TEMPLATES, Task
from wmkit.domain.actions import (
    Action,
    Answer,
    Back,
    Finish,
    Home,
    LongPress,
    Recents,
    Scroll,
    Tap,
    Type,
    Wait,
)

Player = Callable[[Task, Phone, int], Action]


@dataclass
class Report:
    """`complexity` is a mean; wins are counted over `seeds`; `problems` are sentences."""

    template: str
    kind: str
    seeds: int
    complexity: float = 0.0
    random_wins: int = 0
    giving_up_wins: int = 0
    problems: list[str] = field(default_factory=list)


def play(task: Task, player: Player, limit: int | None = None) -> tuple[bool, int]:
    """Play until the player ends the episode or the limit: (success, actions taken)."""
    phone = task.start
    for count in range((limit or task.step_limit) + 1):
        match player(task, phone, count):
            case Answer(text):
                return task.success(phone, text, None), count
            case Finish(status):
                return task.success(phone, None, status), count
            case action:
                phone = step(phone, action)
    return task.success(phone, None, None), count


def expert(task: Task, phone: Phone, _count: int) -> Action:
    """The task's own oracle."""
    return task.oracle(phone)


def random_player(seed: int) -> Player:
    """Acts at random on what is on the screen up to the step limit, then ends at random.

    It knows nothing of the task: it answers, claims success, gives up, or goes on too long.
    """
    rng = Random(seed)

    def player(task: Task, phone: Phone, count: int) -> Action:
        if count >= task.step_limit:
            guess = Answer(str(rng.randrange(9)))
            return rng.choice((guess, Finish("success"), Finish("infeasible"), Wait()))
        points = [element.at for element in elements(phone) if element.clickable]
        others: list[Action] = [
            Back(),
            Home(),
            Recents(),
            Scroll("up"),
            Scroll("down"),
            Scroll("right"),
            Type("Milk"),
        ]
        if points and rng.random() < 0.75:
            point = rng.choice(points)
            return Tap(point) if rng.random() < 0.9 else LongPress(point)
        return rng.choice(others)

    return player


def check(name: str, seeds: Iterable[int]) -> Report:
    """All rules for one template, except those that hold on average over its kind."""
    tasks = [TEMPLATES[name].make(seed) for seed in seeds]
    report = Report(name, TEMPLATES[name].kind, len(tasks))
    for task in tasks:
        won, steps = play(task, expert)
        where = f"{name} {task.seed}"
        if not won:
            report.problems.append(f"{where}: the expert fails")
        if steps != task.complexity:
            report.problems.append(f"{where}: {steps} steps, but complexity {task.complexity}")
        if task.success(task.start, None, None):
            report.problems.append(f"{where}: doing nothing succeeds")
        if task.success(task.start, None, "success") or task.success(task.start, "", None):
            report.problems.append(f"{where}: finishing at once succeeds")
        gives_up = task.success(task.start, None, "infeasible")
        if gives_up and task.feasible:
            report.problems.append(f"{where}: giving up succeeds on a feasible task")
        report.giving_up_wins += gives_up
        report.random_wins += play(task, random_player(task.seed))[0]
        report.complexity += task.complexity / len(tasks)
    if len({(task.goal, task.start.digest) for task in tasks}) < len(tasks):
        report.problems.append(f"{name}: two seeds give the same task")
    return report


def check_kinds(reports: list[Report]) -> list[str]:
    """The rules that hold per kind: guessing and giving up must not pay."""
    problems = []
    for kind in sorted({report.kind for report in reports}):
        group = [report for report in reports if report.kind == kind]
        seeds = sum(report.seeds for report in group)
        luck = sum(report.random_wins for report in group) / seeds
        giving_up = sum(report.giving_up_wins for report in group) / seeds
        if luck >= 0.05:
            problems.append(f"{kind}: random play succeeds in {luck:.1%}")
        if giving_up > 0.5:
            problems.append(f"{kind}: giving up succeeds in {giving_up:.1%}")
    return problems


def main(seeds: int = 100) -> int:
    """Check all templates and print what was found; 1 when a rule is broken."""
    reports = [check(name, range(seeds)) for name in TEMPLATES]
    for r in reports:
        print(
            f"{r.template:26} {r.kind:12} complexity {r.complexity:5.2f}  "
            f"random {r.random_wins / seeds:6.1%}  giving up {r.giving_up_wins / seeds:6.1%}"
        )
    problems = [p for r in reports for p in r.problems] + check_kinds(reports)
    for problem in problems:
        print(problem)
    print(f"{len(reports)} templates, {seeds} seeds each, {len(problems)} problems")
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main(*(int(arg) for arg in sys.argv[1:2])))
