"""Clock: a list of alarms with switches, and a timer that runs down while one waits."""

from dataclasses import dataclass, replace
from random import Random

from services.worldmodel.phone.app import App, Listing, Reply, ask
from services.worldmodel.phone.effects import Effect, Notify
from services.worldmodel.phone.geometry import CELL_W, Element
from services.worldmodel.phone.look import LOOK, RED
from services.worldmodel.phone.state import Frame, Part, Stack
from services.worldmodel.phone.widgets import (
    Elements,
    app_bar,
    dialog,
    pill,
    row,
    scroll_bar,
    tabs,
    text,
)

NAME = "Clock"
LABELS = ("Work", "Gym", "School", "Lunch", "Nap", "Medicine", "Dinner", "Bedtime")
PRESETS = (1, 3, 5, 10)
VISIBLE = 6
TABS = (("Alarms", "bell"), ("Timer", "hourglass"))


@dataclass(frozen=True)
class Alarm:
    """An alarm; `minute` counts from midnight."""

    label: str
    minute: int
    on: bool

    @property
    def time(self) -> str:
        """As drawn, 24 hours."""
        return f"{self.minute // 60:02d}:{self.minute % 60:02d}"


@dataclass(frozen=True)
class Clock(Part):
    """Alarms in drawn order; the timer's preset in minutes and its seconds left (0 = stopped)."""

    alarms: tuple[Alarm, ...]
    timer_min: int
    timer_left_s: int = 0

    def facts(self) -> "Clock":
        """How far a running timer has run down is left out."""
        return replace(self, timer_left_s=min(1, self.timer_left_s))

    def alarm(self, label: str) -> Alarm | None:
        """The alarm of that label."""
        return next((alarm for alarm in self.alarms if alarm.label == label), None)

    def having(self, label: str, on: bool) -> "Clock":
        """The clock with one alarm switched."""
        return replace(
            self,
            alarms=tuple(replace(a, on=on) if a.label == label else a for a in self.alarms),
        )

    def without(self, label: str) -> "Clock":
        """The clock with one alarm deleted."""
        return replace(self, alarms=tuple(a for a in self.alarms if a.label != label))


def boot(rng: Random) -> Clock:
    """All eight labels in random order, at random times, half of them on."""
    minutes = rng.sample(range(5 * 12, 23 * 12), len(LABELS))
    return Clock(
        tuple(
            Alarm(label, 5 * minute, rng.random() < 0.5)
            for label, minute in zip(rng.sample(LABELS, len(LABELS)), minutes, strict=True)
        ),
        rng.choice(PRESETS),
    )


def title(_data: Clock, _frame: Frame) -> str:
    """The word in the app bar."""
    return NAME


def draw(data: Clock, stack: Stack) -> list[Element]:
    """The page on top of the stack."""
    frame = stack[-1]
    out: Elements = app_bar(NAME, NAME, False)
    color = LOOK[NAME][0]
    if frame.page == "Alarms":
        shown = data.alarms[frame.scroll : frame.scroll + VISIBLE]
        for i, alarm in enumerate(shown):
            key = f"flip:{alarm.label}"
            out += row("clock", 1 + i, alarm.label, key=key, sub=alarm.time, on=alarm.on)
        out += scroll_bar("clock", frame.scroll, VISIBLE, len(data.alarms), 1)
    elif frame.page == "Timer":
        running = data.timer_left_s > 0
        for i, minutes in enumerate(PRESETS):
            chosen = minutes == data.timer_min
            out += row(
                "clock",
                1 + i,
                f"{minutes} min",
                key="" if running else f"preset:{minutes}",
                mark="check" if chosen else "",
                tone="on" if chosen else "",
                enabled=not running,
            )
        left = data.timer_left_s if running else 60 * data.timer_min
        digits = f"{left // 60:02d}:{left % 60:02d}"
        out.append(text("clock/left", digits, (CELL_W, 5 * 240 + 36, 2 * CELL_W, 170), "big"))
        if running:
            out += pill("clock", 7, "Stop", "stop", RED, "stop")
        else:
            out += pill("clock", 7, "Start", "start", color, "play")
    else:
        raise ValueError(f"Clock has no page {frame.page!r}")
    out += tabs("clock", color, frame.page, TABS)
    if frame.dialog:
        out += dialog("Delete?", frame.dialog)
    return out


def tap(data: Clock, stack: Stack, key: str) -> Reply[Clock]:
    """React to a key of the page on top."""
    verb, _, name = key.partition(":")
    if verb == "tab":
        return Reply(data, stack if stack[-1].page == name else (Frame(name),))
    if verb == "flip":
        alarm = data.alarm(name)
        assert alarm is not None
        return Reply(data.having(name, not alarm.on), stack)
    if verb == "confirm":
        return Reply(data.without(stack[-1].dialog), ask(stack, ""))
    if verb == "preset":
        return Reply(replace(data, timer_min=int(name)), stack)
    assert verb in ("start", "stop"), key
    return Reply(replace(data, timer_left_s=60 * data.timer_min if verb == "start" else 0), stack)


def hold(data: Clock, stack: Stack, key: str) -> Reply[Clock]:
    """A long press on an alarm asks whether to delete it."""
    verb, _, name = key.partition(":")
    return Reply(data, ask(stack, name) if verb == "flip" else stack)


def wait(data: Clock, seconds: int) -> tuple[Clock, tuple[Effect, ...]]:
    """The running timer counts down and says when it is over."""
    if not data.timer_left_s:
        return data, ()
    left = max(0, data.timer_left_s - seconds)
    over = () if left else (Notify("Timer", "Time is up", "Timer"),)
    return replace(data, timer_left_s=left), over


def listing(data: Clock, frame: Frame) -> Listing | None:
    """The alarms scroll."""
    if frame.page != "Alarms":
        return None
    return Listing(tuple(f"flip:{alarm.label}" for alarm in data.alarms), VISIBLE)


def door(frame: Frame) -> str:
    """The key that opens a page."""
    return f"tab:{frame.page}"


def pages(_data: Clock) -> tuple[Stack, ...]:
    """Every page of the app."""
    return (Frame("Alarms"),), (Frame("Timer"),)


APP = App(
    NAME, Clock, Frame("Alarms"), boot, title, draw, tap, listing, door, pages, hold=hold, wait=wait
)
