"""A phone as HTML: one absolutely placed `div` per element, no script, nothing remote."""

from collections.abc import Sequence
from functools import cache
from pathlib import Path

from jinja2 import Environment, FileSystemLoader, StrictUndefined, Template
from markupsafe import Markup

from services.worldmodel.phone.apps import APPS
from services.worldmodel.phone.geometry import Element
from services.worldmodel.phone.glyphs import GLYPHS, svg
from services.worldmodel.phone.screen import elements, theme, title
from services.worldmodel.phone.state import Phone

# Roles whose text is drawn; the text of the others is an accessible name.
SHOWN = ("text", "key")


@cache
def _template() -> Template:
    env = Environment(
        loader=FileSystemLoader(Path(__file__).parent),
        autoescape=True,
        undefined=StrictUndefined,
    )
    return env.get_template("screen.html.j2")


@cache
def _glyphs() -> dict[str, Markup]:
    """The shapes of the system and of every app."""
    own = {name: svg(shape) for app in APPS.values() for name, shape in app.glyphs.items()}
    return own | GLYPHS


def html(phone: Phone, drawn: Sequence[Element] | None = None) -> str:
    """The screen in the HTML contract: everything visible in `div#render-target`, in px.

    Every element carries `data-id` and `data-role`; what can be checked `data-checked`.
    `drawn` takes the place of the phone's own elements.
    """
    dark, font_percent = theme(phone)
    return _template().render(
        title=title(phone),
        dark=dark,
        font=f"{font_percent / 100:g}",
        elements=elements(phone) if drawn is None else drawn,
        glyphs=_glyphs(),
        shown=SHOWN,
    )
