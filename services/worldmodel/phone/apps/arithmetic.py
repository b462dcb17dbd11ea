"""What the Calculator computes: exact values of short expressions, and how they are printed.

Numbers are fractions from the first key to the last, so 0.1 + 0.2 is 0.3. Nothing here knows
about keys or pages.
"""

import re
from decimal import ROUND_HALF_EVEN, Context, Decimal
from fractions import Fraction

BY_ZERO = "Can't divide by 0"
MALFORMED = "Format error"
TOO_LARGE = "Too large"
REASONS = (BY_ZERO, MALFORMED, TOO_LARGE)
LIMIT = Fraction(10) ** 99
PLACES = 10

_TOKEN = re.compile(r"[0-9]+\.?[0-9]*(?:E[+-][0-9]{1,2})?|\.[0-9]+|[-+×÷()]", re.ASCII)
_CONTEXT = Context(prec=130, rounding=ROUND_HALF_EVEN)


class CannotCompute(Exception):
    """An expression without a value; the message is what the Calculator shows."""


def evaluate(expression: str) -> Fraction:
    """The exact value of digits, "." and + - × ÷ ( ), with the usual precedence.

    Raises CannotCompute where there is none: malformed, division by zero, above 10^99.
    """
    parser = _Parser(_tokens(expression))
    value = parser.sum()
    if parser.tokens:
        raise CannotCompute(MALFORMED)
    return value


def canonical(expression: str) -> str:
    """The expression with every number in its shortest form: 012.50 is 12.5."""
    return "".join(
        printed(Fraction(token)) if token[0].isdigit() or token[0] == "." else token
        for token in _tokens(expression)
    )


def printed(value: Fraction) -> str:
    """At most ten decimals, rounded half to even; very large and small ones with an exponent."""
    size = abs(value)
    number = _CONTEXT.divide(Decimal(value.numerator), Decimal(value.denominator))
    if size >= 10**15 or (value and size < Fraction(1, 10**9)):
        digits, _, exponent = f"{number:.9E}".partition("E")
        return f"{digits.rstrip('0').rstrip('.')}E{exponent}"
    text = f"{_CONTEXT.quantize(number, Decimal(1).scaleb(-PLACES)):f}"
    short = text.rstrip("0").rstrip(".")
    return "0" if short in ("-0", "") else short


def _tokens(expression: str) -> list[str]:
    tokens = _TOKEN.findall(expression)
    if "".join(tokens) != expression:
        raise CannotCompute(MALFORMED)
    return tokens


class _Parser:
    """Recursive descent over tokens, the next one first."""

    def __init__(self, tokens: list[str]) -> None:
        self.tokens = tokens

    def _next(self, *wanted: str) -> str:
        if self.tokens and self.tokens[0] in wanted:
            return self.tokens.pop(0)
        return ""

    def sum(self) -> Fraction:
        value = self._product()
        while sign := self._next("+", "-"):
            other = self._product()
            value = _bounded(value + other if sign == "+" else value - other)
        return value

    def _product(self) -> Fraction:
        value = self._factor()
        while sign := self._next("×", "÷"):
            other = self._factor()
            if sign == "÷" and other == 0:
                raise CannotCompute(BY_ZERO)
            value = _bounded(value * other if sign == "×" else value / other)
        return value

    def _factor(self) -> Fraction:
        if self._next("-"):
            return -self._factor()
        if self._next("("):
            value = self.sum()
            if not self._next(")"):
                raise CannotCompute(MALFORMED)
            return value
        if not self.tokens or not (self.tokens[0][0].isdigit() or self.tokens[0][0] == "."):
            raise CannotCompute(MALFORMED)
        return _bounded(Fraction(self.tokens.pop(0)))


def _bounded(value: Fraction) -> Fraction:
    if abs(value) > LIMIT:
        raise CannotCompute(TOO_LARGE)
    return value
