"""What a bounded memory keeps, by number and by size."""

from wmkit.lru import Lru


def test_what_was_used_least_recently_goes_first() -> None:
    lru: Lru[str, int] = Lru(2)
    lru["a"] = 1
    lru["b"] = 2
    assert lru.get("a") == 1
    lru["c"] = 3
    assert (lru.get("a"), lru.get("b"), lru.get("c"), len(lru)) == (1, None, 3, 2)


def test_sizes_are_added_up_and_replaced() -> None:
    lru: Lru[str, bytes] = Lru(10, len)
    lru["a"], lru["b"] = b"1234", b"123456"
    assert list(lru) == ["a", "b"]
    lru["a"] = b"12345"
    assert (lru.get("a"), lru.get("b"), lru.currsize) == (b"12345", None, 5)
    lru.clear()
    assert (len(lru), lru.currsize) == (0, 0)


def test_what_is_larger_than_all_of_it_is_not_kept_and_drives_nothing_out() -> None:
    lru: Lru[str, bytes] = Lru(10, len)
    lru["a"] = b"1234"
    lru["b"] = b"12345678901"
    assert list(lru) == ["a"]
    none: Lru[str, bytes] = Lru(0, len)
    none["a"] = b"1"
    assert not none
