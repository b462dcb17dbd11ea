"""From raw arguments to typed ones: points, texts, choices, numbers.

Every complaint is a Reject that names the argument. What an action needs is the dialect's
business; here is only how a value may be written.
"""

import re
from collections.abc import Mapping, Sequence
from typing import TypeVar

from wmkit.domain.actions import FinishStatus, Reveal
from wmkit.domain.dialects.base import Reject, Span
from wmkit.domain.dialects.grids import Grid
from wmkit.domain.dialects.reader import Value, Word
from wmkit.domain.screen import Point

FINGER_TO_REVEAL: dict[str, Reveal] = {
    "up": "down",
    "down": "up",
    "left": "right",
    "right": "left",
}
REVEAL_TO_FINGER = {reveal: finger for finger, reveal in FINGER_TO_REVEAL.items()}
REVEALS: dict[str, Reveal] = {"up": "up", "down": "down", "left": "left", "right": "right"}
STATUSES: dict[str, FinishStatus] = {
    "success": "success",
    "complete": "success",
    "completed": "success",
    "infeasible": "infeasible",
    "impossible": "infeasible",
    "failure": "infeasible",
    "failed": "infeasible",
    "fail": "infeasible",
}

_T = TypeVar("_T")


class Arguments:
    """Arguments of one action, by name or by position; each may be taken once.

    `finish` complains about what nobody took.
    """

    def __init__(
        self,
        action: str,
        named: Mapping[str, Value],
        positional: Sequence[Value],
        span: Span,
        grid: Grid,
        *,
        boxes: bool = False,
    ) -> None:
        self.action = action
        self._named = dict(named)
        self._positional = list(positional)
        self._known: dict[str, Point] = {}
        self.span = span
        self._grid = grid
        self._boxes = boxes

    def finish(self, skipped: frozenset[str] = frozenset()) -> None:
        """Raises Reject when an argument is left over, except those in `skipped`."""
        for name in self._named:
            if name not in skipped:
                raise self.reject(f"{self.action} takes no argument {name[:40]!r}")
        if self._positional:
            raise self.reject(f"{self.action} has {len(self._positional)} argument(s) too many")

    def reject(self, reason: str) -> Reject:
        return Reject(reason, *self.span)

    def take(self, *names: str) -> Value | None:
        """The first argument with one of these names, else the next one by position."""
        for name in names:
            if name in self._named:
                return self._named.pop(name)
        return self._positional.pop(0) if self._positional else None

    def text(self, *names: str) -> str:
        value = self.take(*names)
        if value is None:
            raise self.reject(f"{self.action} needs {names[0]}")
        if not isinstance(value, str):
            raise self.reject(f"{names[0]} must be a text")
        return str(value)

    def optional_text(self, *names: str) -> str | None:
        return self.text(*names) if self.has(*names) else None

    def is_named(self, name: str) -> bool:
        return name in self._named

    def has(self, *names: str) -> bool:
        return bool(self._positional) or any(name in self._named for name in names)

    def choice(self, choices: Mapping[str, _T], *names: str) -> _T:
        """A word out of `choices`, whatever its case."""
        word = self.text(*names).strip()
        if word.lower() not in choices:
            raise self.reject(f"{names[0]} is one of {', '.join(choices)}, not {word[:40]!r}")
        return choices[word.lower()]

    def find_choice(self, choices: Mapping[str, _T], name: str) -> _T:
        """Like `choice`, but by position it may stand anywhere: `scroll((540, 1200), 'up')`."""
        for i, value in enumerate(self._positional):
            if name not in self._named and isinstance(value, str) and value.lower() in choices:
                self._named[name] = self._positional.pop(i)
                break
        if name not in self._named:
            raise self.reject(f"{self.action} needs {name}: {', '.join(choices)}")
        return self.choice(choices, name)

    def flag(self, name: str) -> bool:
        """true or false; false when it is not given."""
        if not self.is_named(name):
            return False
        return self.choice({"true": True, "false": False}, name)

    def integer(self, name: str) -> int:
        numbers = self._numbers(self._named.pop(name, ""), name)
        if len(numbers) != 1 or not numbers[0].is_integer():
            raise self.reject(f"{name} must be one whole number")
        return int(numbers[0])

    def milliseconds(self, *names: str) -> int | None:
        """A duration that is written in seconds; None when it is not given."""
        value = self.take(*names)
        if value is None:
            return None
        seconds = self._numbers(value, names[0])
        if len(seconds) != 1 or not 0 <= seconds[0] < 1e6:
            raise self.reject(f"{names[0]} must be a number of seconds")
        return round(seconds[0] * 1000)

    def point(self, *names: str) -> Point:
        point = self.optional_point(*names)
        if point is None:
            raise self.reject(f"{self.action} needs {names[0]}")
        return point

    def set_point(self, name: str, point: Point) -> None:
        """A point that is known by other means than numbers on the grid."""
        self._known[name] = point

    def optional_point(self, *names: str) -> Point | None:
        """A point as numbers, list, tuple or text, or as two arguments x and y."""
        for name in names:
            if name in self._known:
                return self._known[name]
            if name in self._named:
                return self.to_point(self._named.pop(name), name)
        if "x" in self._named and "y" in self._named:
            return self.to_point([self._named.pop("x"), self._named.pop("y")], "(x, y)")
        if self._positional and self._is_bare_number(self._positional[0]):
            numbers = [v for v in self._positional if self._is_bare_number(v)]
            self._positional = self._positional[len(numbers) :]
            return self.to_point(list(numbers), names[0])
        if self._positional:
            return self.to_point(self._positional.pop(0), names[0])
        return None

    def to_point(self, value: Value, name: str) -> Point:
        numbers = self._numbers(value, name)
        if len(numbers) == 4 and self._boxes:
            # UI-TARS 1.0 answers with the element's box; what it means is its middle.
            numbers = [(numbers[0] + numbers[2]) / 2, (numbers[1] + numbers[3]) / 2]
        if len(numbers) != 2:
            raise self.reject(f"{name} must be two numbers, not {len(numbers)}")
        return self._grid.read(numbers[0], numbers[1], self.span)

    def _numbers(self, value: Value, name: str) -> list[float]:
        if isinstance(value, list):
            return [number for item in value for number in self._numbers(item, name)]
        if isinstance(value, str):
            try:
                return [float(token) for token in _without_marks(value).split()]
            except ValueError:
                raise self.reject(f"{name}={value[:40]!r} is not a number or a point") from None
        raise self.reject(f"{name} must be numbers")

    @staticmethod
    def _is_bare_number(value: Value) -> bool:
        if not isinstance(value, Word):
            return False
        try:
            float(value)
        except ValueError:
            return False
        return True


_MARK = re.compile(r"<[^<>]*>|[,;()\[\]{}]")


def _without_marks(text: str) -> str:
    """`<point>540 1200</point>` and `<|box_start|>(540,1200)<|box_end|>` without the marks."""
    return _MARK.sub(" ", text)
