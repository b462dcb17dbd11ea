"""What an app is: data, a pure reducer and a drawing function, registered under a name."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from random import Random
from typing import Generic, NamedTuple, TypeVar

from services.worldmodel.phone.effects import Effect
from services.worldmodel.phone.geometry import Element
from services.worldmodel.phone.state import Frame, Part, Stack

D = TypeVar("D", bound=Part)


class Reply(NamedTuple, Generic[D]):
    """How an app reacts: its data and back stack afterwards, and what the system should do."""

    data: D
    stack: Stack
    effects: tuple[Effect, ...] = ()


@dataclass(frozen=True)
class Listing:
    """The scrollable list of a page: every row's key from top to bottom, and how many fit.

    Scroll offsets count steps of `per_row` keys, so a grid of tiles scrolls by its lines.
    """

    keys: tuple[str, ...]
    visible: int
    per_row: int = 1

    @property
    def rows(self) -> int:
        """How many rows there are."""
        return -(-len(self.keys) // self.per_row)

    @property
    def last(self) -> int:
        """The largest scroll offset, in rows."""
        return max(0, self.rows - self.visible)

    def row_of(self, key: str) -> int:
        """The row that holds a key. Raises ValueError for one that is not in the list."""
        return self.keys.index(key) // self.per_row


def no_hold(data: D, stack: Stack, _key: str) -> Reply[D]:
    """A long press that does nothing."""
    return Reply(data, stack)


def no_wait(data: D, _seconds: int) -> tuple[D, tuple[Effect, ...]]:
    """An app in which nothing happens by itself."""
    return data, ()


def close_keyboard(data: D, stack: Stack) -> Reply[D]:
    """Enter in the last field puts the keyboard away."""
    return Reply(data, (*stack[:-1], replace(stack[-1], focus="")))


@dataclass(frozen=True)
class App(Generic[D]):
    """An app. All functions are pure; keys come from the elements that `draw` made.

    `tap` and `hold` take (data, back stack, key). They are only called with keys that are on
    the screen; keys named app, back, cancel, field and os.* are the system's and never reach
    them. `submit` is Enter in the last field of a page. `wait` runs for every app, open or
    not, and gives (data, effects). `door` names the key that opens a page from the one below
    it, `pages` lists stacks a task may start in. `link` makes the stack for an `Open` or a
    notification; without it the page is looked for in `pages`. `glyphs` are SVG shapes of
    the app's own, by name.
    """

    name: str
    data: type[D]
    root: Frame
    boot: Callable[[Random], D]
    title: Callable[[D, Frame], str]
    draw: Callable[[D, Stack], Sequence[Element]]
    tap: Callable[[D, Stack, str], Reply[D]]
    listing: Callable[[D, Frame], Listing | None]
    door: Callable[[Frame], str]
    pages: Callable[[D], tuple[Stack, ...]]
    hold: Callable[[D, Stack, str], Reply[D]] = no_hold
    fields: Callable[[Frame], tuple[str, ...]] = lambda _frame: ()
    submit: Callable[[D, Stack], Reply[D]] = close_keyboard
    wait: Callable[[D, int], tuple[D, tuple[Effect, ...]]] = no_wait
    link: Callable[[D, str, str], Reply[D]] | None = None
    glyphs: Mapping[str, str] = field(default_factory=dict)


def push(stack: Stack, page: str, item: str = "") -> Stack:
    """Open a page on top."""
    return (*stack, Frame(page, item))


def pop(stack: Stack) -> Stack:
    """Leave the page on top; the root stays."""
    return stack[:-1] if len(stack) > 1 else stack


def ask(stack: Stack, item: str) -> Stack:
    """Open the confirm dialog about `item`."""
    return (*stack[:-1], replace(stack[-1], dialog=item))
