"""The registry: one line per app. The order here is the order of `Phone.data`."""

from importlib import import_module
from typing import Any

from services.worldmodel.phone.app import App

MODULES = (
    "settings",
    "clock",
    "notes",
    "contacts",
    "messages",
    "phone",
    "calendar",
    "files",
    "gallery",
    "calculator",
    "music",
    "shop",
    "mail",
    "browser",
)


def _app(module: str) -> App[Any]:
    app: App[Any] = import_module(f"{__name__}.{module}").APP
    return app


APPS: dict[str, App[Any]] = {app.name: app for app in map(_app, MODULES)}
