"""All templates, one module per app."""

from services.worldmodel.tasks.template import Template
from services.worldmodel.tasks.templates import (
    calendar,
    clock,
    contacts,
    files,
    gallery,
    lookahead,
    messages,
    mixed,
    notes,
    phone,
    settings,
)

TEMPLATES: dict[str, Template] = {
    template.name: template
    for module in (
        settings,
        clock,
        notes,
        contacts,
        mixed,
        phone,
        messages,
        calendar,
        files,
        gallery,
        lookahead,
    )
    for template in module.TEMPLATES
}
