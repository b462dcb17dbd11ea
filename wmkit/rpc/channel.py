"""How a client reaches a server: one place for limits, keepalive, retries and balancing.

UNAVAILABLE is retried by gRPC itself with jittered backoff; nothing else retries calls.
"""

import json
import os
from typing import Any

import grpc

MAX_MESSAGE_BYTES = 32 * 1024 * 1024
"""Largest message either way. A noisy 1080x2400 PNG has 7.8 MB; gRPC's default is 4 MiB."""

_SERVICE_CONFIG = json.dumps(
    {
        "loadBalancingConfig": [{"round_robin": {}}],
        "methodConfig": [
            {
                "name": [{}],
                "retryPolicy": {
                    "maxAttempts": 5,
                    "initialBackoff": "0.1s",
                    "maxBackoff": "2s",
                    "backoffMultiplier": 2.5,
                    "retryableStatusCodes": ["UNAVAILABLE"],
                },
            }
        ],
    }
)

LIMITS: tuple[tuple[str, int], ...] = (
    ("grpc.max_receive_message_length", MAX_MESSAGE_BYTES),
    ("grpc.max_send_message_length", MAX_MESSAGE_BYTES),
)

_OPTIONS: tuple[tuple[str, Any], ...] = (
    *LIMITS,
    ("grpc.service_config", _SERVICE_CONFIG),
    ("grpc.keepalive_time_ms", 10_000),
    ("grpc.keepalive_timeout_ms", 10_000),
    ("grpc.initial_reconnect_backoff_ms", 100),
    ("grpc.max_reconnect_backoff_ms", 2_000),
    # A proxy set for downloads must not see calls to our own services.
    ("grpc.enable_http_proxy", 0),
)


def open_channel(address: str) -> grpc.aio.Channel:
    """A channel to `host:port`. Connects when first used; needs a running event loop."""
    return grpc.aio.insecure_channel(address, options=_OPTIONS)


def token_metadata(token: str | None = None) -> tuple[tuple[str, str], ...]:
    """Metadata that shows `token` (WMR1_TOKEN when None) to a server that asks for it."""
    secret = os.environ.get("WMR1_TOKEN", "") if token is None else token
    return (("authorization", f"Bearer {secret}"),) if secret else ()
