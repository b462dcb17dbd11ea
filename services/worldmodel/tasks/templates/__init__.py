"""All templates, one module per app."""

from services.worldmodel.tasks.template import Template
from services.worldmodel.tasks.templates import (
    browser,
    calculator,
    calendar,
    clock,
    contacts,
    cross,
    files,
    gallery,
    lookahead,
    mail,
    messages,
    mixed,
    music,
    notes,
    phone,
    settings,
    shop,
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
        calculator,
        music,
        shop,
        mail,
        browser,
        cross,
    )
    for template in module.TEMPLATES
}
