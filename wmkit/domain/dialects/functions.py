"""What the dialects with `Action: name(...)` share: finding the call and framing it.

Not a dialect itself; `wmr1_android` and `uitars_mobile` say which names there are.
"""

import re
from abc import ABC, abstractmethod

from wmkit.domain.actions import Action
from wmkit.domain.dialects.arguments import Arguments
from wmkit.domain.dialects.base import ParsedAction, ParseError, Reject
from wmkit.domain.dialects.grids import PixelGrid
from wmkit.domain.dialects.reader import CutOff, RawCall, read_call
from wmkit.domain.dialects.thoughts import skip_thought
from wmkit.domain.errors import InvalidAction
from wmkit.domain.screen import Point, View

_LINE_MARKER = re.compile(r"^[^\S\n]*[*_#>\-]*[^\S\n]*Action\s*[:：][*_\s`]*", re.M | re.I)
_ANY_MARKER = re.compile(r"\bAction\s*[:：][*_\s`]*", re.I)
_LEAD = re.compile(r"[\s`*]*")


class FunctionDialect(ABC):
    """Pixels of the picture that the model saw, `Action:` before the call."""

    name: str
    names: tuple[str, ...]
    """The words that open an action, in the order of the prompt."""

    @abstractmethod
    def read(self, args: Arguments) -> Action:
        """The action of one call whose name is in `names`. Raises Reject."""

    @abstractmethod
    def render(self, action: Action, view: View) -> str: ...

    @abstractmethod
    def supports(self, action: Action) -> bool: ...

    def parse(self, text: str, view: View) -> ParsedAction | ParseError:
        try:
            call = find_call(text, self.names)
            args = Arguments.of_call(call, PixelGrid(*view.model_px), boxes=True)
            if args.action not in self.names:
                known = ", ".join(self.names)
                raise args.reject(f"unknown action {call.name[:40]!r}; known: {known}")
            action = self.read(args)
            args.finish()
        except Reject as reject:
            return reject.error(text)
        except InvalidAction as error:
            return ParseError(error.message, call.span, text[slice(*call.span)][:200])
        return ParsedAction(action, call.span)

    def answer(self, action: Action, view: View) -> str:
        return f"Action: {self.render(action, view)}"


def pixels(point: Point, view: View) -> tuple[int, int]:
    """The pixel of the model's picture that holds `point`."""
    return PixelGrid(*view.model_px).write(point)


def find_call(text: str, names: tuple[str, ...]) -> RawCall:
    """The one call of an answer. Raises Reject when there is none, or more than one."""
    start = skip_thought(text)
    call = _first_call(text, start)
    rest = re.compile(rf"\b(?:{'|'.join(names)})\s*\(", re.I).search(text, call.span[1])
    if rest is not None:
        raise Reject("the answer holds two actions", rest.start(), len(text))
    return call


def _first_call(text: str, start: int) -> RawCall:
    """The call after the first `Action:` that has one; a bare call without any `Action:`."""
    pattern = _LINE_MARKER if _LINE_MARKER.search(text, start) else _ANY_MARKER
    marker = pattern.search(text, start)
    if marker is None:
        lead = _LEAD.match(text, start)
        at = lead.end() if lead else start
        if at == len(text):
            raise Reject("there is no action", start, len(text))
        return read_call(text, at)
    while True:
        at = marker.end()
        try:
            return read_call(text, at)
        except CutOff:
            raise
        except Reject as reject:
            # A thought may say "Action:" too. Going on behind the complaint keeps this linear.
            following = pattern.search(text, max(at, reject.end))
            if following is None:
                raise
            marker = following
