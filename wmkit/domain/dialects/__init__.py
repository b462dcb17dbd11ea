"""How agents write actions: one module per dialect, all behind `Dialect`.

`get(name)` gives a dialect; `docs/dialects.md` describes each of them.
"""

from collections.abc import Callable
from functools import cache

from wmkit.domain.dialects.android_control import AndroidControl
from wmkit.domain.dialects.android_world import AndroidWorld
from wmkit.domain.dialects.base import Dialect, ParsedAction, ParseError, Unsupported
from wmkit.domain.dialects.explain import explain
from wmkit.domain.dialects.gui_odyssey import GuiOdyssey
from wmkit.domain.dialects.gui_r1 import GuiR1
from wmkit.domain.dialects.gworld import GWorld
from wmkit.domain.dialects.mobile_use import Qwen3MobileUse, Qwen25MobileUse
from wmkit.domain.dialects.ui_r1 import UiR1
from wmkit.domain.dialects.uitars_mobile import UiTarsMobile
from wmkit.domain.dialects.wmr1_android import Wmr1Android
from wmkit.domain.errors import InvalidRequest

__all__ = ["NAMES", "Dialect", "ParseError", "ParsedAction", "Unsupported", "explain", "get"]

_DIALECTS: dict[str, Callable[[], Dialect]] = {
    "wmr1_android": Wmr1Android,
    "qwen3_mobile_use": Qwen3MobileUse,
    "qwen25_mobile_use": Qwen25MobileUse,
    "uitars_mobile": UiTarsMobile,
    "android_control": AndroidControl,
    "android_world": AndroidWorld,
    "gui_odyssey": GuiOdyssey,
    "gui_r1": GuiR1,
    "ui_r1": UiR1,
    "gworld": GWorld,
}
NAMES = tuple(_DIALECTS)


@cache
def get(name: str) -> Dialect:
    """The dialect of this name. Raises InvalidRequest, which names the known ones."""
    if name not in _DIALECTS:
        known = ", ".join(NAMES)
        raise InvalidRequest(f"unknown dialect {name!r}; known: {known}", field="dialect")
    return _DIALECTS[name]()
