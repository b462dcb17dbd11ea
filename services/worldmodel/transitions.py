"""Transitions: the pure function from (state, action) to the next state, computed once.

A transition is named by backend revision, state, action on the backend's grid, the goal where
the backend reads it and, where it samples, the seed. The first stored answer for a name wins
and is the answer from then on, on every replica. Why a step is made never enters. No pictures
here; a backend that has to see the screen is given what the caller's `look` returns.

Equal requests in flight share one computation within a process, and across replicas where a
model is asked (`leases`). An exact backend's answers only meet in Redis, where the first one
wins: a lease there costs more than the transition.
"""

import json
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from enum import StrEnum
from typing import Any

from services.worldmodel.backends import WorldBackend
from services.worldmodel.backends.base import Prediction, Scene, Seeing
from services.worldmodel.flight import Flight
from services.worldmodel.index import Index
from services.worldmodel.leases import Leases
from services.worldmodel.states import Live, States
from wmkit.blobs import digest
from wmkit.domain.actions import Action, to_dict
from wmkit.domain.errors import StateNotFound
from wmkit.domain.transition import FailureReason, Outcome, State
from wmkit.lru import Lru

_Name = tuple[str, str, Action, int, str]

Look = Callable[[], Awaitable[bytes]]
"""Gives the current screen as an encoded picture; asked only when a model has to see it."""


class Source(StrEnum):
    """Where the answer came from. Only COMPUTED is no cache hit."""

    COMPUTED = "computed"
    SHARED = "shared"
    """Another caller in flight, of this replica or another, was computing it."""
    PROCESS = "process"
    REDIS = "redis"


@dataclass(frozen=True, slots=True)
class Next:
    """What an action leads to. `state` is None exactly when `outcome` is FAILED."""

    outcome: Outcome
    state: State | None
    reason: FailureReason | None
    tokens: int
    finish_reason: str
    warnings: tuple[str, ...]
    key: str
    record: bytes


class Transitions:
    """Answers steps from the cache or by asking the backend. `size` bounds the cache here."""

    def __init__(self, states: States, index: Index, size: int) -> None:
        self._states = states
        self._index = index
        self._known: Lru[_Name, Next] = Lru(size)
        self._flight: Flight[_Name, tuple[Next, Source]] = Flight()
        self._leases = Leases(index)

    async def step(
        self,
        backend: WorldBackend[Any],
        live: Live,
        action: Action,
        seed: int,
        *,
        goal: str = "",
        look: Look | None = None,
    ) -> tuple[Next, Source]:
        """The transition and where it came from; `look` is needed by a Seeing one.

        Raises StateNotFound, Unavailable, and whatever `look` raises.
        """
        action = backend.snap(action)
        seed = 0 if backend.deterministic else seed
        goal = goal if isinstance(backend, Seeing) and backend.reads_goal else ""
        name = (backend.revision, live.state.state_id, action, seed, goal)
        known = self._known.get(name)
        if known is not None:
            self._renew(known)
            return known, Source.PROCESS
        (found, source), shared = await self._flight.run(
            name, lambda: self._find(backend, live, name, look)
        )
        return found, Source.SHARED if shared else source

    async def pin(self, known: Next) -> None:
        """Keep an answer, and the state that it leads to, for the lifetime of pinned ones."""
        await self._index.pin(known.key, known.record)
        if known.state is not None:
            await self._states.pin(known.state)

    async def _find(
        self, backend: WorldBackend[Any], live: Live, name: _Name, look: Look | None
    ) -> tuple[Next, Source]:
        _, state_id, action, seed, goal = name
        key = transition_key(backend, state_id, action, seed, goal)

        async def stored() -> Next | None:
            record = await self._index.get(key)
            return None if record is None else await self._recall(live.state, key, record)

        async def computed() -> Next:
            return await self._compute(backend, live, name, look, key)

        found = await self._leased(key, stored, computed) if isinstance(backend, Seeing) else None
        if found is None:
            known = await stored()
            found = (known, Source.REDIS) if known else (await computed(), Source.COMPUTED)
        self._known[name] = found[0]
        return found

    async def _leased(
        self,
        key: str,
        stored: Callable[[], Awaitable[Next | None]],
        computed: Callable[[], Awaitable[Next]],
    ) -> tuple[Next, Source]:
        """A model's answer, asked for by one replica at a time."""
        known = await stored()
        if known is not None:
            return known, Source.REDIS
        answer, ours = await self._leases.once(key, stored, computed)
        return answer, Source.COMPUTED if ours else Source.SHARED

    async def _compute(
        self, backend: WorldBackend[Any], live: Live, name: _Name, look: Look | None, key: str
    ) -> Next:
        _, _, action, seed, goal = name
        value = await self._states.value(live)
        prediction: Prediction[Any]
        if isinstance(backend, Seeing):
            assert look is not None, "a backend that looks at the screen is shown it"
            scene = Scene(await look(), goal)
            prediction = await backend.predict_seen(value, action, seed, scene)
        else:
            prediction = await backend.predict(value, action, seed)
        record: dict[str, Any] = {
            "tokens": prediction.tokens,
            "finish_reason": prediction.finish_reason,
        }
        if prediction.warnings:
            record["warnings"] = prediction.warnings
        if prediction.value is None:
            assert prediction.reason is not None, "a prediction has a value or a reason"
            record["reason"] = prediction.reason.value
        else:
            record["state"] = (await self._states.put(backend, prediction.value)).state_id
        mine = json.dumps(record, separators=(",", ":")).encode()
        first = await self._index.put_first(key, mine)
        found = await self._recall(live.state, key, first)
        if found is None:
            # The first answer's state is gone, so nobody can hold it: ours takes its place.
            await self._index.put(key, mine)
            found = await self._recall(live.state, key, mine)
        assert found is not None, "a state that was just stored is there"
        return found

    async def _recall(self, before: State, key: str, record: bytes) -> Next | None:
        """Read a record; None when the state that it names is gone."""
        data = json.loads(record)
        state, reason = None, None
        if "state" in data:
            try:
                state = (await self._states.get(data["state"])).state
            except StateNotFound:
                return None
            same = state.state_id == before.state_id
            outcome = Outcome.UNCHANGED if same else Outcome.CHANGED
        else:
            outcome, reason = Outcome.FAILED, FailureReason(data["reason"])
        found = Next(
            outcome,
            state,
            reason,
            data["tokens"],
            data["finish_reason"],
            tuple(data.get("warnings", ())),
            key,
            record,
        )
        self._renew(found)
        return found

    def _renew(self, known: Next) -> None:
        self._index.touch(known.key, known.record)
        if known.state is not None:
            self._states.touch(known.state)


def transition_key(
    backend: WorldBackend[Any], state_id: str, action: Action, seed: int, goal: str = ""
) -> str:
    """The name of a transition in Redis; `action` lies on the backend's grid."""
    words = json.dumps(to_dict(action), sort_keys=True, separators=(",", ":"))
    name = f"{backend.name}\n{backend.revision}\n{state_id}\n{seed}\n{words}"
    if goal:
        name += f"\n{goal}"
    return f"step:{digest(name.encode())}"
