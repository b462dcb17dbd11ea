"""The error table: every domain error has a status and comes back as itself."""

import inspect
from typing import Any

import grpc
import pytest
from google.rpc import error_details_pb2 as details

from wmkit.domain import errors
from wmkit.domain.errors import (
    BrowserCrashed,
    DeadlineExpired,
    InvalidAction,
    InvalidRequest,
    NotFound,
    Overloaded,
    PayloadTooLarge,
    RunNotFound,
    StalePolicyVersion,
    StateNotFound,
    Unavailable,
    WMError,
)
from wmkit.rpc import status

CLASSES = [
    cls
    for _, cls in inspect.getmembers(errors, inspect.isclass)
    if issubclass(cls, WMError) and cls is not WMError
]


@pytest.mark.parametrize("cls", CLASSES)
def test_every_error_comes_back_as_its_own_class(cls: type[WMError]) -> None:
    sent = status.encode(cls("it rained"))
    back = status.decode(sent.code, sent.message, sent.details)
    assert type(back) is cls
    assert back.message == "it rained"


@pytest.mark.parametrize(
    ("error", "code"),
    [
        (InvalidAction("m"), grpc.StatusCode.INVALID_ARGUMENT),
        (errors.BadHtml("m"), grpc.StatusCode.INVALID_ARGUMENT),
        (StateNotFound("m"), grpc.StatusCode.NOT_FOUND),
        (RunNotFound("m"), grpc.StatusCode.NOT_FOUND),
        (Overloaded("m"), grpc.StatusCode.RESOURCE_EXHAUSTED),
        (PayloadTooLarge("m"), grpc.StatusCode.RESOURCE_EXHAUSTED),
        (BrowserCrashed("m"), grpc.StatusCode.UNAVAILABLE),
        (errors.EngineDown("m"), grpc.StatusCode.UNAVAILABLE),
        (StalePolicyVersion("m"), grpc.StatusCode.ABORTED),
        (DeadlineExpired("m"), grpc.StatusCode.DEADLINE_EXCEEDED),
    ],
)
def test_codes_are_those_of_the_design(error: WMError, code: grpc.StatusCode) -> None:
    assert status.code_of(status.encode(error)) is code


def test_details_that_any_client_understands() -> None:
    def found(error: WMError, kind: Any) -> Any:
        (part,) = [p for p in status.encode(error).details if p.Is(kind.DESCRIPTOR)]
        return kind.FromString(part.value)

    bad = found(InvalidAction("off screen", "action.tap.point.x"), details.BadRequest)
    assert bad.field_violations[0].field == "action.tap.point.x"
    assert bad.field_violations[0].description == "off screen"
    assert found(StateNotFound("gone", "ab12"), details.ResourceInfo).resource_name == "ab12"
    retry = found(Overloaded("full", 2.5), details.RetryInfo).retry_delay
    assert (retry.seconds, retry.nanos) == (2, 500_000_000)


def test_only_overload_and_outages_say_when_to_retry() -> None:
    for error in (PayloadTooLarge("m"), StalePolicyVersion("m"), InvalidRequest("m")):
        kinds = [part.TypeName() for part in status.encode(error).details]
        assert "google.rpc.RetryInfo" not in kinds


def test_fields_survive() -> None:
    for error in (InvalidAction("m", "a.b"), NotFound("m", "id"), Unavailable("m", 0.25)):
        sent = status.encode(error)
        assert vars(status.decode(sent.code, sent.message, sent.details)) == vars(error)


def test_an_unlisted_subclass_travels_as_its_base() -> None:
    class PageGone(BrowserCrashed):
        pass

    sent = status.encode(PageGone("m"))
    assert type(status.decode(sent.code, sent.message, sent.details)) is BrowserCrashed


def test_a_novel_in_an_error_fits_into_metadata() -> None:
    # 8 KiB is what gRPC accepts by default; the message travels percent-encoded too.
    error = InvalidAction("画" * 100_000, "é" * 100_000)
    sent = status.encode(error)
    (_, packed), *_ = status.metadata_of(sent)
    assert len(packed) * 4 / 3 + len(sent.message.encode()) * 3 < 8 * 1024


def test_the_base_class_itself_is_internal_and_says_nothing() -> None:
    sent = status.encode(WMError("secret"))
    assert status.code_of(sent) is grpc.StatusCode.INTERNAL
    assert "secret" not in sent.message


@pytest.mark.parametrize(
    ("code", "message", "cls"),
    [
        (grpc.StatusCode.UNAVAILABLE, "failed to connect", Unavailable),
        (grpc.StatusCode.DEADLINE_EXCEEDED, "Deadline Exceeded", DeadlineExpired),
        (
            grpc.StatusCode.RESOURCE_EXHAUSTED,
            "SERVER: Received message larger than max (41943040 vs. 33554432)",
            PayloadTooLarge,
        ),
        (grpc.StatusCode.RESOURCE_EXHAUSTED, "quota", Overloaded),
        (grpc.StatusCode.UNIMPLEMENTED, "Method not found!", InvalidRequest),
    ],
)
def test_what_grpc_itself_says_names_the_peer(
    code: grpc.StatusCode, message: str, cls: type[WMError]
) -> None:
    error = status.decode(code.value[0], message, (), "the renderer at h:1")
    assert type(error) is cls
    assert "the renderer at h:1" in error.message
