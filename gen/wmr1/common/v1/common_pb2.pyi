from google.protobuf.internal import enum_type_wrapper as _enum_type_wrapper
from google.protobuf import descriptor as _descriptor
from google.protobuf import message as _message
from collections.abc import Mapping as _Mapping
from typing import ClassVar as _ClassVar, Optional as _Optional, Union as _Union

DESCRIPTOR: _descriptor.FileDescriptor

class Orientation(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
    __slots__ = ()
    ORIENTATION_UNSPECIFIED: _ClassVar[Orientation]
    ORIENTATION_PORTRAIT: _ClassVar[Orientation]
    ORIENTATION_LANDSCAPE: _ClassVar[Orientation]

class Reveal(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
    __slots__ = ()
    REVEAL_UNSPECIFIED: _ClassVar[Reveal]
    REVEAL_UP: _ClassVar[Reveal]
    REVEAL_DOWN: _ClassVar[Reveal]
    REVEAL_LEFT: _ClassVar[Reveal]
    REVEAL_RIGHT: _ClassVar[Reveal]

class ImageFormat(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
    __slots__ = ()
    IMAGE_FORMAT_UNSPECIFIED: _ClassVar[ImageFormat]
    IMAGE_FORMAT_PNG: _ClassVar[ImageFormat]
    IMAGE_FORMAT_JPEG: _ClassVar[ImageFormat]
    IMAGE_FORMAT_WEBP: _ClassVar[ImageFormat]

class Delivery(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
    __slots__ = ()
    DELIVERY_UNSPECIFIED: _ClassVar[Delivery]
    DELIVERY_DIGEST: _ClassVar[Delivery]
    DELIVERY_BYTES: _ClassVar[Delivery]

class FailureReason(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
    __slots__ = ()
    FAILURE_REASON_UNSPECIFIED: _ClassVar[FailureReason]
    FAILURE_REASON_TRUNCATED: _ClassVar[FailureReason]
    FAILURE_REASON_NO_DOCUMENT: _ClassVar[FailureReason]
    FAILURE_REASON_BLANK: _ClassVar[FailureReason]
    FAILURE_REASON_OVERSIZED: _ClassVar[FailureReason]
    FAILURE_REASON_RENDER_TIMEOUT: _ClassVar[FailureReason]
ORIENTATION_UNSPECIFIED: Orientation
ORIENTATION_PORTRAIT: Orientation
ORIENTATION_LANDSCAPE: Orientation
REVEAL_UNSPECIFIED: Reveal
REVEAL_UP: Reveal
REVEAL_DOWN: Reveal
REVEAL_LEFT: Reveal
REVEAL_RIGHT: Reveal
IMAGE_FORMAT_UNSPECIFIED: ImageFormat
IMAGE_FORMAT_PNG: ImageFormat
IMAGE_FORMAT_JPEG: ImageFormat
IMAGE_FORMAT_WEBP: ImageFormat
DELIVERY_UNSPECIFIED: Delivery
DELIVERY_DIGEST: Delivery
DELIVERY_BYTES: Delivery
FAILURE_REASON_UNSPECIFIED: FailureReason
FAILURE_REASON_TRUNCATED: FailureReason
FAILURE_REASON_NO_DOCUMENT: FailureReason
FAILURE_REASON_BLANK: FailureReason
FAILURE_REASON_OVERSIZED: FailureReason
FAILURE_REASON_RENDER_TIMEOUT: FailureReason

class Point(_message.Message):
    __slots__ = ("x", "y")
    X_FIELD_NUMBER: _ClassVar[int]
    Y_FIELD_NUMBER: _ClassVar[int]
    x: float
    y: float
    def __init__(self, x: _Optional[float] = ..., y: _Optional[float] = ...) -> None: ...

class Screen(_message.Message):
    __slots__ = ("width_px", "height_px", "scale", "orientation")
    WIDTH_PX_FIELD_NUMBER: _ClassVar[int]
    HEIGHT_PX_FIELD_NUMBER: _ClassVar[int]
    SCALE_FIELD_NUMBER: _ClassVar[int]
    ORIENTATION_FIELD_NUMBER: _ClassVar[int]
    width_px: int
    height_px: int
    scale: float
    orientation: Orientation
    def __init__(self, width_px: _Optional[int] = ..., height_px: _Optional[int] = ..., scale: _Optional[float] = ..., orientation: _Optional[_Union[Orientation, str]] = ...) -> None: ...

class TapAction(_message.Message):
    __slots__ = ("point",)
    POINT_FIELD_NUMBER: _ClassVar[int]
    point: Point
    def __init__(self, point: _Optional[_Union[Point, _Mapping]] = ...) -> None: ...

class DoubleTapAction(_message.Message):
    __slots__ = ("point",)
    POINT_FIELD_NUMBER: _ClassVar[int]
    point: Point
    def __init__(self, point: _Optional[_Union[Point, _Mapping]] = ...) -> None: ...

class LongPressAction(_message.Message):
    __slots__ = ("point", "duration_ms")
    POINT_FIELD_NUMBER: _ClassVar[int]
    DURATION_MS_FIELD_NUMBER: _ClassVar[int]
    point: Point
    duration_ms: int
    def __init__(self, point: _Optional[_Union[Point, _Mapping]] = ..., duration_ms: _Optional[int] = ...) -> None: ...

class SwipeAction(_message.Message):
    __slots__ = ("point", "to", "duration_ms")
    POINT_FIELD_NUMBER: _ClassVar[int]
    TO_FIELD_NUMBER: _ClassVar[int]
    DURATION_MS_FIELD_NUMBER: _ClassVar[int]
    point: Point
    to: Point
    duration_ms: int
    def __init__(self, point: _Optional[_Union[Point, _Mapping]] = ..., to: _Optional[_Union[Point, _Mapping]] = ..., duration_ms: _Optional[int] = ...) -> None: ...

class ScrollAction(_message.Message):
    __slots__ = ("reveal", "point")
    REVEAL_FIELD_NUMBER: _ClassVar[int]
    POINT_FIELD_NUMBER: _ClassVar[int]
    reveal: Reveal
    point: Point
    def __init__(self, reveal: _Optional[_Union[Reveal, str]] = ..., point: _Optional[_Union[Point, _Mapping]] = ...) -> None: ...

class TypeAction(_message.Message):
    __slots__ = ("text", "point", "submit", "clear")
    TEXT_FIELD_NUMBER: _ClassVar[int]
    POINT_FIELD_NUMBER: _ClassVar[int]
    SUBMIT_FIELD_NUMBER: _ClassVar[int]
    CLEAR_FIELD_NUMBER: _ClassVar[int]
    text: str
    point: Point
    submit: bool
    clear: bool
    def __init__(self, text: _Optional[str] = ..., point: _Optional[_Union[Point, _Mapping]] = ..., submit: bool = ..., clear: bool = ...) -> None: ...

class KeyAction(_message.Message):
    __slots__ = ("key",)
    KEY_FIELD_NUMBER: _ClassVar[int]
    key: str
    def __init__(self, key: _Optional[str] = ...) -> None: ...

class EnterAction(_message.Message):
    __slots__ = ()
    def __init__(self) -> None: ...

class BackAction(_message.Message):
    __slots__ = ()
    def __init__(self) -> None: ...

class HomeAction(_message.Message):
    __slots__ = ()
    def __init__(self) -> None: ...

class RecentsAction(_message.Message):
    __slots__ = ()
    def __init__(self) -> None: ...

class OpenAppAction(_message.Message):
    __slots__ = ("app",)
    APP_FIELD_NUMBER: _ClassVar[int]
    app: str
    def __init__(self, app: _Optional[str] = ...) -> None: ...

class WaitAction(_message.Message):
    __slots__ = ("ms",)
    MS_FIELD_NUMBER: _ClassVar[int]
    ms: int
    def __init__(self, ms: _Optional[int] = ...) -> None: ...

class Action(_message.Message):
    __slots__ = ("tap", "double_tap", "long_press", "swipe", "scroll", "type", "key", "enter", "back", "home", "recents", "open_app", "wait")
    TAP_FIELD_NUMBER: _ClassVar[int]
    DOUBLE_TAP_FIELD_NUMBER: _ClassVar[int]
    LONG_PRESS_FIELD_NUMBER: _ClassVar[int]
    SWIPE_FIELD_NUMBER: _ClassVar[int]
    SCROLL_FIELD_NUMBER: _ClassVar[int]
    TYPE_FIELD_NUMBER: _ClassVar[int]
    KEY_FIELD_NUMBER: _ClassVar[int]
    ENTER_FIELD_NUMBER: _ClassVar[int]
    BACK_FIELD_NUMBER: _ClassVar[int]
    HOME_FIELD_NUMBER: _ClassVar[int]
    RECENTS_FIELD_NUMBER: _ClassVar[int]
    OPEN_APP_FIELD_NUMBER: _ClassVar[int]
    WAIT_FIELD_NUMBER: _ClassVar[int]
    tap: TapAction
    double_tap: DoubleTapAction
    long_press: LongPressAction
    swipe: SwipeAction
    scroll: ScrollAction
    type: TypeAction
    key: KeyAction
    enter: EnterAction
    back: BackAction
    home: HomeAction
    recents: RecentsAction
    open_app: OpenAppAction
    wait: WaitAction
    def __init__(self, tap: _Optional[_Union[TapAction, _Mapping]] = ..., double_tap: _Optional[_Union[DoubleTapAction, _Mapping]] = ..., long_press: _Optional[_Union[LongPressAction, _Mapping]] = ..., swipe: _Optional[_Union[SwipeAction, _Mapping]] = ..., scroll: _Optional[_Union[ScrollAction, _Mapping]] = ..., type: _Optional[_Union[TypeAction, _Mapping]] = ..., key: _Optional[_Union[KeyAction, _Mapping]] = ..., enter: _Optional[_Union[EnterAction, _Mapping]] = ..., back: _Optional[_Union[BackAction, _Mapping]] = ..., home: _Optional[_Union[HomeAction, _Mapping]] = ..., recents: _Optional[_Union[RecentsAction, _Mapping]] = ..., open_app: _Optional[_Union[OpenAppAction, _Mapping]] = ..., wait: _Optional[_Union[WaitAction, _Mapping]] = ...) -> None: ...

class ImageRequest(_message.Message):
    __slots__ = ("delivery", "format", "scale", "quality", "with_elements")
    DELIVERY_FIELD_NUMBER: _ClassVar[int]
    FORMAT_FIELD_NUMBER: _ClassVar[int]
    SCALE_FIELD_NUMBER: _ClassVar[int]
    QUALITY_FIELD_NUMBER: _ClassVar[int]
    WITH_ELEMENTS_FIELD_NUMBER: _ClassVar[int]
    delivery: Delivery
    format: ImageFormat
    scale: float
    quality: int
    with_elements: bool
    def __init__(self, delivery: _Optional[_Union[Delivery, str]] = ..., format: _Optional[_Union[ImageFormat, str]] = ..., scale: _Optional[float] = ..., quality: _Optional[int] = ..., with_elements: bool = ...) -> None: ...

class Image(_message.Message):
    __slots__ = ("digest", "data", "format", "width_px", "height_px")
    DIGEST_FIELD_NUMBER: _ClassVar[int]
    DATA_FIELD_NUMBER: _ClassVar[int]
    FORMAT_FIELD_NUMBER: _ClassVar[int]
    WIDTH_PX_FIELD_NUMBER: _ClassVar[int]
    HEIGHT_PX_FIELD_NUMBER: _ClassVar[int]
    digest: str
    data: bytes
    format: ImageFormat
    width_px: int
    height_px: int
    def __init__(self, digest: _Optional[str] = ..., data: _Optional[bytes] = ..., format: _Optional[_Union[ImageFormat, str]] = ..., width_px: _Optional[int] = ..., height_px: _Optional[int] = ...) -> None: ...

class Element(_message.Message):
    __slots__ = ("id", "role", "text", "x_px", "y_px", "width_px", "height_px", "clickable", "checked", "focused", "enabled")
    ID_FIELD_NUMBER: _ClassVar[int]
    ROLE_FIELD_NUMBER: _ClassVar[int]
    TEXT_FIELD_NUMBER: _ClassVar[int]
    X_PX_FIELD_NUMBER: _ClassVar[int]
    Y_PX_FIELD_NUMBER: _ClassVar[int]
    WIDTH_PX_FIELD_NUMBER: _ClassVar[int]
    HEIGHT_PX_FIELD_NUMBER: _ClassVar[int]
    CLICKABLE_FIELD_NUMBER: _ClassVar[int]
    CHECKED_FIELD_NUMBER: _ClassVar[int]
    FOCUSED_FIELD_NUMBER: _ClassVar[int]
    ENABLED_FIELD_NUMBER: _ClassVar[int]
    id: str
    role: str
    text: str
    x_px: float
    y_px: float
    width_px: float
    height_px: float
    clickable: bool
    checked: bool
    focused: bool
    enabled: bool
    def __init__(self, id: _Optional[str] = ..., role: _Optional[str] = ..., text: _Optional[str] = ..., x_px: _Optional[float] = ..., y_px: _Optional[float] = ..., width_px: _Optional[float] = ..., height_px: _Optional[float] = ..., clickable: bool = ..., checked: bool = ..., focused: bool = ..., enabled: bool = ...) -> None: ...
