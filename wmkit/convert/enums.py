"""Protobuf enums as the domain's words: `OUTCOME_CHANGED` <-> `"changed"`."""

from collections.abc import Iterable
from typing import Any, Generic, TypeVar, get_args

from wmr1.common.v1 import common_pb2 as common
from wmr1.policy.v1 import policy_pb2 as policy
from wmr1.trainer.v1 import trainer_pb2 as trainer
from wmr1.worldmodel.v1 import worldmodel_pb2 as worldmodel

from wmkit.domain.actions import Reveal
from wmkit.domain.errors import InvalidRequest
from wmkit.domain.generation import FinishReason, Role
from wmkit.domain.runs import RunStatus
from wmkit.domain.tasks import Verdict
from wmkit.domain.transition import FailureReason, ImageFormat, Outcome, Purpose

T = TypeVar("T", bound=str)


class Words(Generic[T]):
    """The two-way table of one enum; `PREFIX_UNSPECIFIED` is no word."""

    def __init__(self, enum: Any, prefix: str, words: Iterable[T]) -> None:
        self._prefix = prefix
        self._numbers = {word: enum.Value(f"{prefix}_{word.upper()}") for word in words}
        self._words = {number: word for word, number in self._numbers.items()}

    def to_pb(self, word: T) -> Any:
        """The enum's number; Any, because each message field has an enum type of its own."""
        return self._numbers[word]

    def from_pb(self, number: int, field: str, error: type[InvalidRequest] = InvalidRequest) -> T:
        """Raises `error` for an unset or unknown number."""
        if (word := self._words.get(number)) is not None:
            return word
        known = ", ".join(f"{self._prefix}_{word.upper()}" for word in self._numbers)
        found = f"has the unknown value {number}" if number else "is not set"
        raise error(f"{field} {found}; known: {known}", field)


REVEAL: Words[Reveal] = Words(common.Reveal, "REVEAL", get_args(Reveal))
FORMAT: Words[Any] = Words(common.ImageFormat, "IMAGE_FORMAT", get_args(ImageFormat))
DELIVERY: Words[Any] = Words(common.Delivery, "DELIVERY", ("digest", "bytes"))
ORIENTATION: Words[Any] = Words(common.Orientation, "ORIENTATION", ("portrait", "landscape"))
FAILURE: Words[FailureReason] = Words(common.FailureReason, "FAILURE_REASON", FailureReason)
PURPOSE: Words[Purpose] = Words(worldmodel.Purpose, "PURPOSE", Purpose)
OUTCOME: Words[Outcome] = Words(worldmodel.Outcome, "OUTCOME", Outcome)
VERDICT: Words[Verdict] = Words(worldmodel.Verdict, "VERDICT", Verdict)
ROLE: Words[Role] = Words(policy.Role, "ROLE", get_args(Role))
FINISH: Words[FinishReason] = Words(policy.FinishReason, "FINISH_REASON", FinishReason)
RUN_STATUS: Words[RunStatus] = Words(trainer.RunStatus, "RUN_STATUS", RunStatus)
