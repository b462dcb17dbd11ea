"""What the dialects with one JSON (or Python) object share: finding, reading, writing it.

Not a dialect itself.
"""

import json
import re
from collections.abc import Mapping

from wmkit.domain.dialects.arguments import Arguments
from wmkit.domain.dialects.base import Reject, Span
from wmkit.domain.dialects.parsing import ParsingDialect
from wmkit.domain.dialects.reader import SPECIAL_TAG, CutOff, Value, Word, read_value
from wmkit.domain.dialects.thoughts import skip_thought
from wmkit.domain.screen import View

_NOTHING = frozenset(("null", "none"))


class ObjectDialect(ParsingDialect):
    """One object with the action's name under `key`, after the tag `opening` where there is one."""

    key: str = "action"
    opening: str = ""

    def find(self, text: str, view: View) -> Arguments:
        start = skip_thought(text)
        opened = text.find(self.opening, start) if self.opening else -1
        found, span = find_object(text, max(start, opened))
        named = self.unwrap(found, span)
        another = re.compile(rf"\{{\s*[\"']?{self.another_key()}[\"']?\s*:").search(text, span[1])
        if another is not None:
            raise Reject("the answer holds two actions", another.start(), len(text))
        name = named.pop(self.key, None)
        if not isinstance(name, str):
            raise Reject(f"the object does not say its {self.key!r}", *span)
        return Arguments(name.strip().lower(), named, (), span, self.grid(view))

    def unwrap(self, found: dict[str, Value], span: Span) -> dict[str, Value]:
        """The action's own fields; null counts as not given. Raises Reject."""
        return {
            key: value
            for key, value in found.items()
            if not (isinstance(value, Word) and value.lower() in _NOTHING)
        }

    def another_key(self) -> str:
        """The key by which a second action would be known."""
        return self.key


def find_object(text: str, start: int) -> tuple[dict[str, Value], Span]:
    """The first `{...}` that can be read. Raises Reject, about the first that cannot."""
    complaint = Reject("there is no action: no {...} was found", start, len(text))
    at = text.find("{", start)
    first = True
    while at >= 0:
        try:
            value, end = read_value(text, at)
            assert isinstance(value, dict)
            return value, (at, end)
        except CutOff:
            raise
        except Reject as reject:
            complaint, first = (reject if first else complaint), False
            at = text.find("{", max(at + 1, reject.end))
    raise complaint


def dump(fields: Mapping[str, object]) -> str:
    r"""JSON on one line; tags that could end a call or a turn get `\u003c` for their `<`."""
    return SPECIAL_TAG.sub(r"\\u003c", json.dumps(fields, ensure_ascii=False))
