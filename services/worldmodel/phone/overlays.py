"""What stands over every page: toast, permission prompt, interruption."""

from services.worldmodel.phone.geometry import Element, centre
from services.worldmodel.phone.look import look
from services.worldmodel.phone.state import Prompt
from services.worldmodel.phone.system import POPUPS
from services.worldmodel.phone.widgets import Elements, sheet, text

# Covers the tabs of row 9 altogether: nothing shows half from under it.
TOAST = (16, 2160, 1048, 190)


def draw_toast(words: str) -> Elements:
    """A message that cannot be touched."""
    x, y, w, h = TOAST
    return [
        Element("toast", "toast", words, TOAST, centre(TOAST)),
        text("toast/text", words, (x + 60, y + 40, w - 120, h - 80), "toast"),
    ]


def draw_prompt(prompt: Prompt) -> Elements:
    """May this app? Deny and Allow."""
    return sheet(
        "prompt",
        f"Allow {prompt.permission}?",
        f"for {prompt.app}",
        look(prompt.permission),
        (("Deny", "os.deny", "cancel"), ("Allow", "os.allow", "ok")),
    )


def draw_popup(kind: str) -> Elements:
    """An interruption with its two answers."""
    popup = POPUPS[kind]
    (no, close), (yes, key) = popup.answers
    return sheet(
        "popup",
        popup.title,
        popup.text,
        (popup.color, popup.glyph),
        ((no, f"os.popup:{close}", "cancel"), (yes, f"os.popup:{key}", "ok")),
    )
