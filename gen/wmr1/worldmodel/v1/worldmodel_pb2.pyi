from google.protobuf import any_pb2 as _any_pb2
from wmr1.common.v1 import common_pb2 as _common_pb2
from google.protobuf.internal import containers as _containers
from google.protobuf.internal import enum_type_wrapper as _enum_type_wrapper
from google.protobuf import descriptor as _descriptor
from google.protobuf import message as _message
from collections.abc import Iterable as _Iterable, Mapping as _Mapping
from typing import ClassVar as _ClassVar, Optional as _Optional, Union as _Union

DESCRIPTOR: _descriptor.FileDescriptor

class Purpose(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
    __slots__ = ()
    PURPOSE_UNSPECIFIED: _ClassVar[Purpose]
    PURPOSE_COMMIT: _ClassVar[Purpose]
    PURPOSE_IMAGINE: _ClassVar[Purpose]

class Outcome(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
    __slots__ = ()
    OUTCOME_UNSPECIFIED: _ClassVar[Outcome]
    OUTCOME_CHANGED: _ClassVar[Outcome]
    OUTCOME_UNCHANGED: _ClassVar[Outcome]
    OUTCOME_FAILED: _ClassVar[Outcome]

class Verdict(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
    __slots__ = ()
    VERDICT_UNSPECIFIED: _ClassVar[Verdict]
    VERDICT_SUCCESS: _ClassVar[Verdict]
    VERDICT_FAILURE: _ClassVar[Verdict]
    VERDICT_UNSURE: _ClassVar[Verdict]
PURPOSE_UNSPECIFIED: Purpose
PURPOSE_COMMIT: Purpose
PURPOSE_IMAGINE: Purpose
OUTCOME_UNSPECIFIED: Outcome
OUTCOME_CHANGED: Outcome
OUTCOME_UNCHANGED: Outcome
OUTCOME_FAILED: Outcome
VERDICT_UNSPECIFIED: Verdict
VERDICT_SUCCESS: Verdict
VERDICT_FAILURE: Verdict
VERDICT_UNSURE: Verdict

class TaskRef(_message.Message):
    __slots__ = ("template", "seed")
    TEMPLATE_FIELD_NUMBER: _ClassVar[int]
    SEED_FIELD_NUMBER: _ClassVar[int]
    template: str
    seed: int
    def __init__(self, template: _Optional[str] = ..., seed: _Optional[int] = ...) -> None: ...

class Task(_message.Message):
    __slots__ = ("ref", "goal", "complexity", "step_limit", "apps", "main_app", "kind", "wants_answer")
    REF_FIELD_NUMBER: _ClassVar[int]
    GOAL_FIELD_NUMBER: _ClassVar[int]
    COMPLEXITY_FIELD_NUMBER: _ClassVar[int]
    STEP_LIMIT_FIELD_NUMBER: _ClassVar[int]
    APPS_FIELD_NUMBER: _ClassVar[int]
    MAIN_APP_FIELD_NUMBER: _ClassVar[int]
    KIND_FIELD_NUMBER: _ClassVar[int]
    WANTS_ANSWER_FIELD_NUMBER: _ClassVar[int]
    ref: TaskRef
    goal: str
    complexity: int
    step_limit: int
    apps: _containers.RepeatedScalarFieldContainer[str]
    main_app: str
    kind: str
    wants_answer: bool
    def __init__(self, ref: _Optional[_Union[TaskRef, _Mapping]] = ..., goal: _Optional[str] = ..., complexity: _Optional[int] = ..., step_limit: _Optional[int] = ..., apps: _Optional[_Iterable[str]] = ..., main_app: _Optional[str] = ..., kind: _Optional[str] = ..., wants_answer: bool = ...) -> None: ...

class HtmlSource(_message.Message):
    __slots__ = ("html", "screen")
    HTML_FIELD_NUMBER: _ClassVar[int]
    SCREEN_FIELD_NUMBER: _ClassVar[int]
    html: str
    screen: _common_pb2.Screen
    def __init__(self, html: _Optional[str] = ..., screen: _Optional[_Union[_common_pb2.Screen, _Mapping]] = ...) -> None: ...

class ScreenshotSource(_message.Message):
    __slots__ = ("data",)
    DATA_FIELD_NUMBER: _ClassVar[int]
    data: bytes
    def __init__(self, data: _Optional[bytes] = ...) -> None: ...

class PayloadSource(_message.Message):
    __slots__ = ("payload_digest", "state_id")
    PAYLOAD_DIGEST_FIELD_NUMBER: _ClassVar[int]
    STATE_ID_FIELD_NUMBER: _ClassVar[int]
    payload_digest: str
    state_id: str
    def __init__(self, payload_digest: _Optional[str] = ..., state_id: _Optional[str] = ...) -> None: ...

class CreateStateRequest(_message.Message):
    __slots__ = ("task", "html", "screenshot", "payload", "backend", "image", "pin")
    TASK_FIELD_NUMBER: _ClassVar[int]
    HTML_FIELD_NUMBER: _ClassVar[int]
    SCREENSHOT_FIELD_NUMBER: _ClassVar[int]
    PAYLOAD_FIELD_NUMBER: _ClassVar[int]
    BACKEND_FIELD_NUMBER: _ClassVar[int]
    IMAGE_FIELD_NUMBER: _ClassVar[int]
    PIN_FIELD_NUMBER: _ClassVar[int]
    task: TaskRef
    html: HtmlSource
    screenshot: ScreenshotSource
    payload: PayloadSource
    backend: str
    image: _common_pb2.ImageRequest
    pin: bool
    def __init__(self, task: _Optional[_Union[TaskRef, _Mapping]] = ..., html: _Optional[_Union[HtmlSource, _Mapping]] = ..., screenshot: _Optional[_Union[ScreenshotSource, _Mapping]] = ..., payload: _Optional[_Union[PayloadSource, _Mapping]] = ..., backend: _Optional[str] = ..., image: _Optional[_Union[_common_pb2.ImageRequest, _Mapping]] = ..., pin: bool = ...) -> None: ...

class CreateStateResponse(_message.Message):
    __slots__ = ("state", "task", "image", "elements")
    STATE_FIELD_NUMBER: _ClassVar[int]
    TASK_FIELD_NUMBER: _ClassVar[int]
    IMAGE_FIELD_NUMBER: _ClassVar[int]
    ELEMENTS_FIELD_NUMBER: _ClassVar[int]
    state: State
    task: Task
    image: _common_pb2.Image
    elements: _containers.RepeatedCompositeFieldContainer[_common_pb2.Element]
    def __init__(self, state: _Optional[_Union[State, _Mapping]] = ..., task: _Optional[_Union[Task, _Mapping]] = ..., image: _Optional[_Union[_common_pb2.Image, _Mapping]] = ..., elements: _Optional[_Iterable[_Union[_common_pb2.Element, _Mapping]]] = ...) -> None: ...

class State(_message.Message):
    __slots__ = ("state_id", "screen_id", "backend", "revision", "screen", "payload_digest")
    STATE_ID_FIELD_NUMBER: _ClassVar[int]
    SCREEN_ID_FIELD_NUMBER: _ClassVar[int]
    BACKEND_FIELD_NUMBER: _ClassVar[int]
    REVISION_FIELD_NUMBER: _ClassVar[int]
    SCREEN_FIELD_NUMBER: _ClassVar[int]
    PAYLOAD_DIGEST_FIELD_NUMBER: _ClassVar[int]
    state_id: str
    screen_id: str
    backend: str
    revision: str
    screen: _common_pb2.Screen
    payload_digest: str
    def __init__(self, state_id: _Optional[str] = ..., screen_id: _Optional[str] = ..., backend: _Optional[str] = ..., revision: _Optional[str] = ..., screen: _Optional[_Union[_common_pb2.Screen, _Mapping]] = ..., payload_digest: _Optional[str] = ...) -> None: ...

class StepRequest(_message.Message):
    __slots__ = ("state_id", "action", "purpose", "seed", "image", "goal", "pin")
    STATE_ID_FIELD_NUMBER: _ClassVar[int]
    ACTION_FIELD_NUMBER: _ClassVar[int]
    PURPOSE_FIELD_NUMBER: _ClassVar[int]
    SEED_FIELD_NUMBER: _ClassVar[int]
    IMAGE_FIELD_NUMBER: _ClassVar[int]
    GOAL_FIELD_NUMBER: _ClassVar[int]
    PIN_FIELD_NUMBER: _ClassVar[int]
    state_id: str
    action: _common_pb2.Action
    purpose: Purpose
    seed: int
    image: _common_pb2.ImageRequest
    goal: str
    pin: bool
    def __init__(self, state_id: _Optional[str] = ..., action: _Optional[_Union[_common_pb2.Action, _Mapping]] = ..., purpose: _Optional[_Union[Purpose, str]] = ..., seed: _Optional[int] = ..., image: _Optional[_Union[_common_pb2.ImageRequest, _Mapping]] = ..., goal: _Optional[str] = ..., pin: bool = ...) -> None: ...

class Provenance(_message.Message):
    __slots__ = ("backend", "revision", "cache_hit", "tokens", "finish_reason", "step_ms", "render_ms", "warnings")
    BACKEND_FIELD_NUMBER: _ClassVar[int]
    REVISION_FIELD_NUMBER: _ClassVar[int]
    CACHE_HIT_FIELD_NUMBER: _ClassVar[int]
    TOKENS_FIELD_NUMBER: _ClassVar[int]
    FINISH_REASON_FIELD_NUMBER: _ClassVar[int]
    STEP_MS_FIELD_NUMBER: _ClassVar[int]
    RENDER_MS_FIELD_NUMBER: _ClassVar[int]
    WARNINGS_FIELD_NUMBER: _ClassVar[int]
    backend: str
    revision: str
    cache_hit: bool
    tokens: int
    finish_reason: str
    step_ms: float
    render_ms: float
    warnings: _containers.RepeatedScalarFieldContainer[str]
    def __init__(self, backend: _Optional[str] = ..., revision: _Optional[str] = ..., cache_hit: bool = ..., tokens: _Optional[int] = ..., finish_reason: _Optional[str] = ..., step_ms: _Optional[float] = ..., render_ms: _Optional[float] = ..., warnings: _Optional[_Iterable[str]] = ...) -> None: ...

class StepResponse(_message.Message):
    __slots__ = ("outcome", "reason", "state", "image", "elements", "provenance")
    OUTCOME_FIELD_NUMBER: _ClassVar[int]
    REASON_FIELD_NUMBER: _ClassVar[int]
    STATE_FIELD_NUMBER: _ClassVar[int]
    IMAGE_FIELD_NUMBER: _ClassVar[int]
    ELEMENTS_FIELD_NUMBER: _ClassVar[int]
    PROVENANCE_FIELD_NUMBER: _ClassVar[int]
    outcome: Outcome
    reason: _common_pb2.FailureReason
    state: State
    image: _common_pb2.Image
    elements: _containers.RepeatedCompositeFieldContainer[_common_pb2.Element]
    provenance: Provenance
    def __init__(self, outcome: _Optional[_Union[Outcome, str]] = ..., reason: _Optional[_Union[_common_pb2.FailureReason, str]] = ..., state: _Optional[_Union[State, _Mapping]] = ..., image: _Optional[_Union[_common_pb2.Image, _Mapping]] = ..., elements: _Optional[_Iterable[_Union[_common_pb2.Element, _Mapping]]] = ..., provenance: _Optional[_Union[Provenance, _Mapping]] = ...) -> None: ...

class BatchStepRequest(_message.Message):
    __slots__ = ("key", "request")
    KEY_FIELD_NUMBER: _ClassVar[int]
    REQUEST_FIELD_NUMBER: _ClassVar[int]
    key: str
    request: StepRequest
    def __init__(self, key: _Optional[str] = ..., request: _Optional[_Union[StepRequest, _Mapping]] = ...) -> None: ...

class BatchStepResponse(_message.Message):
    __slots__ = ("key", "response", "error")
    KEY_FIELD_NUMBER: _ClassVar[int]
    RESPONSE_FIELD_NUMBER: _ClassVar[int]
    ERROR_FIELD_NUMBER: _ClassVar[int]
    key: str
    response: StepResponse
    error: StepError
    def __init__(self, key: _Optional[str] = ..., response: _Optional[_Union[StepResponse, _Mapping]] = ..., error: _Optional[_Union[StepError, _Mapping]] = ...) -> None: ...

class StepError(_message.Message):
    __slots__ = ("code", "message", "details")
    CODE_FIELD_NUMBER: _ClassVar[int]
    MESSAGE_FIELD_NUMBER: _ClassVar[int]
    DETAILS_FIELD_NUMBER: _ClassVar[int]
    code: int
    message: str
    details: _containers.RepeatedCompositeFieldContainer[_any_pb2.Any]
    def __init__(self, code: _Optional[int] = ..., message: _Optional[str] = ..., details: _Optional[_Iterable[_Union[_any_pb2.Any, _Mapping]]] = ...) -> None: ...

class GetStateRequest(_message.Message):
    __slots__ = ("state_id", "with_html", "with_payload")
    STATE_ID_FIELD_NUMBER: _ClassVar[int]
    WITH_HTML_FIELD_NUMBER: _ClassVar[int]
    WITH_PAYLOAD_FIELD_NUMBER: _ClassVar[int]
    state_id: str
    with_html: bool
    with_payload: bool
    def __init__(self, state_id: _Optional[str] = ..., with_html: bool = ..., with_payload: bool = ...) -> None: ...

class GetStateResponse(_message.Message):
    __slots__ = ("state", "html", "payload")
    STATE_FIELD_NUMBER: _ClassVar[int]
    HTML_FIELD_NUMBER: _ClassVar[int]
    PAYLOAD_FIELD_NUMBER: _ClassVar[int]
    state: State
    html: str
    payload: bytes
    def __init__(self, state: _Optional[_Union[State, _Mapping]] = ..., html: _Optional[str] = ..., payload: _Optional[bytes] = ...) -> None: ...

class GetScreenshotRequest(_message.Message):
    __slots__ = ("state_id", "image")
    STATE_ID_FIELD_NUMBER: _ClassVar[int]
    IMAGE_FIELD_NUMBER: _ClassVar[int]
    state_id: str
    image: _common_pb2.ImageRequest
    def __init__(self, state_id: _Optional[str] = ..., image: _Optional[_Union[_common_pb2.ImageRequest, _Mapping]] = ...) -> None: ...

class GetScreenshotResponse(_message.Message):
    __slots__ = ("reason", "image", "elements", "warnings")
    REASON_FIELD_NUMBER: _ClassVar[int]
    IMAGE_FIELD_NUMBER: _ClassVar[int]
    ELEMENTS_FIELD_NUMBER: _ClassVar[int]
    WARNINGS_FIELD_NUMBER: _ClassVar[int]
    reason: _common_pb2.FailureReason
    image: _common_pb2.Image
    elements: _containers.RepeatedCompositeFieldContainer[_common_pb2.Element]
    warnings: _containers.RepeatedScalarFieldContainer[str]
    def __init__(self, reason: _Optional[_Union[_common_pb2.FailureReason, str]] = ..., image: _Optional[_Union[_common_pb2.Image, _Mapping]] = ..., elements: _Optional[_Iterable[_Union[_common_pb2.Element, _Mapping]]] = ..., warnings: _Optional[_Iterable[str]] = ...) -> None: ...

class ActionLog(_message.Message):
    __slots__ = ("actions",)
    ACTIONS_FIELD_NUMBER: _ClassVar[int]
    actions: _containers.RepeatedCompositeFieldContainer[_common_pb2.Action]
    def __init__(self, actions: _Optional[_Iterable[_Union[_common_pb2.Action, _Mapping]]] = ...) -> None: ...

class JudgeRequest(_message.Message):
    __slots__ = ("task", "final_state_id", "answer", "finish_status", "goal", "first_state_id", "actions", "request_id")
    TASK_FIELD_NUMBER: _ClassVar[int]
    FINAL_STATE_ID_FIELD_NUMBER: _ClassVar[int]
    ANSWER_FIELD_NUMBER: _ClassVar[int]
    FINISH_STATUS_FIELD_NUMBER: _ClassVar[int]
    GOAL_FIELD_NUMBER: _ClassVar[int]
    FIRST_STATE_ID_FIELD_NUMBER: _ClassVar[int]
    ACTIONS_FIELD_NUMBER: _ClassVar[int]
    REQUEST_ID_FIELD_NUMBER: _ClassVar[int]
    task: TaskRef
    final_state_id: str
    answer: str
    finish_status: str
    goal: str
    first_state_id: str
    actions: ActionLog
    request_id: str
    def __init__(self, task: _Optional[_Union[TaskRef, _Mapping]] = ..., final_state_id: _Optional[str] = ..., answer: _Optional[str] = ..., finish_status: _Optional[str] = ..., goal: _Optional[str] = ..., first_state_id: _Optional[str] = ..., actions: _Optional[_Union[ActionLog, _Mapping]] = ..., request_id: _Optional[str] = ...) -> None: ...

class JudgeResponse(_message.Message):
    __slots__ = ("verdict", "reason", "judge")
    VERDICT_FIELD_NUMBER: _ClassVar[int]
    REASON_FIELD_NUMBER: _ClassVar[int]
    JUDGE_FIELD_NUMBER: _ClassVar[int]
    verdict: Verdict
    reason: str
    judge: str
    def __init__(self, verdict: _Optional[_Union[Verdict, str]] = ..., reason: _Optional[str] = ..., judge: _Optional[str] = ...) -> None: ...

class ListBackendsRequest(_message.Message):
    __slots__ = ()
    def __init__(self) -> None: ...

class Backend(_message.Message):
    __slots__ = ("name", "revision", "deterministic", "default")
    NAME_FIELD_NUMBER: _ClassVar[int]
    REVISION_FIELD_NUMBER: _ClassVar[int]
    DETERMINISTIC_FIELD_NUMBER: _ClassVar[int]
    DEFAULT_FIELD_NUMBER: _ClassVar[int]
    name: str
    revision: str
    deterministic: bool
    default: bool
    def __init__(self, name: _Optional[str] = ..., revision: _Optional[str] = ..., deterministic: bool = ..., default: bool = ...) -> None: ...

class ListBackendsResponse(_message.Message):
    __slots__ = ("backends",)
    BACKENDS_FIELD_NUMBER: _ClassVar[int]
    backends: _containers.RepeatedCompositeFieldContainer[Backend]
    def __init__(self, backends: _Optional[_Iterable[_Union[Backend, _Mapping]]] = ...) -> None: ...

class ListTasksRequest(_message.Message):
    __slots__ = ()
    def __init__(self) -> None: ...

class TaskTemplate(_message.Message):
    __slots__ = ("name", "main_app", "apps", "kind", "example_goal")
    NAME_FIELD_NUMBER: _ClassVar[int]
    MAIN_APP_FIELD_NUMBER: _ClassVar[int]
    APPS_FIELD_NUMBER: _ClassVar[int]
    KIND_FIELD_NUMBER: _ClassVar[int]
    EXAMPLE_GOAL_FIELD_NUMBER: _ClassVar[int]
    name: str
    main_app: str
    apps: _containers.RepeatedScalarFieldContainer[str]
    kind: str
    example_goal: str
    def __init__(self, name: _Optional[str] = ..., main_app: _Optional[str] = ..., apps: _Optional[_Iterable[str]] = ..., kind: _Optional[str] = ..., example_goal: _Optional[str] = ...) -> None: ...

class ListTasksResponse(_message.Message):
    __slots__ = ("templates",)
    TEMPLATES_FIELD_NUMBER: _ClassVar[int]
    templates: _containers.RepeatedCompositeFieldContainer[TaskTemplate]
    def __init__(self, templates: _Optional[_Iterable[_Union[TaskTemplate, _Mapping]]] = ...) -> None: ...
