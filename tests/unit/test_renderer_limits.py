"""Documents that are too much are told from their text, and parsing the rest stays cheap.

What is compared is the number of elements that the parser makes, not time.
"""

import pytest
from selectolax.lexbor import LexborHTMLParser

from services.renderer.limits import Limits, oversized
from services.renderer.sanitize import sanitize
from tests.renderer_cases import case, document
from wmkit.domain.transition import FailureReason

LIMITS = Limits()


@pytest.mark.parametrize(
    "html",
    [
        "<p>" + "x" * (4 << 20),
        "ü" * (2 << 20) + "<p>",
        "<br>" * 10_001,
        "<p>" + "".join(f"<b id={i}>" for i in range(700)) + "<p>x" * 700,
        "<div " + " ".join(f"a{i}" for i in range(10_001)) + ">",
        "<div/" + "/".join(f"a{i}" for i in range(10_001)) + ">",
        '<div a=">" ' + " ".join(f"a{i}" for i in range(10_001)) + ">",
        "<!--<x a='--><div " + " ".join(f"a{i}" for i in range(10_001)) + " b=''>",
    ],
    ids=["bytes", "utf-8", "tags", "reopened", "attributes", "slashes", "quoted", "hidden"],
)
def test_too_much_is_oversized(html: str) -> None:
    out = sanitize(html, LIMITS)
    assert out.reason is FailureReason.OVERSIZED
    assert len(out.warnings) == 1


def test_the_case_of_many_spans_is_too_much() -> None:
    assert oversized(case("spans_200k.html.py"), LIMITS)


@pytest.mark.parametrize(
    "html",
    [
        document("<div><p>row</p></div>" * 2_000),
        document('<svg><path d="' + "M 1 2 " * 1_500 + '"></svg>'),
        document('<img src="data:image/png;base64,' + "A" * 2_000_000 + '">'),
        document("word " * 100_000),
        document("<b>bold</b> " * 150),
        document("<i class=icon></i><p>row</p>" * 120),
    ],
    ids=["rows", "path", "picture", "text", "bold", "icons"],
)
def test_what_screens_are_made_of_is_not(html: str) -> None:
    assert oversized(html, LIMITS) == ""


def test_reopening_is_bounded_for_what_passes() -> None:
    """The worst that passes makes no more elements than the limit says."""
    b, p = 250, 250
    html = "<p>" + "".join(f"<b id={i}>" for i in range(b)) + "<p>x" * p
    assert oversized(html, LIMITS) == ""
    made = len(LexborHTMLParser(html).css("*"))
    assert 50_000 < made <= 300_000
