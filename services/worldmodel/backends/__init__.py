"""The world models behind one server, by name. A new backend is one line in `BACKENDS`."""

import difflib
from collections.abc import Callable, Iterator, Sequence
from typing import Any

from services.worldmodel.backends.base import Prediction, Seeing, WorldBackend
from services.worldmodel.settings import WorldModelSettings
from wmkit.domain.errors import UnknownBackend

__all__ = ["BACKENDS", "Prediction", "Registry", "WorldBackend", "load"]


def _scripted(_: WorldModelSettings) -> WorldBackend[Any]:
    from services.worldmodel.backends.scripted import Scripted

    return Scripted()


def _degraded(settings: WorldModelSettings) -> WorldBackend[Any]:
    from services.worldmodel.backends.degraded import Degraded, read_rates

    return Degraded(read_rates(settings.degrade), settings.degrade_seed)


def _replay(settings: WorldModelSettings) -> WorldBackend[Any]:
    from services.worldmodel.backends.replay import Replay

    return Replay.open(settings.replay)


def _code2world(settings: WorldModelSettings) -> WorldBackend[Any]:
    from services.worldmodel.learned import loading

    return loading.code2world(settings)


def _gworld(settings: WorldModelSettings) -> WorldBackend[Any]:
    from services.worldmodel.learned import loading

    return loading.gworld(settings)


BACKENDS: dict[str, Callable[[WorldModelSettings], WorldBackend[Any]]] = {
    "scripted": _scripted,
    "degraded": _degraded,
    "replay": _replay,
    "code2world": _code2world,
    "gworld": _gworld,
}


class Registry:
    """The backends that this server runs; the first one is the default."""

    def __init__(self, backends: Sequence[WorldBackend[Any]]) -> None:
        if not backends:
            raise ValueError("a world-model service needs at least one backend")
        self._by_name = {backend.name: backend for backend in backends}
        if len(self._by_name) < len(backends):
            raise ValueError("two backends have the same name")
        self.default = backends[0]

    def get(self, name: str) -> WorldBackend[Any]:
        """The backend of that name, the default for an empty one. Raises UnknownBackend."""
        if not name:
            return self.default
        backend = self._by_name.get(name)
        if backend is None:
            raise _unknown(name, self._by_name)
        return backend

    def __iter__(self) -> Iterator[WorldBackend[Any]]:
        return iter(self._by_name.values())

    async def close(self) -> None:
        """Let go of what the backends hold open."""
        for backend in self:
            if isinstance(backend, Seeing):
                await backend.close()


def load(names: Sequence[str], settings: WorldModelSettings) -> Registry:
    """Build the named backends.

    Raises UnknownBackend for a name that does not exist, InvalidRequest for settings that a
    backend cannot work with.
    """
    for name in names:
        if name not in BACKENDS:
            raise _unknown(name, BACKENDS)
    return Registry([BACKENDS[name](settings) for name in names])


def _unknown(name: str, known: dict[str, Any]) -> UnknownBackend:
    near = difflib.get_close_matches(name, known, n=1)
    hint = f"did you mean {near[0]!r}?" if near else f"there are: {', '.join(known)}"
    return UnknownBackend(f"unknown backend {name!r}; {hint}", field="backend")
