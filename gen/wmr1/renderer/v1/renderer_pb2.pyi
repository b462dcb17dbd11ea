from google.protobuf import any_pb2 as _any_pb2
from wmr1.common.v1 import common_pb2 as _common_pb2
from google.protobuf.internal import containers as _containers
from google.protobuf.internal import enum_type_wrapper as _enum_type_wrapper
from google.protobuf import descriptor as _descriptor
from google.protobuf import message as _message
from collections.abc import Iterable as _Iterable, Mapping as _Mapping
from typing import ClassVar as _ClassVar, Optional as _Optional, Union as _Union

DESCRIPTOR: _descriptor.FileDescriptor

class RenderOutcome(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
    __slots__ = ()
    RENDER_OUTCOME_UNSPECIFIED: _ClassVar[RenderOutcome]
    RENDER_OUTCOME_OK: _ClassVar[RenderOutcome]
    RENDER_OUTCOME_FAILED: _ClassVar[RenderOutcome]
RENDER_OUTCOME_UNSPECIFIED: RenderOutcome
RENDER_OUTCOME_OK: RenderOutcome
RENDER_OUTCOME_FAILED: RenderOutcome

class RenderRequest(_message.Message):
    __slots__ = ("html", "html_digest", "width_px", "height_px", "image", "timeout_ms")
    HTML_FIELD_NUMBER: _ClassVar[int]
    HTML_DIGEST_FIELD_NUMBER: _ClassVar[int]
    WIDTH_PX_FIELD_NUMBER: _ClassVar[int]
    HEIGHT_PX_FIELD_NUMBER: _ClassVar[int]
    IMAGE_FIELD_NUMBER: _ClassVar[int]
    TIMEOUT_MS_FIELD_NUMBER: _ClassVar[int]
    html: str
    html_digest: str
    width_px: int
    height_px: int
    image: _common_pb2.ImageRequest
    timeout_ms: int
    def __init__(self, html: _Optional[str] = ..., html_digest: _Optional[str] = ..., width_px: _Optional[int] = ..., height_px: _Optional[int] = ..., image: _Optional[_Union[_common_pb2.ImageRequest, _Mapping]] = ..., timeout_ms: _Optional[int] = ...) -> None: ...

class RenderResponse(_message.Message):
    __slots__ = ("outcome", "reason", "image", "elements", "warnings", "cached", "render_ms", "revision")
    OUTCOME_FIELD_NUMBER: _ClassVar[int]
    REASON_FIELD_NUMBER: _ClassVar[int]
    IMAGE_FIELD_NUMBER: _ClassVar[int]
    ELEMENTS_FIELD_NUMBER: _ClassVar[int]
    WARNINGS_FIELD_NUMBER: _ClassVar[int]
    CACHED_FIELD_NUMBER: _ClassVar[int]
    RENDER_MS_FIELD_NUMBER: _ClassVar[int]
    REVISION_FIELD_NUMBER: _ClassVar[int]
    outcome: RenderOutcome
    reason: _common_pb2.FailureReason
    image: _common_pb2.Image
    elements: _containers.RepeatedCompositeFieldContainer[_common_pb2.Element]
    warnings: _containers.RepeatedScalarFieldContainer[str]
    cached: bool
    render_ms: int
    revision: str
    def __init__(self, outcome: _Optional[_Union[RenderOutcome, str]] = ..., reason: _Optional[_Union[_common_pb2.FailureReason, str]] = ..., image: _Optional[_Union[_common_pb2.Image, _Mapping]] = ..., elements: _Optional[_Iterable[_Union[_common_pb2.Element, _Mapping]]] = ..., warnings: _Optional[_Iterable[str]] = ..., cached: bool = ..., render_ms: _Optional[int] = ..., revision: _Optional[str] = ...) -> None: ...

class BatchRenderRequest(_message.Message):
    __slots__ = ("key", "request")
    KEY_FIELD_NUMBER: _ClassVar[int]
    REQUEST_FIELD_NUMBER: _ClassVar[int]
    key: str
    request: RenderRequest
    def __init__(self, key: _Optional[str] = ..., request: _Optional[_Union[RenderRequest, _Mapping]] = ...) -> None: ...

class BatchRenderResponse(_message.Message):
    __slots__ = ("key", "response", "error")
    KEY_FIELD_NUMBER: _ClassVar[int]
    RESPONSE_FIELD_NUMBER: _ClassVar[int]
    ERROR_FIELD_NUMBER: _ClassVar[int]
    key: str
    response: RenderResponse
    error: RenderError
    def __init__(self, key: _Optional[str] = ..., response: _Optional[_Union[RenderResponse, _Mapping]] = ..., error: _Optional[_Union[RenderError, _Mapping]] = ...) -> None: ...

class RenderError(_message.Message):
    __slots__ = ("code", "message", "details")
    CODE_FIELD_NUMBER: _ClassVar[int]
    MESSAGE_FIELD_NUMBER: _ClassVar[int]
    DETAILS_FIELD_NUMBER: _ClassVar[int]
    code: int
    message: str
    details: _containers.RepeatedCompositeFieldContainer[_any_pb2.Any]
    def __init__(self, code: _Optional[int] = ..., message: _Optional[str] = ..., details: _Optional[_Iterable[_Union[_any_pb2.Any, _Mapping]]] = ...) -> None: ...
