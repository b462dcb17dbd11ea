"""Puts the Calculator right: the wanted calculation is typed key by key."""

from services.worldmodel.phone.apps.calculator import NAME, Calculator
from services.worldmodel.phone.state import Frame, Phone
from services.worldmodel.tasks.touch import press, reach
from wmkit.domain.actions import Action

KEYPAD = (Frame("keypad"),)


def calculator(phone: Phone, now: Calculator, want: Calculator) -> Action | None:
    """The next action from the calculations made to the one wanted last, or to none."""
    if now.history == want.history:
        return None
    if not want.history:
        frame = phone.frame()
        if phone.nav.front == NAME and frame is not None and frame.dialog:
            return press(phone, "confirm")
        return reach(phone, NAME, (*KEYPAD, Frame("history"))) or press(phone, "clear-history")
    return reach(phone, NAME, KEYPAD) or _enter(phone, want.history[-1].expression)


def _enter(phone: Phone, expression: str) -> Action:
    frame = phone.frame()
    assert frame is not None
    entry = "" if frame.field("Result") else frame.field("Entry")
    if entry == expression and not frame.field("Result"):
        return press(phone, "k:=")
    if expression.startswith(entry):
        return press(phone, f"k:{expression[len(entry)]}")
    return press(phone, "k:<" if expression.startswith(entry[:-1]) else "k:C")
