"""The registry: one line per app. The order here is the order of `Phone.data`."""

from typing import Any

from services.worldmodel.phone.app import App
from services.worldmodel.phone.apps import (
    browser,
    calculator,
    calendar,
    clock,
    contacts,
    files,
    gallery,
    mail,
    messages,
    music,
    notes,
    phone,
    settings,
    shop,
)

APPS: dict[str, App[Any]] = {
    module.APP.name: module.APP
    for module in (
        settings,
        clock,
        notes,
        contacts,
        messages,
        phone,
        calendar,
        files,
        gallery,
        calculator,
        music,
        shop,
        mail,
        browser,
    )
}
