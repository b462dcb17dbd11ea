"""`wmr1 tasks`: what a world model offers to be trained on, and what it is worth."""

import json
import sys
from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path
from random import Random
from typing import Any

from rich.table import Table

from wmkit.cli.console import out
from wmkit.domain.errors import InvalidRequest
from wmkit.domain.tasks import TaskTemplate


def list_tasks(worldmodel: str) -> None:
    """A table of task templates: of the server at this address, else of the scripted phone."""
    templates = _ask(worldmodel) if worldmodel else _scripted()
    table = Table(box=None, header_style="bold")
    for column in ("template", "kind", "apps", "a goal"):
        table.add_column(column)
    for template in templates:
        table.add_row(template.name, template.kind, ", ".join(template.apps), template.example_goal)
    out.print(table)
    out.print(f"{len(templates)} templates; try one: wmr1 play {templates[0].name}")


def check_templates(names: Sequence[str]) -> None:
    """Raises UnknownTask for a template that the scripted phone does not have."""
    from services.worldmodel import tasks

    for name in names:
        tasks.template(name)


def generate(names: Sequence[str], split: str, count: int, seed: int, to: Path | None) -> None:
    """JSON lines of task instances. Raises UnknownTask, InvalidRequest for no such split."""
    from services.worldmodel import tasks
    from services.worldmodel.tasks.splits import SPLITS, draw, split_of

    if split not in SPLITS:
        raise InvalidRequest(f"there is no split {split!r}; known: {', '.join(SPLITS)}", "split")
    chosen = [tasks.template(name) for name in names or tasks.TEMPLATES]
    try:
        refs = draw(split, chosen, count, Random(seed))
    except ValueError as error:
        raise InvalidRequest(f"{error}; wmr1 tasks stats says what each split holds") from None

    def lines() -> Iterator[str]:
        for ref in refs:
            task = tasks.make(ref.template, ref.seed)
            yield json.dumps(
                {
                    "template": ref.template,
                    "seed": ref.seed,
                    "split": split_of(tasks.TEMPLATES[ref.template], ref.seed),
                    "kind": task.kind,
                    "apps": task.apps,
                    "goal": task.goal,
                    "complexity": task.complexity,
                    "step_limit": task.step_limit,
                    "wants_answer": task.wants_answer,
                },
                ensure_ascii=False,
            )

    if to is None:
        for line in lines():
            sys.stdout.write(line + "\n")
        return
    to.write_text("".join(line + "\n" for line in lines()), encoding="utf-8")
    out.print(f"{len(refs)} tasks in {to}")


def stats(as_json: bool) -> None:
    """Counts of templates, apps, kinds, splits and curated tasks."""
    from services.worldmodel.tasks import TEMPLATES
    from services.worldmodel.tasks.curation import CURATED, load
    from services.worldmodel.tasks.splits import SPLITS, split_of_template

    recipe, curated = load() if CURATED.exists() else ({}, [])
    homes = Counter(split_of_template(template) for template in TEMPLATES.values())
    in_file = Counter(task.split for task in curated)
    splits = {
        split: {
            "templates": homes["train" if split == "held_out_seeds" else split],
            "curated": in_file[split],
        }
        for split in SPLITS
    }
    found: dict[str, Any] = {
        "templates": len(TEMPLATES),
        "apps": len({app for template in TEMPLATES.values() for app in template.apps}),
        "kinds": dict(Counter(template.kind for template in TEMPLATES.values())),
        "curated": len(curated),
        "curated_by": recipe,
        "splits": splits,
    }
    if as_json:
        sys.stdout.write(json.dumps(found, indent=2) + "\n")
        return
    out.print(f"{found['templates']} templates over {found['apps']} apps")
    out.print("kinds: " + ", ".join(f"{kind} {n}" for kind, n in found["kinds"].items()))
    table = Table("split", "templates", "curated tasks", box=None, header_style="bold")
    for split, counts in splits.items():
        table.add_row(split, str(counts["templates"]), str(counts["curated"]))
    out.print(table)


def _scripted() -> Sequence[TaskTemplate]:
    from services.worldmodel.backends.scripted import Scripted

    return Scripted().templates()


def _ask(address: str) -> Sequence[TaskTemplate]:
    from wmkit.clients.sync import connect

    with connect(address) as world:
        return world.tasks()
