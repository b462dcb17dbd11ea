"""Stop strings, against a plain search in the whole text after every token."""

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from services.policy.stops import StopSearch

_pieces = st.lists(st.text("ab</>c", max_size=4).map(str.encode), max_size=20)
_stops = st.lists(st.text("ab</>c", min_size=1, max_size=5), max_size=3)


def naive(pieces: list[bytes], stops: list[str]) -> tuple[int, str] | None:
    """Index of the completing token and the stop string that ends first (longest of those)."""
    text = b""
    for i, piece in enumerate(pieces):
        text += piece
        ends = [(text.find(s.encode()) + len(s), -len(s), s) for s in stops if s.encode() in text]
        if ends:
            return i, min(ends)[2]
    return None


@given(_pieces, _stops)
@example([b"<", b"/a", b">b"], ["</a>"])
@example([b"aab"], ["b", "ab", "aab"])
def test_the_first_completed_stop_string_is_found_at_its_token(
    pieces: list[bytes], stops: list[str]
) -> None:
    search = StopSearch(stops)
    expected = naive(pieces, stops)
    for i, piece in enumerate(pieces):
        found = search.feed(piece)
        if expected is not None and i == expected[0]:
            assert found == expected[1]
            return
        assert found is None


def test_a_stop_string_may_split_a_character() -> None:
    data = "日本".encode()
    search = StopSearch(["本"])
    assert [search.feed(data[i : i + 1]) for i in range(6)] == [None] * 5 + ["本"]


@pytest.mark.parametrize("junk", [b"\xff", b"\xe6\x97"])
def test_broken_utf8_does_not_hide_a_stop_string(junk: bytes) -> None:
    search = StopSearch(["stop"])
    assert search.feed(junk) is None
    assert search.feed(b"st") is None
    assert search.feed(b"op" + junk) == "stop"
