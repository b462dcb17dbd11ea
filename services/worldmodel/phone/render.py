"""A phone as HTML: one absolutely placed `div` per element, no script, nothing remote."""

from functools import cache
from pathlib import Path

from jinja2 import Environment, FileSystemLoader, StrictUndefined, Template

from services.worldmodel.phone.glyphs import GLYPHS
from services.worldmodel.phone.screen import elements, title
from services.worldmodel.phone.state import HOME, Phone

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


def html(phone: Phone) -> str:
    """The screen in the HTML contract: everything visible in `div#render-target`, in px.

    Every element carries `data-id` and `data-role`; what can be checked `data-checked`.
    """
    return _template().render(
        title=title(phone),
        light=phone.nav.front != HOME,
        elements=elements(phone),
        glyphs=GLYPHS,
        shown=SHOWN,
    )
