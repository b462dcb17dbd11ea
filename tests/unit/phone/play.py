"""Shared by the tests of the phone: press by key, and actions for hypothesis."""

from dataclasses import replace

from hypothesis import strategies as st

from services.worldmodel.phone import APPS, Phone, boot, step
from services.worldmodel.phone.screen import find
from services.worldmodel.phone.state import HOME, RECENTS, Nav
from wmkit.domain.actions import (
    Action,
    Back,
    DoubleTap,
    Enter,
    Home,
    Key,
    LongPress,
    OpenApp,
    Recents,
    Scroll,
    Swipe,
    Tap,
    Type,
    Wait,
)
from wmkit.domain.screen import Point


def press(phone: Phone, *keys: str) -> Phone:
    """Tap one thing after the other; a KeyError when it is not on the screen."""
    for key in keys:
        element = find(phone, key)
        if element is None:
            raise KeyError(key)
        phone = step(phone, Tap(element.at))
    return phone


# Half of the points are cell centres, so that random play gets deep into the apps.
cells = st.builds(
    lambda c, r: Point((c + 0.5) / 4, (r + 0.5) / 10), st.integers(0, 3), st.integers(0, 9)
)
anywhere = st.builds(Point, st.floats(0, 1), st.floats(0, 1))
points = cells | anywhere
texts = st.text(max_size=12) | st.sampled_from(["Ada", "Milk", "<b>&'\"", "\ud800", "a\nb"])

actions: st.SearchStrategy[Action] = st.one_of(
    st.builds(Tap, cells),
    st.builds(Tap, cells),
    st.builds(Tap, points),
    st.builds(DoubleTap, points),
    st.builds(LongPress, points),
    st.builds(Swipe, points, points),
    st.builds(Scroll, st.sampled_from(["up", "down", "left", "right"]), st.none() | points),
    st.builds(Type, texts, st.none() | points, st.booleans(), st.booleans()),
    st.builds(Key, st.sampled_from(["enter", "BACK", "KEYCODE_HOME", "x", "del", "volume_up", ""])),
    st.just(Enter()),
    st.just(Back()),
    st.just(Home()),
    st.just(Recents()),
    st.builds(OpenApp, st.sampled_from([*APPS, "clock", " Notes ", "Maps", ""])),
    st.builds(Wait, st.none() | st.integers(0, 10**7)),
)


@st.composite
def phones(draw: st.DrawFn) -> Phone:
    """A phone of any kind, plain or varied, where some app is open on any of its pages."""
    phone = boot(draw(st.integers(0, 30)), draw(st.booleans()))
    stacks = []
    for name in draw(st.lists(st.sampled_from(list(APPS)), max_size=2, unique=True)):
        stacks.append((name, draw(st.sampled_from(APPS[name].pages(phone.of(name))))))
    front = draw(st.sampled_from([HOME, RECENTS, *(name for name, _ in stacks)]))
    shade = draw(st.booleans()) and draw(st.booleans())
    return replace(phone, nav=Nav(front, tuple(stacks), shade=shade))
