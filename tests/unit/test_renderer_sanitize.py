"""What the sanitizer takes out of a document, what it says, and what it leaves alone."""

import re
from html.parser import HTMLParser

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from services.renderer.limits import Limits
from services.renderer.sanitize import Clean, sanitize
from tests.renderer_cases import EXPECTED, case, document
from wmkit.domain.transition import FailureReason

LIMITS = Limits()
# The words of the cases and ours; the rest is said by the browser, not by the sanitizer.
WORDS = {
    "script removed": "script removed",
    "meta refresh removed": "meta refresh removed",
    "frame removed": "frame removed",
    "remote references blocked": "remote reference removed",
    "unclosed document": "unclosed document",
}


def clean(html: str) -> Clean:
    return sanitize(html, LIMITS)


@pytest.mark.parametrize("expected", EXPECTED, ids=lambda e: e["file"])
def test_cases_are_named(expected: dict[str, str]) -> None:
    if expected["file"].endswith(".txt"):
        return  # An answer to extract a page from.
    warnings = clean(case(expected["file"])).warnings
    for words in expected["warnings"]:
        if words in WORDS:
            assert any(sentence.startswith(WORDS[words]) for sentence in warnings)


@pytest.mark.parametrize(
    "html", ["", " \n\t", "<!DOCTYPE html>", "<!-- only a comment -->", "<!-- open", "\ufeff \n"]
)
def test_nothing_is_no_document(html: str) -> None:
    assert clean(html).reason is FailureReason.NO_DOCUMENT


@pytest.mark.parametrize(
    "body",
    [
        "<p>Mail from on=x, url(http://a.b) and @import 'x' are words here</p>",
        '<a href="https://example.org/">a link loads nothing</a>',
        '<img src="data:image/gif;base64,R0lGODlhAQABAAAAACwAAAAAAQABAAA=">',
        '<svg><use href="#icon"/><rect fill="url(#paint)"/></svg>',
        "<style>.a { background: url('data:image/png;base64,AA==') }</style>",
        '<button data-on="x" aria-label="On">content=one</button>',
    ],
)
def test_a_clean_document_is_returned_byte_for_byte(body: str) -> None:
    assert clean(document(body)) == Clean(document(body))


@pytest.mark.parametrize(
    ("body", "gone", "warning"),
    [
        ("<ScRiPt>while(1);</sCrIpT>", "while", "script removed"),
        ("<svg><script>x()</script></svg>", "x()", "script removed"),
        ("<p ONCLICK='evil()'>t</p>", "evil", "event attribute removed"),
        ("<img/onerror=evil()>", "evil", "event attribute removed"),
        ('<p class="a"onfocus="evil()">t</p>', "evil", "event attribute removed"),
        ("<meta http-equiv=ReFresh content='0;url=x'>", "url=x", "meta refresh removed"),
        ("<meta http-equiv=content-security-policy content='style-src x'>", "style-src",
         "meta http-equiv removed"),
        ("<base href=http://x/>", "<base", "base tag removed"),
        ("<iframe srcdoc='<p>y</p>'></iframe>", "srcdoc", "frame removed"),
        ("<object data=x></object><embed src=y>", "<embed", "embedded object removed (2 times)"),
        ("<object><object><p>z</object></object>", "<p>z", "embedded object removed (2 times)"),
        ("<template><img src=x></template>", "<img", "template removed"),
        ("<link rel=preconnect href=//x>", "preconnect", "remote reference removed: //x"),
        ("<img src=icon.png alt=i>", "icon", "remote reference removed: icon.png"),
        ("<img srcset='http://x/a 2x'>", "//x", "remote reference removed: http://x/a 2x"),
        ("<video src=v poster=w></video>", "poster", "remote reference removed (2 times): v"),
        ("<svg><image xlink:href='//x/i'/></svg>", "//x", "remote reference removed: //x/i"),
        ("<p style='background:URL( \"//x/b\" )'>t</p>", "//x", "remote reference removed: //x/b"),
        ("<style>@import '/x';p{}</style>", "/x", "remote reference removed: @import '/x';"),
    ],
)  # fmt: skip
def test_what_runs_or_loads_is_removed_and_named(body: str, gone: str, warning: str) -> None:
    out = clean(document(f"<h1>kept</h1>{body}<h2>kept too</h2>"))
    assert out.warnings == (warning,)
    assert gone not in out.html
    assert "<h1>kept</h1>" in out.html
    assert "<h2>kept too</h2>" in out.html
    assert out.html.startswith("<!DOCTYPE html>")


def test_style_keeps_its_other_rules_and_their_quotes() -> None:
    sheet = 'a>b{background:url(http://x/i.png) #fff}c::before{content:"<&\'"}'
    out = clean(document("", head=f"<style>{sheet}</style>"))
    assert f"<style>{sheet.replace('http://x/i.png', 'data:,')}</style>" in out.html


@pytest.mark.parametrize(
    ("meta", "kept"),
    [
        ('<meta name="viewport" content="width=device-width">', None),
        ('<meta charset="utf-8">', None),
        ('<meta http-equiv="Content-Type" content="text/html">', None),
        ('<meta name="Color-Scheme" content="dark light">',
         "<style>:root{color-scheme:dark light}</style>"),
        ('<meta name="color-scheme" content="dark}p{color:red">', ""),
        ('<meta name="referrer" content="no-referrer">', ""),
    ],
)  # fmt: skip
def test_no_meta_outlives_its_document(meta: str, kept: str | None) -> None:
    out = clean(document("<p>x</p>", head=meta))
    assert out.warnings == ()
    assert meta not in out.html or kept is None
    assert (meta if kept is None else f'"utf-8">{kept}</head>') in out.html


def test_autofocus_becomes_a_fact() -> None:
    out = clean(document("<input autofocus>"))
    assert '<input data-focused="true">' in out.html
    assert out.warnings == ()


@pytest.mark.parametrize(
    ("html", "unclosed"),
    [
        ("<p>x</p></body></html>", False),
        ("<p>x</p></html> \n<!-- end -->", False),
        ("<p>x</p></html>\nHere is the page.", False),
        ("<p>x</p>", True),
        ("<script>s='</html>'</script><p>x", True),
        ("<p>x</p><style>p{}</html>", True),
        ("<p>x</p><!-- </html>", True),
        ("<p title='</html>", True),
    ],
)
def test_a_document_that_stops_early_is_unclosed(html: str, unclosed: bool) -> None:
    assert ("unclosed document" in clean(html).warnings) is unclosed


@pytest.mark.parametrize(
    ("tail", "kept"),
    [
        ("<p>x<img src=http://a on", "<p>x</p>"),
        ("<p>x<img src='http://a", "<p>x</p>"),
        ("<style>p{}", "<style>p{}</style>"),
        ("<title>Cl", "<title>Cl</title>"),
        ("<p>x<!-- Cl", "<p>x<!-- Cl--></p>"),
    ],
)
def test_a_document_cut_off_inside_something_stays_what_it_was(tail: str, kept: str) -> None:
    """A browser drops a tag that never ends, and nothing of ours may end it."""
    out = clean(f"<body><script>1</script>{tail}").html
    assert out == f"<html><head></head><body>{kept}</body></html>"


def test_prose_is_drawn_as_text() -> None:
    assert clean(case("prose.html")).warnings == ("no HTML: drawn as text",)


class Survivors(HTMLParser):
    """What another HTML parser still finds in the sanitizer's output."""

    def __init__(self, html: str) -> None:
        super().__init__()
        self.found: list[str] = []
        self.feed(html)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        if tag in ("script", "iframe", "object", "embed", "base"):
            self.found.append(tag)
        self.found += [name for name, _ in attrs if name.startswith("on")]
        if tag in ("img", "link", "video"):
            self.found += [v for k, v in attrs if k in ("src", "href") and v and v[:5] != "data:"]


PIECES = st.sampled_from(
    ["<script>", "</script>", "<p ", "on", "click=x", ">", "<", "/", " ", '"', "'", "<img src=a ",
     "<svg>", "</svg>", "<style>", "</style>", "url(http://x)", "<!--", "-->", "<table>", "<b>",
     "</b>", "<iframe ", "<math>", "<a href=x>", "text", "&lt;script&gt;", "<title>", "</title>"]
)  # fmt: skip


@given(st.lists(PIECES, max_size=25).map("".join))
@example("<math><style><img src=a onclick=x>")
@example("<img src=a on")
def test_no_mixture_of_pieces_survives(body: str) -> None:
    """Whatever is left, our own parser takes nothing more out of it, and a strict one agrees
    where nothing hides in another language's text (comments, styles, titles)."""
    once = clean(f"<p>{body}")
    again = sanitize(once.html, LIMITS)
    assert not [w for w in again.warnings if "removed" in w]
    if not re.search(r"<!--|<style|<title|<math|<svg", body):
        assert Survivors(once.html).found == []


@given(st.text())
def test_any_text_is_answered(text: str) -> None:
    out = clean(text)
    assert (out.reason is None) == bool(out.html) or out.html == ""


def test_half_an_emoji_does_not_stop_it() -> None:
    assert "?" in clean(document("\ud83d")).html
