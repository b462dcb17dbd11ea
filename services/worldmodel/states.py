"""States: immutable values named by their content.

A record in Redis names a state and is renewed by use, its payload lies in the blob store,
and the values of recently used states are kept live in front of both. Nothing here knows
how one state leads to another (`transitions`) or how it looks (`pictures`).
"""

import json
from dataclasses import dataclass
from typing import Any

from services.worldmodel.backends import Registry, WorldBackend
from services.worldmodel.backends.pages import kind_and_screen
from services.worldmodel.index import Index
from wmkit.blobs import digest
from wmkit.domain.errors import NotFound, StateNotFound
from wmkit.domain.screen import Screen
from wmkit.domain.transition import State
from wmkit.lru import Lru
from wmkit.ports import BlobStore

SCHEMA = 1
"""Version of how states are named; a change renames every state."""

_HEX = frozenset("0123456789abcdef")


def state_name(backend: str, screen: Screen, kind: str, payload: str) -> str:
    """The id of a state: BLAKE3 over schema, backend, screen, kind and payload digest, hex.

    `payload` is the backend's digest of the whole hidden state; a backend may compute it
    part by part, which is why it is not the digest of the stored bytes.
    """
    return digest(f"state/{SCHEMA}\n{backend}\n{_screen(screen)}\n{kind}\n{payload}".encode())


def name_of(backend: WorldBackend[Any], value: Any) -> str:
    """The id of the state that a backend's value is."""
    kind, screen = kind_and_screen(backend, value)
    return state_name(backend.name, screen, kind, backend.digest(value))


def screen_name(backend: str, screen: Screen, visible: str) -> str:
    """The id of a look; `visible` is the backend's digest of what is to be seen."""
    return digest(f"screen/{SCHEMA}\n{backend}\n{_screen(screen)}\n{visible}".encode())


def _screen(screen: Screen) -> str:
    return f"{screen.width_px}x{screen.height_px}@{screen.scale!r}"


@dataclass(slots=True)
class Live:
    """A state and its value; the value is None until somebody needs it."""

    state: State
    value: Any = None


class States:
    """Names, keeps and finds states. `size` bounds the live ones in this process."""

    def __init__(self, registry: Registry, index: Index, blobs: BlobStore, size: int) -> None:
        self._registry = registry
        self._index = index
        self._blobs = blobs
        self._live: Lru[str, Live] = Lru(size)

    async def put(self, backend: WorldBackend[Any], value: Any) -> State:
        """Name a value and make it last; it is stored when this returns."""
        name = name_of(backend, value)
        known = self._live.get(name)
        if known is not None:
            if known.value is None:
                known.value = value
            self.touch(known.state)
            return known.state
        # The payload first: a record never names bytes that are not there.
        payload = await self._blobs.put(backend.dumps(value))
        visible = backend.screen_digest(value)
        _, screen = kind_and_screen(backend, value)
        state = State(
            state_id=name,
            screen_id=screen_name(backend.name, screen, visible),
            backend=backend.name,
            revision=backend.revision,
            screen=screen,
            payload_digest=payload,
        )
        await self._index.put(_key(name), _record(state))
        self._live[name] = Live(state, value)
        return state

    async def get(self, state_id: str) -> Live:
        """Find a state. Raises StateNotFound."""
        live = self._live.get(state_id)
        if live is None:
            if len(state_id) != 64 or not _HEX.issuperset(state_id):
                raise StateNotFound(
                    f"there is no state {state_id[:80]!r}; state ids are 64 hex digits, "
                    "as CreateState and Step return them",
                    resource=state_id,
                )
            record = await self._index.get(_key(state_id))
            if record is None:
                raise StateNotFound(
                    f"there is no state {state_id}; it never existed or its lifetime has ended "
                    "(its payload, if recorded, brings it back: CreateState from payload)",
                    resource=state_id,
                )
            live = Live(_read(state_id, record))
            self._live[state_id] = live
        self.touch(live.state)
        return live

    def touch(self, state: State) -> None:
        """Renew a state's lifetime, with the next batch."""
        key = _key(state.state_id)
        if not self._index.touched(key):
            self._index.touch(key, _record(state))

    async def pin(self, state: State) -> None:
        """Give a state the lifetime of pinned ones; it has it when this returns."""
        await self._index.pin(_key(state.state_id), _record(state))

    async def value(self, live: Live) -> Any:
        """The state's value, rebuilt from its payload if need be. Raises StateNotFound."""
        if live.value is None:
            live.value = await self._rebuild(live.state)
        return live.value

    async def _rebuild(self, state: State) -> Any:
        backend = self._registry.get(state.backend)
        try:
            value = backend.loads(await self._blobs.get(state.payload_digest))
        except NotFound:
            raise StateNotFound(
                f"state {state.state_id} has lost its payload {state.payload_digest}; "
                "does the blob folder still exist?",
                resource=state.state_id,
            ) from None
        except ValueError:
            value = None
        # A payload written by another version may be read as something else; a state that
        # silently changed would be worse than one that is gone.
        if value is None or state.state_id != name_of(backend, value):
            raise StateNotFound(
                f"state {state.state_id} was made by {state.revision}, which "
                f"{backend.revision} cannot read; create it again",
                resource=state.state_id,
            )
        return value


def _key(state_id: str) -> str:
    return f"state:{state_id}"


def _record(state: State) -> bytes:
    return json.dumps(
        {
            "screen_id": state.screen_id,
            "backend": state.backend,
            "revision": state.revision,
            "screen": [state.screen.width_px, state.screen.height_px, state.screen.scale],
            "payload": state.payload_digest,
        },
        separators=(",", ":"),
    ).encode()


def _read(state_id: str, record: bytes) -> State:
    data = json.loads(record)
    width_px, height_px, scale = data["screen"]
    return State(
        state_id=state_id,
        screen_id=data["screen_id"],
        backend=data["backend"],
        revision=data["revision"],
        screen=Screen(width_px, height_px, scale),
        payload_digest=data["payload"],
    )
