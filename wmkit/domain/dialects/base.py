"""The interface of all dialects, and what parsing and rendering answer.

A dialect turns an agent's text into a canonical action and back. It knows nothing of
prompts, thoughts or episodes; `wmkit.domain.transcript` cuts the thought off first.
"""

from dataclasses import dataclass
from typing import Protocol

from wmkit.domain.actions import Action
from wmkit.domain.errors import InvalidAction
from wmkit.domain.screen import View

Span = tuple[int, int]


@dataclass(frozen=True, slots=True)
class ParsedAction:
    """`span` = (start, end) of the action in the text that was parsed, in characters."""

    action: Action
    span: Span


@dataclass(frozen=True, slots=True)
class ParseError:
    """Why a text is no action. `reason` is a clause without a full stop, `text` the culprit."""

    reason: str
    span: Span
    text: str


class Unsupported(InvalidAction):
    """A dialect has no words for this action; `supports(action)` would have said so."""


class Dialect(Protocol):
    @property
    def name(self) -> str: ...

    def supports(self, action: Action) -> bool:
        """Whether `render` has words for exactly this action, every argument included."""
        ...

    def parse(self, text: str, view: View) -> ParsedAction | ParseError:
        """Read an answer (with or without a thought before it). Never raises; linear time."""
        ...

    def render(self, action: Action, view: View) -> str:
        """The bare action, as it stands inside `<call_wm>` and in the action log.

        `parse` reads it back, points within half a cell of the dialect's grid. Raises
        Unsupported.
        """
        ...

    def answer(self, action: Action, view: View) -> str:
        """The whole answer that follows the thought: `render` in the dialect's frame."""
        ...

    def describe(self, view: View | None = None) -> str:
        """The action list for a prompt, in the dialect's own words.

        `view` matters only to dialects whose prompt states the resolution.
        """
        ...


class Reject(Exception):
    """Raised inside parsers only; `parse` turns it into a ParseError."""

    def __init__(self, reason: str, start: int, end: int) -> None:
        super().__init__(reason)
        self.reason = reason
        self.start = start
        self.end = end

    def error(self, text: str) -> ParseError:
        """The same complaint as a value. `text` is what was parsed; the quote is shortened."""
        end = min(max(self.end, self.start), len(text))
        start = min(self.start, end)
        return ParseError(self.reason, (start, end), text[start:end][:200])
