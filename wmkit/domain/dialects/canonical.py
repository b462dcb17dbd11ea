"""An action in canonical words, for people: `tap(50.0 %, 25.0 %)`. Nothing reads it back."""

from dataclasses import fields

from wmkit.domain.actions import Action
from wmkit.domain.screen import Point


def describe(action: Action) -> str:
    """Arguments in the order of the class; what is not set is left out."""
    words = []
    for field in fields(action):
        value = getattr(action, field.name)
        if isinstance(value, Point):
            words.append(f"{value.x * 100:.1f} %, {value.y * 100:.1f} %")
        elif value is True:
            words.append(field.name)
        elif value is not None and value is not False:
            words.append(f"{field.name}={value!r}")
    return f"{action.name}({', '.join(words)})"
