"""Calculator, played by hand, and its arithmetic against Python's own."""

from fractions import Fraction

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from services.worldmodel.phone import Phone, boot, elements, step
from services.worldmodel.phone.apps.arithmetic import (
    BY_ZERO,
    MALFORMED,
    REASONS,
    TOO_LARGE,
    CannotCompute,
    canonical,
    evaluate,
    printed,
)
from services.worldmodel.phone.apps.calculator import Calculation, Calculator
from tests.unit.phone.play import press
from wmkit.domain.actions import Back, OpenApp, Type


def typed(phone: Phone, keys: str) -> Phone:
    return press(phone, *(f"k:{key}" for key in keys))


def texts(phone: Phone) -> list[str]:
    return [e.text for e in elements(phone) if e.role == "text"]


def shown(phone: Phone) -> tuple[str, str]:
    frame = phone.frame()
    return frame.field("Entry"), frame.field("Result")


@pytest.fixture
def phone() -> Phone:
    return press(step(boot(1), OpenApp("Calculator")), "k:C")


@pytest.mark.parametrize(
    ("expression", "result"),
    [
        ("1+2×3", "7"),
        ("(1+2)×3", "9"),
        ("0.1+0.2", "0.3"),
        ("1÷3", "0.3333333333"),
        ("2÷3", "0.6666666667"),
        ("1÷3×3", "1"),
        ("10-4-3", "3"),
        ("-2×-3", "6"),
        ("8÷4÷2", "1"),
        ("12.50+7.", "19.5"),
        ("99999999×99999999", "9.9999998E15"),
        ("1÷8000000000", "1.25E-10"),
        ("((2))", "2"),
    ],
)
def test_values_by_hand(expression, result):
    assert printed(evaluate(expression)) == result.replace("E15", "E+15")


@pytest.mark.parametrize(
    ("expression", "why"),
    [
        ("", MALFORMED),
        ("1+", MALFORMED),
        ("(1", MALFORMED),
        ("1)", MALFORMED),
        ("()", MALFORMED),
        ("2(3)", MALFORMED),
        ("abc", MALFORMED),
        ("٣", MALFORMED),
        ("5÷0", BY_ZERO),
        ("5÷(2-2)", BY_ZERO),
        ("1E+60×1E+60", TOO_LARGE),
    ],
)
def test_what_has_no_value_says_why(expression, why):
    with pytest.raises(CannotCompute, match=why.replace("'", ".")):
        evaluate(expression)


numbers = st.integers(0, 999).map(str) | st.decimals(0, 99, places=2).map(str)
trees = st.recursive(
    numbers,
    lambda inner: st.builds(
        lambda a, sign, b: f"({a}{sign}{b})", inner, st.sampled_from("+-×÷"), inner
    ),
    max_leaves=6,
)


@settings(deadline=None)
@given(trees)
def test_values_agree_with_python(expression):
    python = expression.replace("×", "*").replace("÷", "/")
    parts, number = [], ""
    for sign in python + " ":
        if sign.isdigit() or sign == ".":
            number += sign
            continue
        parts += [f"Fraction('{number}')"] * bool(number) + [sign]
        number = ""
    try:
        expected = eval("".join(parts), {"Fraction": Fraction})
    except ZeroDivisionError:
        with pytest.raises(CannotCompute):
            evaluate(expression)
        return
    assert evaluate(expression) == evaluate(canonical(expression)) == expected


@settings(deadline=None)
@given(st.text(alphabet="0123456789.+-×÷()E", max_size=40))
def test_any_expression_has_a_value_or_a_reason(expression):
    try:
        assert printed(evaluate(expression))
    except CannotCompute as error:
        assert str(error) in REASONS


def test_keys_make_an_expression(phone):
    assert shown(typed(phone, "12+×3")) == ("12×3", "")
    assert shown(typed(phone, "+×5")) == ("5", "")
    assert shown(typed(phone, "1.2.3")) == ("1.23", "")
    assert shown(typed(phone, ".5")) == ("0.5", "")
    assert shown(typed(phone, "2)×(3)+4)")) == ("2×(3)+4", "")
    assert shown(typed(phone, "2×-3")) == ("2×-3", "")
    assert shown(typed(phone, "123<")) == ("12", "")
    assert len(shown(typed(phone, "7" * 50))[0]) == 40
    assert step(phone, Type("12")) == phone


def test_a_result_is_carried_on_and_kept(phone):
    before = phone.of("Calculator").history
    done = typed(phone, "12.50×4=")
    assert shown(done) == ("12.50×4", "50")
    assert done.of("Calculator").history == (*before, Calculation("12.5×4", "50"))
    assert "50" in texts(done)
    assert shown(typed(done, "+1=")) == ("50+1", "51")
    assert shown(typed(done, "7")) == ("7", "")
    assert typed(done, "=") == done


def test_an_error_is_shown_and_not_kept(phone):
    broken = typed(phone, "8÷0=")
    assert BY_ZERO in texts(broken)
    assert broken.of("Calculator") == phone.of("Calculator")
    assert shown(typed(broken, "+5")) == ("5", "")


def test_history_is_reused_and_cleared(phone):
    done = typed(phone, "2+3=")
    page = press(done, "history")
    top = next(e for e in elements(page) if e.role == "row")
    assert (top.text, "= 5" in texts(page)) == ("2+3", True)
    assert shown(press(page, top.key)) == ("5", "")
    asked = press(page, "clear-history")
    assert step(asked, Back()) == page
    assert press(asked, "confirm").of("Calculator") == Calculator()


def test_only_the_latest_calculation_counts_where_one_is_asked_for():
    start = Calculator().calculating("1+1")
    want = start.calculating("2+3")
    assert start.calculating("9×9").calculating("2+3").eased(start, want) == want
    assert want.calculating("9×9").eased(start, want) != want
    assert start.calculating("9×9").eased(start, start) == start
