"""From answers to documents: the shared cases, and what models do besides."""

from pathlib import Path

import pytest

from services.worldmodel.learned.extract import (
    NO_DOCTYPE,
    UNCLOSED,
    document,
    document_after_heading,
)

CASES = Path(__file__).parents[2] / "cases" / "render"
PAGE = "<!DOCTYPE html><html><body><p>Hi</p></body></html>"
EITHER = pytest.mark.parametrize("extract", [document, document_after_heading])


def case(name: str) -> str:
    return (CASES / name).read_text(encoding="utf-8")


@EITHER
def test_a_fence_reasoning_and_a_closing_tag_in_a_script(extract: object) -> None:
    found = extract(case("fence_and_reasoning.txt"))  # type: ignore[operator]
    assert found is not None
    assert found.html.startswith("<!doctype html>\n<html>")
    assert found.html.endswith("var s='</html>';</script></div></body></html>")
    assert "Wi-Fi On" in found.html
    assert found.warnings == ()


@EITHER
@pytest.mark.parametrize("name", ["prose.html", "empty.html"])
def test_prose_and_nothing_hold_no_document(name: str, extract: object) -> None:
    assert extract(case(name)) is None  # type: ignore[operator]


@EITHER
def test_a_document_that_is_cut_goes_to_the_end_with_a_warning(extract: object) -> None:
    text = case("cut_in_style.html")
    found = extract(text)  # type: ignore[operator]
    assert found is not None
    assert found.html == text.rstrip()
    assert found.warnings == (UNCLOSED,)


@pytest.mark.parametrize(
    "inside",
    [
        "<script>'</html>'</script>",
        "<SCRIPT type=a>'</html>'</ScRiPt >",
        "<style>a::after{content:'</html>'}</style>",
        "<!-- </html> -->",
        "<!-- a > b </html> --!>",
        "<textarea></html></textarea>",
        "<title></html></title>",
        '<p title="</html>">',
        "<p title='</html>'>",
        "<p title = '</html>'>",
        "<p title=it's></p>",
        "<!-->",
        "<p a=b'c>",
        "a < b </ p> <3",
    ],
)
def test_the_end_is_the_one_outside_script_style_comment_and_value(inside: str) -> None:
    page = f"<!DOCTYPE html><html><body>{inside}</body></html>"
    found = document(f"{page}\nThat is </html> all.")
    assert found is not None
    assert (found.html, found.warnings) == (page, ())


@pytest.mark.parametrize(
    "answer",
    [
        f"```html\n{PAGE}\n```",
        f"```\n{PAGE}\n```\nI drew it.",
        f"~~~html\n\n{PAGE}\n~~~",
        f"<think>From <!DOCTYPE html> to </html>, as I was told.</think>\n{PAGE}",
        f"I write from <!DOCTYPE html> to </html>:\n```html\n{PAGE}\n```",
        f"Here you are.\n{PAGE}",
        f"{PAGE}{PAGE}",
    ],
)
def test_what_stands_around_a_document_is_dropped(answer: str) -> None:
    found = document(answer)
    assert found is not None
    assert (found.html, found.warnings) == (PAGE, ())


def test_any_case_and_no_doctype() -> None:
    upper = document("<!DocType HTML><HTML>x</HTML>")
    bare = document("Sure:\n<html>x</html>")
    assert upper is not None and bare is not None
    assert (upper.html, upper.warnings) == ("<!DocType HTML><HTML>x</HTML>", ())
    assert (bare.html, bare.warnings) == ("<html>x</html>", (NO_DOCTYPE,))


def test_a_fence_behind_a_cut_document_is_not_part_of_it() -> None:
    found = document("```html\n<!DOCTYPE html><html><p>x\n```\n")
    assert found is not None
    assert (found.html, found.warnings) == ("<!DOCTYPE html><html><p>x", (UNCLOSED,))


def test_the_last_heading_counts() -> None:
    draft = "<!DOCTYPE html><html>draft</html>"
    answer = (
        f"# Next State Reasoning: first\n# HTML:\n```html\n{draft}\n```\nNo, wrong.\n"
        f"# HTML: \n{PAGE}"
    )
    found = document_after_heading(answer)
    assert found is not None and found.html == PAGE


@pytest.mark.parametrize(
    "answer",
    [
        f"# Next State Reasoning: x\n```html\n{PAGE}\n```",  # no heading: the fence
        f"well\n{PAGE}",  # neither: raw
        f"# HTML: {PAGE}\n# HTML:\n(that was it)",  # nothing after the last one
    ],
)
def test_without_the_heading_a_fence_or_the_raw_text_serves(answer: str) -> None:
    found = document_after_heading(answer)
    assert found is not None and found.html == PAGE


@pytest.mark.parametrize(
    "piece", ["<", "<!--", "<p a='", "<script>", "= ", "```html\n", "# HTML:\n"]
)
def test_a_hostile_answer_is_read_in_linear_time(piece: str) -> None:
    # Quadratic work on 2 million characters would not end within the hour.
    found = document("<!DOCTYPE html>" + piece * (2_000_000 // len(piece)))
    assert found is not None and found.warnings == (UNCLOSED,)
