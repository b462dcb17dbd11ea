"""What every dialect's `parse` has in common: find the arguments, read the action, report.

Not a dialect; `functions` and `objects` say how the arguments are found.
"""

from abc import ABC, abstractmethod

from wmkit.domain.actions import Action
from wmkit.domain.dialects.arguments import Arguments
from wmkit.domain.dialects.base import ParsedAction, ParseError, Reject, Unsupported
from wmkit.domain.dialects.canonical import describe
from wmkit.domain.dialects.grids import Grid, PixelGrid
from wmkit.domain.errors import InvalidAction
from wmkit.domain.screen import View

_ANY_VIEW = View((1080, 2400), (1080, 2400))


class ParsingDialect(ABC):
    name: str
    names: tuple[str, ...]
    """The words that open an action, lower case, in the order of the prompt."""
    keys: frozenset[str] = frozenset()
    """Arguments that are skipped where an action has no use for them."""

    @abstractmethod
    def find(self, text: str, view: View) -> Arguments:
        """The one action of an answer, not yet read. Raises Reject."""

    @abstractmethod
    def read(self, args: Arguments) -> Action:
        """The action; `args.action` is one of `names`. Raises Reject."""

    @abstractmethod
    def write(self, action: Action, grid: Grid) -> str | None:
        """The bare action; None where the dialect has no words for it."""

    def grid(self, view: View) -> Grid:
        """Where coordinates live: by default pixels of the picture that the model saw."""
        return PixelGrid(*view.model_px)

    def supports(self, action: Action) -> bool:
        return self.write(action, self.grid(_ANY_VIEW)) is not None

    def render(self, action: Action, view: View) -> str:
        text = self.write(action, self.grid(view))
        if text is None:
            raise Unsupported(f"{self.name} has no words for {describe(action)}", field="action")
        return text

    def answer(self, action: Action, view: View) -> str:
        return self.render(action, view)

    def parse(self, text: str, view: View) -> ParsedAction | ParseError:
        try:
            args = self.find(text, view)
            if args.action not in self.names:
                known = ", ".join(self.names)
                raise args.reject(f"unknown action {args.action[:40]!r}; known: {known}")
            action = self.read(args)
            args.finish(self.keys)
        except Reject as reject:
            return reject.error(text)
        except InvalidAction as error:  # a point that its grid let through
            return ParseError(error.message, (0, len(text)), text[:200])
        return ParsedAction(action, args.span)
