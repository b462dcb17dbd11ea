"""Every error a caller of WM-R1 can see, as one small hierarchy.

    WMError
    ├── InvalidRequest            the caller's own mistake
    │   ├── InvalidAction         an action outside the canonical vocabulary or the screen
    │   ├── BadHtml               HTML that is no document
    │   ├── UnknownTask           a task template that does not exist
    │   ├── UnknownBackend        a world-model backend that this server does not run
    │   └── BadCheckpoint         weights that are missing, unsafe, misshapen or not finite
    ├── NotFound
    │   ├── StateNotFound         a state id that never existed or has expired
    │   └── RunNotFound
    ├── Overloaded                try again after `retry_after_s`
    ├── PayloadTooLarge
    ├── Unavailable               infrastructure; the same call may succeed later
    │   ├── BrowserCrashed
    │   └── EngineDown
    ├── StalePolicyVersion        the version asked for is not the one that is loaded
    ├── DeadlineExpired           the caller's own deadline
    └── CorruptBlob               stored bytes that no longer match their digest

What happened *inside* a simulated world (a blank page, a truncated answer) is not an
error: it is an `Outcome` of a step. See `wmkit.domain.transition`.
The mapping to gRPC status codes is `wmkit.rpc.status`.
"""


class WMError(Exception):
    """Base class. `message` is one sentence for a person, without a traceback."""

    def __init__(self, message: str) -> None:
        super().__init__(message)
        self.message = message


class InvalidRequest(WMError):
    """The caller's own mistake; repeating the call cannot help.

    `field` names the offending request field (dotted path), where one is known.
    """

    def __init__(self, message: str, field: str = "") -> None:
        super().__init__(message)
        self.field = field


class InvalidAction(InvalidRequest):
    """An action with an unknown name, a missing argument or a point outside the screen."""


class BadHtml(InvalidRequest):
    """HTML that holds no document."""


class UnknownTask(InvalidRequest):
    """A task template that does not exist."""


class UnknownBackend(InvalidRequest):
    """A world-model backend that this server does not run."""


class BadCheckpoint(InvalidRequest):
    """Weights that are missing, not safetensors, outside the allowed root, misshapen or NaN."""


class NotFound(WMError):
    """Something named by id does not exist (any more). `resource` is that id."""

    def __init__(self, message: str, resource: str = "") -> None:
        super().__init__(message)
        self.resource = resource


class StateNotFound(NotFound):
    """A state id that never existed or whose lifetime has ended."""


class RunNotFound(NotFound):
    """A training run that does not exist."""


class Overloaded(WMError):
    """The service is at capacity; try again after `retry_after_s` seconds."""

    def __init__(self, message: str, retry_after_s: float = 1.0) -> None:
        super().__init__(message)
        self.retry_after_s = retry_after_s


class PayloadTooLarge(WMError):
    """A message larger than the server accepts."""


class Unavailable(WMError):
    """Infrastructure failed; the same call may succeed after `retry_after_s` seconds."""

    def __init__(self, message: str, retry_after_s: float = 1.0) -> None:
        super().__init__(message)
        self.retry_after_s = retry_after_s


class BrowserCrashed(Unavailable):
    """The renderer's browser died under the request."""


class EngineDown(Unavailable):
    """A model engine (policy or world model) cannot answer."""


class StalePolicyVersion(WMError):
    """The requested policy version is not the loaded one."""


class DeadlineExpired(WMError):
    """The caller's own deadline passed."""


class CorruptBlob(WMError):
    """Stored bytes that no longer match the digest that names them."""
