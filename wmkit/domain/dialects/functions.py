"""What the dialects with `Action: name(...)` share: finding the call and framing it.

Not a dialect itself; `wmr1_android` and `uitars_mobile` say which names there are.
"""

import re

from wmkit.domain.actions import Action
from wmkit.domain.dialects.arguments import Arguments
from wmkit.domain.dialects.base import Reject
from wmkit.domain.dialects.parsing import ParsingDialect
from wmkit.domain.dialects.reader import CutOff, RawCall, read_call
from wmkit.domain.dialects.thoughts import skip_thought
from wmkit.domain.screen import View

_LINE_MARKER = re.compile(
    r"^[^\S\n]*+(?:[*_#>\-]++[^\S\n]*+)?Action\s*+[:：][*_\s`]*+", re.M | re.I
)
_ANY_MARKER = re.compile(r"\bAction\s*+[:：][*_\s`]*+", re.I)
_LEAD = re.compile(r"[\s`*]*")


class FunctionDialect(ParsingDialect):
    """`Action:` before one call; the model's pixels, or its boxes (their middle is meant)."""

    def find(self, text: str, view: View) -> Arguments:
        call = find_call(text, self.names)
        return Arguments(
            call.name.lower(), call.kwargs, call.args, call.span, self.grid(view), boxes=True
        )

    def answer(self, action: Action, view: View) -> str:
        return f"Action: {self.render(action, view)}"


def find_call(text: str, names: tuple[str, ...]) -> RawCall:
    """The one call of an answer. Raises Reject when there is none, or more than one."""
    opening = re.compile(rf"\b(?:{'|'.join(names)})\s*+\(", re.I)
    call = _first_call(text, skip_thought(text), opening)
    another = opening.search(text, call.span[1])
    if another is not None:
        raise Reject("the answer holds two actions", another.start(), len(text))
    return call


def _first_call(text: str, start: int, opening: re.Pattern[str]) -> RawCall:
    """A bare call at the start, else the one behind the first `Action:` that has one."""
    lead = _LEAD.match(text, start)
    bare = lead.end() if lead else start
    if bare == len(text):
        raise Reject("there is no action", start, len(text))
    pattern = _LINE_MARKER if _LINE_MARKER.search(text, start) else _ANY_MARKER
    marker = pattern.search(text, start)
    if marker is None or opening.match(text, bare):
        return read_call(text, bare)
    while True:
        try:
            return read_call(text, marker.end())
        except CutOff:
            raise
        except Reject as reject:
            # A thought may say "Action:" too. Going on behind the complaint keeps this linear.
            following = pattern.search(text, max(marker.end(), reject.end))
            if following is None:
                raise
            marker = following
