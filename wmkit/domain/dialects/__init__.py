"""How agents write actions: one module per dialect, all behind `Dialect`.

`get(name)` gives a dialect; `docs/dialects.md` describes each of them.
"""

from functools import cache

from wmkit.domain.dialects.base import Dialect, ParsedAction, ParseError, Unsupported
from wmkit.domain.dialects.wmr1_android import Wmr1Android
from wmkit.domain.errors import InvalidRequest

__all__ = ["NAMES", "Dialect", "ParseError", "ParsedAction", "Unsupported", "get"]

_DIALECTS = {cls.name: cls for cls in (Wmr1Android,)}
NAMES = tuple(_DIALECTS)


@cache
def get(name: str) -> Dialect:
    """The dialect of this name. Raises InvalidRequest, which names the known ones."""
    if name not in _DIALECTS:
        known = ", ".join(NAMES)
        raise InvalidRequest(f"unknown dialect {name!r}; known: {known}", field="dialect")
    return _DIALECTS[name]()
