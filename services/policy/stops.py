"""Finding stop strings in a growing answer, where they may span tokens and split characters."""

from collections.abc import Sequence


class StopSearch:
    """Watches the bytes of one answer for any of `stops`.

    Works on bytes, because a token may hold half a character. Only the tail that could
    complete a stop string is searched again.
    """

    def __init__(self, stops: Sequence[str]) -> None:
        self._sought = tuple(stops)
        self._stops = [(stop, stop.encode()) for stop in stops]
        self._keep = max((len(needle) for _, needle in self._stops), default=1) - 1
        self._tail = b""

    def feed(self, token: bytes) -> str | None:
        """Append one token's bytes; the stop string that it completes (first to end, longest)."""
        if not self._stops:
            return None
        text = self._tail + token
        found: tuple[int, int, str] | None = None
        for stop, needle in self._stops:
            at = text.find(needle)
            if at >= 0:
                candidate = (at + len(needle), -len(needle), stop)
                found = candidate if found is None else min(found, candidate)
        self._tail = text[-self._keep :] if self._keep else b""
        return found[2] if found else None

    def fresh(self) -> "StopSearch":
        """The same search at the beginning of another answer."""
        return StopSearch(self._sought)
