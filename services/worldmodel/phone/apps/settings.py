"""Settings: five categories of independent toggles, and a screen time-out to choose."""

from dataclasses import dataclass, replace
from random import Random

from services.worldmodel.phone.app import App, Listing, Reply, push
from services.worldmodel.phone.geometry import Element
from services.worldmodel.phone.state import Frame, Part, Stack, set_toggle
from services.worldmodel.phone.widgets import Elements, app_bar, row

NAME = "Settings"
TOGGLES = {
    "Network": ("Wi-Fi", "Bluetooth", "Hotspot", "Airplane"),
    "Display": ("Rotate", "Night"),
    "Sound": ("Vibrate", "Silent", "Clicks"),
    "Battery": ("Saver", "Percent"),
    "Privacy": ("Location", "Camera", "Microphone"),
}
CATEGORY = {toggle: category for category, toggles in TOGGLES.items() for toggle in toggles}
TIMEOUTS = ("15 s", "1 min", "5 min")


@dataclass(frozen=True)
class Settings(Part):
    """`categories` in drawn order; `toggles` as (name, on), in drawn order per category."""

    categories: tuple[str, ...]
    toggles: tuple[tuple[str, bool], ...]
    timeout: str

    def on(self, name: str) -> bool:
        """Whether a toggle is on; False for one that this phone does not have."""
        return dict(self.toggles).get(name, False)

    def having(self, name: str, on: bool) -> "Settings":
        """The settings with one toggle set."""
        return replace(self, toggles=set_toggle(self.toggles, name, on))


def boot(rng: Random) -> Settings:
    """Categories and toggles in random order; the larger categories lack one toggle.

    Night is off: it is the phone's theme, and a phone starts light.
    """
    toggles: list[tuple[str, bool]] = []
    for names in TOGGLES.values():
        kept = rng.sample(names, len(names) if len(names) == 2 else len(names) - 1)
        toggles += [(name, rng.random() < 0.5 and name != "Night") for name in kept]
    return Settings(
        tuple(rng.sample(tuple(TOGGLES), len(TOGGLES))), tuple(toggles), rng.choice(TIMEOUTS)
    )


def title(_data: Settings, frame: Frame) -> str:
    """The word in the app bar."""
    return {"main": NAME, "timeout": "Timeout"}.get(frame.page, frame.item)


def draw(data: Settings, stack: Stack) -> list[Element]:
    """The page on top of the stack."""
    frame = stack[-1]
    out: Elements = app_bar(NAME, title(data, frame), len(stack) > 1)
    if frame.page == "main":
        for i, name in enumerate(data.categories):
            out += row("settings", 1 + i, name, key=f"open:{name}")
    elif frame.page == "category":
        names = [name for name, _ in data.toggles if CATEGORY[name] == frame.item]
        for i, name in enumerate(names):
            out += row("settings", 1 + i, name, key=f"flip:{name}", on=data.on(name))
        if frame.item == "Display":
            out += row("settings", 1 + len(names), "Timeout", key="timeout", sub=data.timeout)
    elif frame.page == "timeout":
        for i, choice in enumerate(TIMEOUTS):
            chosen = choice == data.timeout
            out += row(
                "settings",
                1 + i,
                choice,
                key=f"choose:{choice}",
                mark="check" if chosen else "",
                tone="on" if chosen else "",
            )
    else:
        raise ValueError(f"Settings has no page {frame.page!r}")
    return out


def tap(data: Settings, stack: Stack, key: str) -> Reply[Settings]:
    """React to a key of the page on top."""
    verb, _, name = key.partition(":")
    if verb == "open":
        return Reply(data, push(stack, "category", name))
    if verb == "flip":
        return Reply(data.having(name, not data.on(name)), stack)
    if verb == "timeout":
        return Reply(data, push(stack, "timeout"))
    assert verb == "choose", key
    return Reply(replace(data, timeout=name), stack)


def listing(_data: Settings, _frame: Frame) -> Listing | None:
    """Nothing scrolls here."""
    return None


def door(frame: Frame) -> str:
    """The key that opens a page."""
    return "timeout" if frame.page == "timeout" else f"open:{frame.item}"


def pages(data: Settings) -> tuple[Stack, ...]:
    """Every page of the app."""
    root = (Frame("main"),)
    inner = tuple(push(root, "category", name) for name in data.categories)
    return (root, *inner, push(push(root, "category", "Display"), "timeout"))


APP = App(NAME, Settings, Frame("main"), boot, title, draw, tap, listing, door, pages)
