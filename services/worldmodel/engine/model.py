"""What asks a model, wherever it runs: the interface between contracts and engines.

Code2World, gWorld and the judge write messages and read answers; which of `client` (a server)
and `in_process` (a checkpoint) is behind them they do not know.
"""

from typing import Any, Protocol

from services.worldmodel.engine.wire import Ask, Completion


class Identity(Protocol):
    """Which model it is."""

    @property
    def model(self) -> str:
        """Its name; part of revisions, so other weights should have another one."""
        ...

    @property
    def place(self) -> str:
        """The model and where it runs, for messages."""
        ...

    def same(self, other: Any) -> bool:
        """Whether both are one model at one place."""
        ...


class ModelClient(Protocol):
    @property
    def endpoint(self) -> Identity: ...

    async def complete(self, ask: Ask) -> Completion:
        """The model's answer, whole or cut at its own limit.

        Raises EngineDown, Overloaded, DeadlineExpired; `Refused` where the model cannot be
        held to a schema. A call that is cancelled frees its slot.
        """
        ...

    async def close(self) -> None: ...
