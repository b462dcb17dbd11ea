"""All templates: one line per module. A module may bring the repairs of an app along."""

from importlib import import_module

from services.worldmodel.tasks.repairs import REPAIRS
from services.worldmodel.tasks.template import Template

MODULES = (
    "settings",
    "clock",
    "notes",
    "contacts",
    "mixed",
    "phone",
    "messages",
    "calendar",
    "files",
    "gallery",
    "lookahead",
    "calculator",
    "music",
    "shop",
    "mail",
    "browser",
    "cross",
)

TEMPLATES: dict[str, Template] = {}
for _module in (import_module(f"{__name__}.{name}") for name in MODULES):
    TEMPLATES |= {template.name: template for template in _module.TEMPLATES}
    REPAIRS.update(getattr(_module, "REPAIRS", {}))
