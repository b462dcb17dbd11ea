"""Tasks in the Calculator."""

from random import Random

from services.worldmodel.phone.apps.calculator import NAME, Calculator
from services.worldmodel.phone.state import Frame, Phone
from services.worldmodel.tasks.task import edited
from services.worldmodel.tasks.template import Draft, Template, change, wordings
from services.worldmodel.tasks.touch import Look

APP = NAME
COMPUTE = (
    "Work out {} in the Calculator.",
    "Compute {} with the Calculator.",
    "Use the Calculator to work out {}.",
)
ASK = (
    "What is {}? Work it out in the Calculator.",
    "Use the Calculator: how much is {}?",
    "Compute {} in the Calculator and tell me the result.",
)
PAST = (
    "What was the result of {} in the Calculator's history?",
    "Look into the Calculator's history: how much was {}?",
    "Which result does the Calculator's history give for {}?",
)
CLEAR = (
    "Delete the history of the Calculator.",
    "Clear the Calculator's history.",
    "Empty the history in the Calculator.",
)


def spaced(expression: str) -> str:
    """An expression as goals write it, with blanks around its signs."""
    for sign in "+-×÷":
        expression = expression.replace(sign, f" {sign} ")
    return expression


def _number(rng: Random) -> str:
    if rng.random() < 0.4:
        return f"{rng.randint(1, 40)}.{rng.randint(1, 9)}"
    return str(rng.randint(2, 99))


def _short(rng: Random) -> str:
    return _number(rng) + rng.choice("+-×") + str(rng.randint(2, 99))


def _long(rng: Random) -> str:
    """A chain with brackets; without division, so that its result is exact."""
    a, b, c, d = (_number(rng) for _ in range(4))
    shapes = (f"({a}+{b})×{c}", f"{a}×({b}-{c})", f"{a}+{b}×{c}-{d}", f"({a}-{b})×({c}+{d})")
    return rng.choice(shapes)


def _compute(rng: Random, phone: Phone, _seed: int) -> Draft:
    calculator: Calculator = phone.of(APP)
    expression = _short(rng)
    words = wordings(COMPUTE, spaced(expression))
    return change(phone, words, APP, calculator, calculator.calculating(expression))


def _chain(rng: Random, phone: Phone, _seed: int) -> Draft:
    calculator: Calculator = phone.of(APP)
    expression = _long(rng)
    want = calculator.calculating(expression)
    words = wordings(ASK, spaced(expression))
    data = edited(phone.data, **{APP: want})
    answer = want.history[-1].result
    return Draft(words, phone.data, data, None, answer, "number")


def _past(rng: Random, phone: Phone, _seed: int) -> Draft:
    calculator: Calculator = phone.of(APP)
    for expression in {_short(rng): None for _ in range(4)}:
        calculator = calculator.calculating(expression)
    done = rng.choice(calculator.history[-4:])
    data = edited(phone.data, **{APP: calculator})
    look = Look(APP, (Frame("keypad"), Frame("history")))
    return Draft(wordings(PAST, spaced(done.expression)), data, data, look, done.result, "number")


def _clear(rng: Random, phone: Phone, _seed: int) -> Draft:
    calculator: Calculator = phone.of(APP)
    return change(phone, CLEAR, APP, calculator.calculating(_short(rng)), Calculator())


TEMPLATES = (
    Template("calculator_compute", (APP,), "form", _compute),
    Template("calculator_chain", (APP,), "lookup", _chain),
    Template("calculator_past_result", (APP,), "lookup", _past),
    Template("calculator_clear_history", (APP,), "list", _clear),
)
