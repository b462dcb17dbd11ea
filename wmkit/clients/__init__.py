"""Typed clients of the services: domain types in and out, domain errors raised.

They implement the Protocols of `wmkit.ports`. `wmkit.clients.sync.connect` is the same
without asyncio, for scripts and notebooks.
"""

from wmkit.clients.pictures import to_pil
from wmkit.clients.policy import PolicyClient
from wmkit.clients.renderer import Page, RendererClient
from wmkit.clients.trainer import TrainerClient
from wmkit.clients.worldmodel import StepCall, WorldModelClient

__all__ = [
    "Page",
    "PolicyClient",
    "RendererClient",
    "StepCall",
    "TrainerClient",
    "WorldModelClient",
    "to_pil",
]
