"""Puts the service together: checkpoint, engine, blobs, Redis, the last weights, the server."""

import asyncio
import os
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from typing import Any
from urllib.parse import urlsplit

import structlog
import torch
from redis.asyncio import Redis
from redis.asyncio.retry import Retry
from redis.backoff import ExponentialBackoff
from redis.exceptions import RedisError
from wmr1.policy.v1 import policy_pb2_grpc as rpc

from services.policy.batching import BatchEngine, Limits
from services.policy.engine import Engine
from services.policy.hosted import HostedPolicy, hosted_model
from services.policy.memo import Memo
from services.policy.policy import LocalPolicy
from services.policy.servicer import NAME, PolicyServicer, ServedPolicy
from services.policy.settings import PolicySettings
from services.policy.updates import Updates, fingerprint
from services.policy.vllm_engine import VllmEngine
from services.policy.vllm_llm import Options
from wmkit.blobs import open_blobs
from wmkit.domain.errors import InvalidRequest, Unavailable
from wmkit.modeling import load, load_processor
from wmkit.modeling.adapters import adapter_document
from wmkit.rpc.server import Register, serve

log = structlog.get_logger(__name__)


async def serve_policy(settings: PolicySettings) -> None:
    """Serve until told to stop."""
    resources = AsyncExitStack()
    await serve(settings, "policy", registration(settings, resources), resources.aclose)


def registration(settings: PolicySettings, resources: AsyncExitStack) -> Register:
    """What adds this service to a server; whatever it opens is closed with `resources`."""

    async def register(server: Any) -> list[str]:
        policy = await resources.enter_async_context(open_policy(settings))
        rpc.add_PolicyServiceServicer_to_server(PolicyServicer(policy, Memo()), server)
        return [NAME]

    return register


@asynccontextmanager
async def open_policy(settings: PolicySettings) -> AsyncIterator[ServedPolicy]:
    """The policy that the settings describe, with the last published weights loaded.

    Raises BadCheckpoint for the folder, InvalidRequest for a device or address that does not
    exist, Unavailable when Redis does not answer.
    """
    blobs = open_blobs(settings.blobs)
    async with AsyncExitStack() as stack:
        if settings.policy_engine == "openai":
            hosted = HostedPolicy(hosted_model(settings), blobs, queue=settings.max_queue)
            stack.push_async_callback(hosted.close)
            yield hosted
            return
        engine = await asyncio.to_thread(_engine, settings)
        redis = _connect(settings.redis_url)
        stack.push_async_callback(redis.aclose)
        updates = Updates(engine, blobs, redis, fingerprint(engine.processor))
        try:
            await redis.ping()
        except (RedisError, OSError) as error:
            parts = urlsplit(settings.redis_url)
            place = parts.path if parts.scheme == "unix" else parts.netloc.rpartition("@")[2]
            raise Unavailable(
                f"Redis at {place} cannot be reached; start redis-server or set WMR1_REDIS_URL"
            ) from error
        stack.push_async_callback(engine.close)
        await engine.start(await asyncio.to_thread(_adapter, settings.adapter))
        await updates.restore()
        yield LocalPolicy(engine, blobs, updates)


def _engine(settings: PolicySettings) -> Engine:
    images = settings.image_cache_mb << 20
    if settings.policy_engine == "vllm":
        return VllmEngine(
            load_processor(settings.checkpoint, image_cache_bytes=images),
            Options(
                dtype=settings.dtype,
                max_batch=settings.max_batch,
                context=settings.vllm_context,
                memory=settings.vllm_memory,
                tensor_parallel=settings.vllm_tensor_parallel,
                pictures=settings.vllm_pictures,
                eager=settings.vllm_eager,
                nccl=settings.vllm_nccl,
            ),
            queue=settings.max_queue,
            tolerance=settings.canary_tolerance,
        )
    try:
        device = torch.device(settings.device)
        torch.empty(0, device=device)
    except (RuntimeError, AssertionError) as error:
        raise InvalidRequest(f"WMR1_DEVICE={settings.device}: no such device", "device") from error
    dtype = getattr(torch, settings.dtype)
    loaded = load(settings.checkpoint, device=device, dtype=dtype, image_cache_bytes=images)
    return BatchEngine(
        loaded,
        Limits(
            settings.max_batch,
            settings.max_batch_tokens,
            settings.batch_window_s,
            settings.max_queue,
        ),
        feature_bytes=settings.feature_cache_mb << 20,
        threads=settings.torch_threads or max(1, (os.cpu_count() or 2) // 2),
        tolerance=settings.canary_tolerance,
    )


def _adapter(folder: str) -> bytes:
    """The adapter in `folder` as one document; nothing where no folder is named."""
    return adapter_document(folder) if folder else b""


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
