"""What a person types to act on a phone, as canonical actions. Pure."""

import shlex
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from wmkit.domain.actions import (
    Action,
    Answer,
    Back,
    DoubleTap,
    Enter,
    Finish,
    Home,
    LongPress,
    OpenApp,
    Recents,
    Scroll,
    Swipe,
    Tap,
    Type,
    Wait,
    from_dict,
)
from wmkit.domain.errors import InvalidAction
from wmkit.domain.screen import Point, Screen
from wmkit.domain.transition import Element

HELP = """\
  tap N | tap X Y       tap element N, or a point (fractions of the screen: tap 0.5 0.3)
  long N, double N      long press, double tap
  type TEXT             type into the focused field; enter submits
  scroll down           show what lies below (also up, left, right)
  swipe X Y X2 Y2       move a finger
  open NAME             open an app
  back, home, recents, wait
  ? ACTION              imagine: show what the action would lead to, and stay
  undo                  go back to the screen before (states never change)
  done | infeasible     end here and hear the judge
  answer TEXT           end with an answer
  help, quit"""

_PLAIN: dict[str, Action] = {
    action.name: action for action in (Back(), Home(), Recents(), Enter(), Wait())
}
_TOUCHES: dict[str, Callable[[Point], Action]] = {
    "tap": Tap,
    "long": LongPress,
    "double": DoubleTap,
}


@dataclass(frozen=True, slots=True)
class Move:
    """An action, to be done or only imagined; or, with no action, one of the other words."""

    action: Action | None = None
    imagine: bool = False
    word: str = ""


def read(line: str, elements: Sequence[Element], screen: Screen) -> Move:
    """Read one line; elements are numbered from 1. Raises InvalidAction in one sentence."""
    text = line.strip()
    if text.startswith("?"):
        move = read(text[1:], elements, screen)
        if move.action is None or isinstance(move.action, Answer | Finish):
            raise InvalidAction("only an action on the phone can be imagined, such as ? tap 3")
        return Move(move.action, imagine=True)
    word, _, rest = text.partition(" ")
    word, rest = word.lower(), rest.strip()
    match word:
        case "undo" | "help" | "quit" | "exit" | "":
            return Move(word="quit" if word == "exit" else word or "help")
        case "done" | "finish":
            return Move(Finish())
        case "infeasible":
            return Move(Finish("infeasible"))
        case "answer":
            return Move(Answer(_required(rest, "answer what? for example: answer 7:30")))
        case "type":
            return Move(Type(_required(_unquoted(rest), "type what? for example: type milk")))
        case "open":
            return Move(OpenApp(_required(rest, "open what? for example: open Clock")))
        case "scroll":
            reveal = _required(rest, "scroll where? up, down, left or right").lower()
            return Move(from_dict({"action": Scroll.name, "reveal": reveal}))
        case "swipe":
            x, y, x2, y2 = _numbers(rest, 4, "swipe 0.5 0.8 0.5 0.2")
            return Move(Swipe(Point(x, y), Point(x2, y2)))
        case "tap" | "long" | "double":
            return Move(_TOUCHES[word](_place(rest, elements, screen, word)))
        case _ if word in _PLAIN and not rest:
            return Move(_PLAIN[word])
        case _:
            raise InvalidAction(f"{text!r} is no action; help lists what there is")


def _place(text: str, elements: Sequence[Element], screen: Screen, word: str) -> Point:
    if text.isdecimal():
        n = int(text)
        if not 1 <= n <= len(elements):
            raise InvalidAction(f"there is no element {n}; this screen has 1 to {len(elements)}")
        return elements[n - 1].center(screen)
    x, y = _numbers(text, 2, f"{word} 3, or {word} 0.5 0.3")
    return Point(x, y)


def _numbers(text: str, count: int, example: str) -> list[float]:
    words = text.replace(",", " ").split()
    try:
        numbers = [float(word) for word in words]
    except ValueError:
        numbers = []
    if len(numbers) != count:
        raise InvalidAction(f"that takes {count} numbers, for example: {example}")
    return numbers


def _unquoted(text: str) -> str:
    """`"two words"` without its quotes; a lone apostrophe is text."""
    if len(text) > 1 and text[0] == text[-1] and text[0] in "\"'":
        try:
            words = shlex.split(text)
        except ValueError:
            return text
        return words[0] if len(words) == 1 else text
    return text


def _required(text: str, question: str) -> str:
    if not text:
        raise InvalidAction(question)
    return text
