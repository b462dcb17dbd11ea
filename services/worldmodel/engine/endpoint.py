"""Which model behind which server. Opens nothing."""

import ipaddress
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import urlsplit

from wmkit.domain.errors import InvalidRequest

_PORTS = {"http": 80, "https": 443}


@dataclass(frozen=True, slots=True)
class Endpoint:
    """`url` is the base of the API, `http://host:8000/v1`; `key` is sent as bearer token.

    Raises InvalidRequest for a URL that is none and for a model without a name.
    """

    url: str
    model: str
    key: str = field(default="", repr=False)

    def __post_init__(self) -> None:
        try:
            parts = urlsplit(self.url)
            usable = parts.scheme in _PORTS and bool(parts.hostname) and parts.port != 0
        except ValueError:
            usable = False
        if not usable:
            raise InvalidRequest(
                f"{self.url!r} is no address of a model server; it looks like "
                "http://127.0.0.1:8000/v1",
                field="url",
            )
        if not self.model:
            raise InvalidRequest(f"the model behind {self.url} has no name", field="model")

    @property
    def place(self) -> str:
        """Where the model is, for messages: never the key, never a password in the URL."""
        parts = urlsplit(self.url)
        return f"{self.model} at {parts.hostname}:{parts.port or _PORTS[parts.scheme]}"

    def same(self, other: Any) -> bool:
        """Whether both name one model on one server, however its address is spelt."""
        return isinstance(other, Endpoint) and self._identity() == other._identity()

    def _identity(self) -> tuple[str, int, str, str]:
        parts = urlsplit(self.url)
        host = (parts.hostname or "").rstrip(".")
        if host == "localhost" or _loopback(host):
            host = "loopback"
        path = parts.path.rstrip("/").removesuffix("/v1")
        return host, parts.port or _PORTS[parts.scheme], path, self.model.strip().lower()


def _loopback(host: str) -> bool:
    try:
        address = ipaddress.ip_address(host)
    except ValueError:
        return False
    # A server that listens everywhere is reached at 0.0.0.0 too.
    return address.is_loopback or address.is_unspecified
