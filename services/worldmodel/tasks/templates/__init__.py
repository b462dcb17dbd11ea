"""All templates, one module per app."""

from services.worldmodel.tasks.template import Template
from services.worldmodel.tasks.templates import clock, contacts, mixed, notes, phone, settings

TEMPLATES: dict[str, Template] = {
    template.name: template
    for module in (settings, clock, notes, contacts, mixed, phone)
    for template in module.TEMPLATES
}
