"""Remote style sheets and scripts are dropped, everything else stays byte for byte."""

import pytest

from services.worldmodel.learned.frameworks import drop_remote

CDN = "https://cdn.example.org"


@pytest.mark.parametrize(
    ("before", "after", "dropped"),
    [
        (
            f'<head><link rel="stylesheet" href="{CDN}/bootstrap.min.css"><p>x',
            "<head><p>x",
            [f"{CDN}/bootstrap.min.css"],
        ),
        (f"<script src='{CDN}/t.js'>if (1 < 2) x='</div>'</script><p>", "<p>", [f"{CDN}/t.js"]),
        ("<SCRIPT SRC=//cdn.example.org/m.js></SCRIPT>x", "x", ["//cdn.example.org/m.js"]),
        (f"<style>@import url('{CDN}/a.css'); p{{}}</style>", "<style> p{}</style>",
         [f"{CDN}/a.css"]),
        (f'<style>@import "{CDN}/b.css" screen;</style>', "<style></style>", [f"{CDN}/b.css"]),
        (f"<link href={CDN}/1.css><link href={CDN}/2.css>", "", [f"{CDN}/1.css", f"{CDN}/2.css"]),
    ],
)  # fmt: skip
def test_a_framework_from_the_web_is_dropped(before: str, after: str, dropped: list[str]) -> None:
    html, warnings = drop_remote(before)
    assert html == after
    assert warnings == tuple(f"DROPPED: {address}" for address in dropped)


@pytest.mark.parametrize(
    "html",
    [
        "<link rel=icon href='data:,'><script>var a = 'https://x'</script>",
        f"<p>&lt;link href='{CDN}'&gt;</p><a href='{CDN}'>x</a>",
        f"<!-- <script src='{CDN}'></script> -->",
        f"<style>p{{background:url({CDN}/a.png)}}</style>",
        "<script src='local.js'></script>",
    ],
)
def test_everything_else_stays(html: str) -> None:
    assert drop_remote(html) == (html, ())


def test_a_remote_script_without_an_end_takes_the_rest_with_it() -> None:
    assert drop_remote(f"<p>x<script src='{CDN}/a'>y")[0] == "<p>x"
