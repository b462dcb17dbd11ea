"""What was used most recently, up to a number of entries or bytes. In-process only; no locks."""

from typing import TypeVar

from cachetools import LRUCache

K = TypeVar("K")
V = TypeVar("V")


class Lru(LRUCache[K, V]):
    """A dict of at most `maxsize`, where a value counts one, or `getsizeof(value)`.

    Reading an entry makes it the youngest, so threads that read need a lock as well. What is larger
    than `maxsize` alone is not kept, and does not replace what is known under its key.
    """

    def __setitem__(self, key: K, value: V) -> None:
        if self.getsizeof(value) <= self.maxsize:
            super().__setitem__(key, value)
