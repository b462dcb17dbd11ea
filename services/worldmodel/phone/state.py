"""The whole state of a phone, as immutable parts, and its canonical bytes and digest.

Every part remembers its own digest, so that after a step only the parts that changed are
hashed again. What the user owns (`data`, one part per app) and where they are (`nav`) are
separate. Not here: what actions do (`reducer`) and what is drawn (`screen`).
"""

from dataclasses import dataclass, fields, is_dataclass
from functools import cache, cached_property
from json.encoder import encode_basestring_ascii
from typing import Any

from blake3 import blake3

HOME = "home"
RECENTS = "recents"
MAX_CLOCK_S = 10**9


@dataclass(frozen=True)
class Part:
    """Base of every separately hashed piece of a phone."""

    @cached_property
    def canonical(self) -> bytes:
        """Compact JSON with sorted keys: equal parts, and only those, give equal bytes."""
        return canonical(self).encode()

    @cached_property
    def digest(self) -> bytes:
        """BLAKE3 of `canonical`."""
        return blake3(self.canonical).digest()

    def facts(self) -> "Part":
        """What a goal can be about: the part without what runs by itself."""
        return self

    def eased(self, _start: Any, _want: Any) -> "Part":
        """The part with what may happen on the way to a goal, such as reading a mail, set aside.

        `start` and `want` are the same app's data before a task and as it should be after it.
        """
        return self


@dataclass(frozen=True)
class Frame:
    """One entry of an app's back stack.

    `page` is the page's kind and `item` the entity it shows. `scroll` counts hidden rows,
    `dialog` names the entity that a dialog asks about ("" is no dialog), `fields` holds
    typed text by field name, `focus` the field that has the keyboard.
    """

    page: str
    item: str = ""
    scroll: int = 0
    dialog: str = ""
    fields: tuple[tuple[str, str], ...] = ()
    focus: str = ""

    def field(self, name: str) -> str:
        """The typed text of a field."""
        return dict(self.fields).get(name, "")


Stack = tuple[Frame, ...]


@dataclass(frozen=True)
class Prompt:
    """An open permission prompt: who asks for what, and the key that waits for the answer."""

    app: str
    permission: str
    then: str


@dataclass(frozen=True)
class Nav(Part):
    """Where the user is: the app in front (or HOME, RECENTS) and every open app's stack.

    The most recently used app stands last. `page` is the launcher's page, `shade` whether
    the notification shade is down, `shift` whether the keyboard's shift is held, `toast`
    a message ("" is none). `prompt` and `popup` (a kind of `popups`) are dialogs of the
    system, in front of everything else.
    """

    front: str = HOME
    stacks: tuple[tuple[str, Stack], ...] = ()
    page: int = 0
    shade: bool = False
    shift: bool = False
    toast: str = ""
    prompt: Prompt | None = None
    popup: str = ""

    def stack(self, app: str) -> Stack:
        """The app's back stack, bottom first; empty when it is not open."""
        return dict(self.stacks).get(app, ())


Icon = tuple[str, int, int]


@dataclass(frozen=True)
class Launcher(Part):
    """The home screen: (app, column, row) of every icon on every page, and the dock's apps."""

    pages: tuple[tuple[Icon, ...], ...]
    dock: tuple[str, ...] = ()


@dataclass(frozen=True)
class Notice:
    """A notification: what it says and the page of its app that a tap opens."""

    app: str
    title: str
    text: str = ""
    page: str = ""
    item: str = ""


@dataclass(frozen=True)
class Due:
    """An interruption that comes after so many more actions."""

    popup: str
    actions: int


@dataclass(frozen=True)
class System(Part):
    """What the phone itself remembers; goals are never about it.

    `font_percent` scales all text, `compact` makes icons smaller. Of `due` only the first
    counts down. `granted` holds (app, permission), `notices` the newest first.
    """

    font_percent: int = 100
    compact: bool = False
    granted: tuple[tuple[str, str], ...] = ()
    notices: tuple[Notice, ...] = ()
    due: tuple[Due, ...] = ()


@dataclass(frozen=True)
class Phone:
    """A phone. `clock` is in simulated seconds since midnight of the first day.

    `data` holds (app name, that app's part) in the registry's order.
    """

    clock: int
    launcher: Launcher
    system: System
    nav: Nav
    data: tuple[tuple[str, Part], ...]

    def of(self, app: str) -> Any:
        """An app's data. Raises KeyError for an app that this phone does not have."""
        for name, part in self.data:
            if name == app:
                return part
        raise KeyError(app)

    def frame(self) -> Frame | None:
        """The page in front, None on the home screen and among the recent apps."""
        stack = self.nav.stack(self.nav.front)
        return stack[-1] if stack else None

    @cached_property
    def digest(self) -> str:
        """Hex BLAKE3 over the digests of all parts."""
        hasher = blake3(b"wmr1.phone.v2:%d" % self.clock)
        hasher.update(self.launcher.digest)
        hasher.update(self.system.digest)
        hasher.update(self.nav.digest)
        for name, part in self.data:
            hasher.update(name.encode())
            hasher.update(part.digest)
        return hasher.hexdigest()


def canonical(value: Any) -> str:
    """Compact ASCII JSON with sorted keys, of dataclasses, tuples, texts and numbers.

    Dataclasses remember theirs: they are immutable and shared between states, so what a step
    did not touch is not written again.
    """
    kind = value.__class__
    if kind is str:
        return encode_basestring_ascii(value)
    if kind is tuple:
        return f"[{','.join(map(canonical, value))}]"
    if kind is bool:
        return "true" if value else "false"
    if kind is int:
        return str(value)
    if value is None:
        return "null"
    memo: dict[str, Any] = value.__dict__
    known: str | None = memo.get("_canonical")
    if known is None:
        pairs = [f'"{name}":{canonical(memo[name])}' for name in _fields(kind)]
        known = memo["_canonical"] = f"{{{','.join(pairs)}}}"
    return known


@cache
def _fields(kind: Any) -> tuple[str, ...]:
    assert is_dataclass(kind), f"a state holds no {kind.__name__}"
    return tuple(sorted(field.name for field in fields(kind)))


def set_toggle(
    rows: tuple[tuple[str, bool], ...], name: str, on: bool
) -> tuple[tuple[str, bool], ...]:
    """The (name, on) rows with one of them set."""
    return tuple((n, on if n == name else old) for n, old in rows)
