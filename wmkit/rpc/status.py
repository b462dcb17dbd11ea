"""Domain errors as gRPC statuses, both ways; the only table of that mapping.

Every domain error carries an ErrorInfo (domain "wmr1") whose reason names its class, so
that the client rebuilds the very same one. InvalidRequest adds BadRequest, NotFound adds
ResourceInfo, Overloaded and Unavailable add RetryInfo. Anything that is no domain error is
INTERNAL and says nothing but a request id.
"""

from collections.abc import Iterable

import grpc
from google.protobuf import any_pb2, duration_pb2
from google.rpc import error_details_pb2 as details
from google.rpc import status_pb2

from wmkit.domain import errors
from wmkit.domain.errors import (
    InvalidRequest,
    NotFound,
    Overloaded,
    PayloadTooLarge,
    Unavailable,
    WMError,
)

DOMAIN = "wmr1"
_DETAILS_KEY = "grpc-status-details-bin"
# Metadata is limited to 8 KiB by default and holds the message twice, once percent-encoded.
_MAX_MESSAGE_BYTES = 1200
_MAX_NAME_BYTES = 200

Code = grpc.StatusCode

CODES: dict[type[WMError], grpc.StatusCode] = {
    errors.InvalidRequest: Code.INVALID_ARGUMENT,
    errors.InvalidAction: Code.INVALID_ARGUMENT,
    errors.BadHtml: Code.INVALID_ARGUMENT,
    errors.UnknownTask: Code.INVALID_ARGUMENT,
    errors.UnknownBackend: Code.INVALID_ARGUMENT,
    errors.BadCheckpoint: Code.INVALID_ARGUMENT,
    errors.NotFound: Code.NOT_FOUND,
    errors.StateNotFound: Code.NOT_FOUND,
    errors.RunNotFound: Code.NOT_FOUND,
    errors.Overloaded: Code.RESOURCE_EXHAUSTED,
    errors.PayloadTooLarge: Code.RESOURCE_EXHAUSTED,
    errors.Unavailable: Code.UNAVAILABLE,
    errors.BrowserCrashed: Code.UNAVAILABLE,
    errors.EngineDown: Code.UNAVAILABLE,
    errors.StalePolicyVersion: Code.ABORTED,
    errors.DeadlineExpired: Code.DEADLINE_EXCEEDED,
    errors.CorruptBlob: Code.DATA_LOSS,
}


def _reason(cls: type[WMError]) -> str:
    """`StateNotFound` -> `STATE_NOT_FOUND`."""
    return "".join(f"_{c}" if c.isupper() and i else c for i, c in enumerate(cls.__name__)).upper()


_BY_REASON = {_reason(cls): cls for cls in CODES}
_BY_CODE = {code.value[0]: code for code in grpc.StatusCode}


def encode(error: WMError) -> status_pb2.Status:
    """The google.rpc.Status of a domain error; a subclass unknown to the table takes its base's."""
    cls = next((base for base in type(error).__mro__ if base in CODES), None)
    if cls is None:
        return internal("")
    parts = [details.ErrorInfo(reason=_reason(cls), domain=DOMAIN)]
    message = _clip(error.message, _MAX_MESSAGE_BYTES)
    match error:
        case InvalidRequest():
            violation = details.BadRequest.FieldViolation(
                field=_clip(error.field, _MAX_NAME_BYTES), description=message
            )
            parts.append(details.BadRequest(field_violations=[violation]))
        case NotFound():
            name = _clip(error.resource, _MAX_NAME_BYTES)
            parts.append(details.ResourceInfo(resource_name=name, resource_type=cls.__name__))
        case Overloaded() | Unavailable():
            delay = duration_pb2.Duration()
            delay.FromNanoseconds(int(error.retry_after_s * 1e9))
            parts.append(details.RetryInfo(retry_delay=delay))
    return _status(CODES[cls], message, parts)


def internal(request_id: str) -> status_pb2.Status:
    """The status of a bug: what went wrong stays in the server's log, under `request_id`."""
    info = details.ErrorInfo(reason="INTERNAL", domain=DOMAIN, metadata={"request_id": request_id})
    return _status(Code.INTERNAL, f"internal error, request id {request_id}", [info])


def decode(
    code: int, message: str, packed: Iterable[any_pb2.Any] = (), peer: str = "the service"
) -> WMError:
    """The domain error of a status. `peer` names the callee where gRPC itself failed."""
    info, field, resource, retry_s = details.ErrorInfo(), "", "", 1.0
    for part in packed:
        if part.Is(details.ErrorInfo.DESCRIPTOR):
            part.Unpack(info)
        elif part.Is(details.BadRequest.DESCRIPTOR):
            bad = details.BadRequest.FromString(part.value)
            field = bad.field_violations[0].field if bad.field_violations else ""
        elif part.Is(details.ResourceInfo.DESCRIPTOR):
            resource = details.ResourceInfo.FromString(part.value).resource_name
        elif part.Is(details.RetryInfo.DESCRIPTOR):
            delay = details.RetryInfo.FromString(part.value).retry_delay
            retry_s = delay.ToNanoseconds() / 1e9
    cls = _BY_REASON.get(info.reason) if info.domain == DOMAIN else None
    if cls is None:
        cls, message = _foreign(code, message, peer)
    if issubclass(cls, InvalidRequest):
        return cls(message, field)
    if issubclass(cls, NotFound):
        return cls(message, resource)
    if issubclass(cls, (Overloaded, Unavailable)):
        return cls(message, retry_s)
    return cls(message)


def decode_call(error: grpc.aio.AioRpcError, peer: str = "the service") -> WMError:
    """The domain error of a failed call."""
    for key, value in error.trailing_metadata() or ():
        if key == _DETAILS_KEY:
            status = status_pb2.Status.FromString(value)
            return decode(status.code, status.message, status.details, peer)
    return decode(error.code().value[0], error.details() or "", (), peer)


def code_of(status: status_pb2.Status) -> grpc.StatusCode:
    return _BY_CODE[status.code]


def metadata_of(status: status_pb2.Status) -> tuple[tuple[str, bytes], ...]:
    """Trailing metadata that carries the details."""
    return ((_DETAILS_KEY, status.SerializeToString()),)


def _foreign(code: int, message: str, peer: str) -> tuple[type[WMError], str]:
    """Statuses that gRPC, a proxy or a bug made: no domain error stands behind them."""
    match _BY_CODE.get(code, Code.UNKNOWN):
        case Code.UNAVAILABLE | Code.CANCELLED:
            cause = message.rpartition("last error: ")[2]
            return Unavailable, f"{peer} cannot be reached: {cause}"
        case Code.DEADLINE_EXCEEDED:
            return errors.DeadlineExpired, f"{peer} did not answer before the deadline"
        case Code.RESOURCE_EXHAUSTED if "larger than max" in message:
            return PayloadTooLarge, f"{peer}: {message}"
        case Code.RESOURCE_EXHAUSTED:
            return Overloaded, f"{peer}: {message}"
        case Code.NOT_FOUND:
            return NotFound, f"{peer}: {message}"
        case Code.INVALID_ARGUMENT | Code.UNAUTHENTICATED | Code.PERMISSION_DENIED:
            return InvalidRequest, f"{peer}: {message}"
        case Code.UNIMPLEMENTED:
            return InvalidRequest, f"{peer} does not offer this call: {message}"
        case _:
            return WMError, f"{peer}: {message}"


def _status(code: grpc.StatusCode, message: str, parts: Iterable[object]) -> status_pb2.Status:
    status = status_pb2.Status(code=code.value[0], message=message)
    for part in parts:
        status.details.add().Pack(part)
    return status


def _clip(text: str, limit: int) -> str:
    data = text.encode("utf-8", "replace")
    return data.decode() if len(data) <= limit else data[:limit].decode("utf-8", "ignore") + "…"
