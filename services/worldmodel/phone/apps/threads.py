"""The data of Messages: conversations by person, gifts that open once, messages on their way.

What was sent stays sent: `sent` counts every message that went out and `opened` keeps every
gift, whatever is deleted later. Not here: pages and reactions (`messages`).
"""

from dataclasses import dataclass, replace
from random import Random

from services.worldmodel.phone.look import NAMES
from services.worldmodel.phone.state import Part
from services.worldmodel.phone.tiles import Tiles, scatter

HISTORY = 40
SMALL_TALK = (
    "Good morning",
    "How are you?",
    "Thanks a lot",
    "See you soon",
    "I am late, sorry",
    "The train is full",
    "It rains here",
    "Nice picture",
    "Happy birthday",
    "Sleep well",
)


@dataclass(frozen=True)
class Message:
    """A message; `mine` went out, `late` came in while the phone was in use."""

    text: str
    mine: bool = False
    late: bool = False


@dataclass(frozen=True)
class Thread:
    """A conversation, the latest message last."""

    name: str
    messages: tuple[Message, ...]
    unread: bool = False
    muted: bool = False


@dataclass(frozen=True)
class Pending:
    """A message that arrives after so many seconds of waiting."""

    left_s: int
    name: str
    text: str


@dataclass(frozen=True)
class Messages(Part):
    """Conversations, the latest first; whose gift lies behind which tile."""

    threads: tuple[Thread, ...]
    gifts: Tiles
    pending: tuple[Pending, ...] = ()
    opened: tuple[str, ...] = ()
    sent: int = 0

    def facts(self) -> "Messages":
        """What arrived by itself, and the order that follows from it, are left out."""
        kept = []
        for thread in sorted(self.threads, key=lambda t: t.name):
            own = tuple(m for m in thread.messages if not m.late)
            unread = thread.unread and len(own) == len(thread.messages)
            if own:
                kept.append(replace(thread, messages=own, unread=unread))
        return replace(self, threads=tuple(kept), pending=())

    def eased(self, start: "Messages", want: "Messages") -> "Messages":
        """Reading a conversation is harmless where the goal does not speak of it."""
        still = {t.name for t in start.threads if t.unread and not self._read_in(want, t.name)}
        return replace(
            self,
            threads=tuple(replace(t, unread=t.unread or t.name in still) for t in self.threads),
        )

    @staticmethod
    def _read_in(want: "Messages", name: str) -> bool:
        thread = want.thread(name)
        return thread is not None and not thread.unread

    def thread(self, name: str) -> Thread | None:
        """The conversation with one person."""
        return next((thread for thread in self.threads if thread.name == name), None)

    def having(self, thread: Thread) -> "Messages":
        """The data with one conversation in its new form, at the same place."""
        return replace(
            self, threads=tuple(thread if t.name == thread.name else t for t in self.threads)
        )

    def without(self, name: str) -> "Messages":
        """The data with one conversation deleted."""
        return replace(self, threads=tuple(t for t in self.threads if t.name != name))

    def adding(self, name: str, message: Message) -> "Messages":
        """The data with a message more; its conversation comes first and may be new."""
        old = self.thread(name) or Thread(name, ())
        new = replace(
            old,
            messages=(*old.messages, message)[-HISTORY:],
            unread=not message.mine,
        )
        return replace(self, threads=(new, *self.without(name).threads))

    def sending(self, name: str, words: str) -> "Messages":
        """The data after a message went out."""
        return replace(self.adding(name, Message(words, mine=True)), sent=self.sent + 1)

    def opening(self, name: str) -> "Messages":
        """The data after a gift was opened; its tile is gone."""
        left = tuple((place, giver) for place, giver in self.gifts if giver != name)
        return replace(self, gifts=left, opened=(*self.opened, name))


def boot(rng: Random) -> Messages:
    """Eight conversations of small talk, some unread, some muted, and three gifts."""
    names = rng.sample(NAMES, 8)
    threads = []
    for name in names:
        said = rng.sample(SMALL_TALK, rng.randint(2, 5))
        messages = tuple(Message(words, rng.random() < 0.4) for words in said)
        unread = not messages[-1].mine and rng.random() < 0.5
        threads.append(Thread(name, messages, unread, rng.random() < 0.25))
    pending = (Pending(rng.randint(20, 300), rng.choice(names), rng.choice(SMALL_TALK)),)
    return Messages(tuple(threads), scatter(rng, rng.sample(NAMES, 3)), pending)
