"""What an app is: data, a pure reducer and a drawing function, registered under a name."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from random import Random
from typing import Generic, TypeVar

from services.worldmodel.phone.geometry import Element
from services.worldmodel.phone.state import Frame, Part, Stack

D = TypeVar("D", bound=Part)


@dataclass(frozen=True)
class Listing:
    """The scrollable list of a page: every row's key from top to bottom, and how many fit."""

    keys: tuple[str, ...]
    visible: int

    @property
    def last(self) -> int:
        """The largest scroll offset, in rows."""
        return max(0, len(self.keys) - self.visible)


def no_hold(data: D, stack: Stack, _key: str) -> tuple[D, Stack]:
    """A long press that does nothing."""
    return data, stack


def no_wait(data: D, _seconds: int) -> D:
    """An app in which nothing happens by itself."""
    return data


@dataclass(frozen=True)
class App(Generic[D]):
    """An app. All functions are pure; keys come from the elements that `draw` made.

    `tap` and `hold` take (data, back stack, key) and return the new pair. They are only
    called with keys that are on the screen. `submit` is Enter in a field. `door` names the
    key that opens a page from the one below it, `pages` lists stacks a task may start in.
    """

    name: str
    data: type[D]
    root: Frame
    boot: Callable[[Random], D]
    title: Callable[[D, Frame], str]
    draw: Callable[[D, Stack], Sequence[Element]]
    tap: Callable[[D, Stack, str], tuple[D, Stack]]
    listing: Callable[[D, Frame], Listing | None]
    door: Callable[[Frame], str]
    pages: Callable[[D], tuple[Stack, ...]]
    hold: Callable[[D, Stack, str], tuple[D, Stack]] = no_hold
    fields: Callable[[Frame], tuple[str, ...]] = lambda _frame: ()
    wait: Callable[[D, int], D] = no_wait


def push(stack: Stack, page: str, item: str = "") -> Stack:
    """Open a page on top."""
    return (*stack, Frame(page, item))


def pop(stack: Stack) -> Stack:
    """Leave the page on top; the root stays."""
    return stack[:-1] if len(stack) > 1 else stack


def ask(stack: Stack, item: str) -> Stack:
    """Open the confirm dialog about `item`."""
    return (*stack[:-1], replace(stack[-1], dialog=item))
