"""`wmr1 tasks`: what a world model offers to be trained on."""

import difflib
from collections.abc import Sequence

from rich.table import Table

from wmkit.cli.console import out
from wmkit.domain.errors import UnknownTask
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
    known = [template.name for template in _scripted()]
    for name in names:
        if name not in known:
            near = difflib.get_close_matches(name, known, n=1)
            hint = f"did you mean {near[0]!r}?" if near else "wmr1 tasks lists them"
            raise UnknownTask(
                f"there is no task template {name!r}; {hint}", field="tasks.templates"
            )


def _scripted() -> Sequence[TaskTemplate]:
    from services.worldmodel.backends.scripted import Scripted

    return Scripted().templates()


def _ask(address: str) -> Sequence[TaskTemplate]:
    from wmkit.clients.sync import connect

    with connect(address) as world:
        return world.tasks()
