"""Tasks on the scripted phone: templates, goals, predicates and experts. Pure, no I/O."""

from difflib import get_close_matches

from services.worldmodel.tasks.task import Task
from services.worldmodel.tasks.template import Template
from services.worldmodel.tasks.templates import TEMPLATES
from wmkit.domain.errors import UnknownTask

__all__ = ["TEMPLATES", "Task", "Template", "make", "template"]


def make(name: str, seed: int) -> Task:
    """The task of a template and a seed; the same two always give the same task.

    Raises UnknownTask, naming near misses, for a template that does not exist.
    """
    return template(name).make(seed)


def template(name: str) -> Template:
    """A template by name. Raises UnknownTask, naming near misses."""
    found = TEMPLATES.get(name)
    if found is None:
        near = get_close_matches(name, TEMPLATES, n=3, cutoff=0.4)
        hint = f"did you mean {', '.join(near)}?" if near else f"there are {len(TEMPLATES)}"
        raise UnknownTask(f"there is no task template {name!r}; {hint}", field="template")
    return found
