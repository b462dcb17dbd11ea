"""Puts the service together: Redis, blobs, renderer, backends, the world, the server."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from typing import Any
from urllib.parse import urlsplit

import structlog
from redis.asyncio import Redis
from redis.asyncio.retry import Retry
from redis.backoff import ExponentialBackoff
from wmr1.worldmodel.v1 import worldmodel_pb2_grpc as rpc

from services.worldmodel import backends
from services.worldmodel.index import Index
from services.worldmodel.judge import ModelJudge
from services.worldmodel.learned.pages import LearnedPages
from services.worldmodel.metrics import RESTORED
from services.worldmodel.pictures import Pictures
from services.worldmodel.servicer import NAME, WorldModelServicer
from services.worldmodel.settings import WorldModelSettings
from services.worldmodel.states import States
from services.worldmodel.transitions import Transitions
from services.worldmodel.verdicts import Verdicts
from services.worldmodel.world import World
from wmkit.blobs import open_blobs
from wmkit.clients.renderer import RendererClient
from wmkit.domain.errors import InvalidRequest, Unavailable
from wmkit.rpc.server import Register, serve

log = structlog.get_logger(__name__)

_PREFIX = "wmr1:worldmodel:"


async def serve_world(settings: WorldModelSettings) -> None:
    """Serve until told to stop."""
    async with AsyncExitStack() as resources:
        await serve(settings, "worldmodel", registration(settings, resources), resources.aclose)


def registration(settings: WorldModelSettings, resources: AsyncExitStack) -> Register:
    """What adds this service to a server; whatever it opens is closed with `resources`."""

    async def register(server: Any) -> list[str]:
        world = await resources.enter_async_context(open_world(settings))
        servicer = WorldModelServicer(world, settings.batch_in_flight)
        rpc.add_WorldModelServiceServicer_to_server(servicer, server)
        return [NAME]

    return register


@asynccontextmanager
async def open_world(settings: WorldModelSettings) -> AsyncIterator[World]:
    """The world model that the settings describe, its lifetimes renewed meanwhile.

    Raises Unavailable when Redis does not answer, InvalidRequest for settings that name a
    backend or store that does not exist. A renderer may come later.
    """
    names = [name.strip() for name in settings.backends.split(",") if name.strip()]
    if not names:
        raise InvalidRequest("WMR1_BACKENDS names no backend", field="backends")
    # In a thread: a checkpoint in this process takes its time, and health is asked meanwhile.
    registry = await asyncio.to_thread(backends.load, names, settings)
    blobs = open_blobs(settings.blobs)
    async with AsyncExitStack() as stack:
        stack.push_async_callback(registry.close)
        model_judge = await _open_judge(settings, registry, stack)
        index = Index(
            _connect(settings.redis_url),
            prefix=_PREFIX,
            ttl_s=settings.state_ttl_s,
            pin_ttl_s=settings.pin_ttl_s,
        )
        stack.push_async_callback(index.close)
        await _greet(index, settings.redis_url)
        renderer = await stack.enter_async_context(
            RendererClient(settings.renderer, timeout_s=settings.render_timeout_s)
        )
        renewing = asyncio.create_task(_renew(index, settings.state_ttl_s))
        stack.callback(renewing.cancel)
        states = States(registry, index, blobs, settings.live_states)
        yield World(
            registry,
            states,
            Transitions(states, index, settings.known_transitions),
            Pictures(renderer, states, index, blobs, settings.known_pictures),
            blobs,
            model_judge,
            Verdicts(index),
        )


async def _open_judge(
    settings: WorldModelSettings, registry: backends.Registry, stack: AsyncExitStack
) -> ModelJudge | None:
    if not settings.judge_url:
        return None
    from services.worldmodel.learned.loading import model_judge

    judge = model_judge(settings, [model for model in registry if isinstance(model, LearnedPages)])
    if judge is not None:
        stack.push_async_callback(judge.close)
    return judge


def _connect(url: str) -> Redis:
    # redis-py's own defaults would hide a dead Redis for a minute behind ten retries.
    try:
        return Redis.from_url(
            url,
            socket_timeout=5.0,
            socket_connect_timeout=2.0,
            retry=Retry(ExponentialBackoff(cap=0.5, base=0.05), 2),
        )
    except ValueError as error:
        raise InvalidRequest(f"WMR1_REDIS_URL: {error}", field="redis_url") from None


async def _greet(index: Index, url: str) -> None:
    try:
        await index.ping()
    except Unavailable:
        parts = urlsplit(url)
        place = parts.path if parts.scheme == "unix" else f"{parts.hostname}:{parts.port or 6379}"
        raise Unavailable(
            f"Redis at {place} cannot be reached; start redis-server or set WMR1_REDIS_URL"
        ) from None


async def _renew(index: Index, ttl_s: float) -> None:
    """Lifetimes are renewed in batches, often enough that use always outruns expiry."""
    every_s = min(60.0, max(1.0, ttl_s / 20))
    while True:
        await asyncio.sleep(every_s)
        try:
            restored = await index.renew()
        except Unavailable as error:
            log.warning("lifetimes could not be renewed", error=error.message)
            continue
        if restored:
            RESTORED.inc(restored)
            log.warning("Redis had dropped records in use", restored=restored)
