"""Typed answers: what counts as the same, and that a longer sentence never does."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from services.worldmodel.tasks.answers import normalise, same_answer

SAME = [
    ("number", "12.50", "12.5"),
    ("number", "1,250", "1250"),
    ("number", "-3 °C", "−3"),
    ("number", "seven", "7"),
    ("number", "15 %", "15"),
    ("number", "4 pieces", "4"),
    ("money", "$12.50", "12.5"),
    ("money", "12.50 dollars", "$12.50"),
    ("money", "USD 1,200", "$1200.00"),
    ("money", ".5", "$0.50"),
    ("date", "May 14th", "14 May"),
    ("date", "Tuesday, 14 May 2024", "14 May"),
    ("date", "2024-05-14", "14 May"),
    ("date", "the 3rd of June", "3 June"),
    ("date", "Sept. 2", "2 September"),
    ("time", "6:05 pm", "18:05"),
    ("name", " ADA ", "Ada"),
    ("choice", '"the Lamp"', "lamp"),
    ("list", "Tea, Cake and Ice", "Ice, Tea, Cake"),
    ("list", "tea; cake", "Cake, Tea"),
    ("list", "Tea, Cake, and Ice", "Cake, Ice, Tea"),
]
DIFFERENT = [
    ("number", "12.51", "12.5"),
    ("number", "12 or 13", "12"),
    ("number", "1,25", "125"),
    ("number", "the answer is 7", "7"),
    ("number", "-", "0"),
    ("money", "$12.5 each", "$12.50"),
    ("money", "€12.50", "$12.50"),
    ("money", "$1250", "$12.50"),
    ("date", "15 May", "14 May"),
    ("date", "14 June", "14 May"),
    ("date", "32 May", "32 May"),
    ("date", "14", "14 May"),
    ("name", "Ada or Ben", "Ada"),
    ("choice", "not the lamp", "lamp"),
    ("list", "Tea, Cake", "Tea, Cake, Ice"),
    ("list", "Tea, Tea, Cake", "Tea, Cake"),
]


@pytest.mark.parametrize(("kind", "given", "right"), SAME)
def test_the_same_answer_in_other_words(kind, given, right):
    assert same_answer(given, right, kind)


@pytest.mark.parametrize(("kind", "given", "right"), DIFFERENT)
def test_another_answer_or_none_of_its_kind(kind, given, right):
    assert not same_answer(given, right, kind)


@settings(deadline=None)
@given(st.integers(-(10**6), 10**6), st.integers(0, 99))
def test_money_is_a_number_of_cents(dollars, cents):
    text = f"{dollars}.{cents:02d}"
    assert same_answer(f"${text}" if dollars >= 0 else text, text, "money")
    assert not same_answer(text, f"{dollars}.{(cents + 1) % 100:02d}", "money")


@settings(deadline=None)
@given(
    st.text(max_size=30),
    st.sampled_from(["number", "money", "date", "name", "choice", "list", "time", "count"]),
)
def test_every_text_is_read_or_refused_and_reading_twice_changes_nothing(text, kind):
    once = normalise(text, kind)
    if once is not None and kind in ("number", "money", "name", "time", "count"):
        assert normalise(once, kind) == once
