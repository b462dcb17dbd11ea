"""Which processes make a stack, where they listen and what they are told.

Addresses and folders are the stack's; anything else a service reads from `WMR1_*` passes
through from the environment, so `WMR1_LOG_LEVEL=debug wmr1 up` means what it says.
"""

import os
import shutil
import socket
import sys
from collections.abc import Iterable, Mapping
from contextlib import ExitStack
from dataclasses import dataclass, field
from pathlib import Path

from wmkit.cli.stack.child import Spec
from wmkit.cli.stack.ready import grpc_serves, redis_answers
from wmkit.domain.errors import NotFound

SERVICES = ("renderer", "worldmodel", "policy", "rollout", "trainer")
"""In the order in which they start; they stop in reverse."""

HOST = "127.0.0.1"
# Those belong to one process; handed down, all services would fight over the same port.
_PRIVATE = ("WMR1_HOST", "WMR1_PORT", "WMR1_METRICS_PORT")


def cores() -> int:
    """CPU cores that this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def free_ports(names: Iterable[str]) -> dict[str, int]:
    """A free port for each name. Nothing reserves them, so use them soon."""
    with ExitStack() as held:
        ports = {}
        for name in names:
            probe = held.enter_context(socket.socket())
            probe.bind((HOST, 0))
            ports[name] = int(probe.getsockname()[1])
        return ports


@dataclass(frozen=True)
class Layout:
    """A stack to be. `ports` names every service of it, and "redis" for a Redis of its own."""

    root: Path
    """Where the services run: relative paths in settings and recipes start here."""
    folder: Path
    """What belongs to this stack alone: the data of its Redis."""
    logs: Path
    ports: Mapping[str, int]
    redis_url: str = ""
    """A Redis that runs already; used when `ports` has none."""
    settings: Mapping[str, str] = field(default_factory=dict)
    """More `WMR1_*` variables; they win over the environment."""

    def address(self, name: str) -> str:
        return f"{HOST}:{self.ports[name]}"

    def specs(self) -> list[Spec]:
        """The processes in the order of their start. Raises NotFound without redis-server."""
        specs = [self._redis()] if "redis" in self.ports else []
        return specs + [self._service(name) for name in SERVICES if name in self.ports]

    def _redis(self) -> Spec:
        binary = shutil.which("redis-server")
        if binary is None:
            raise NotFound("redis-server is not installed; `wmr1 doctor` tells how to get it")
        data = self.folder / "redis"
        data.mkdir(parents=True, exist_ok=True)
        listen = ("--bind", HOST, "--port", str(self.ports["redis"]), "--dir", str(data))
        keep = ("--save", "", "--appendonly", "yes", "--maxmemory-policy", "volatile-lru")
        return Spec(
            "redis",
            (binary, *listen, *keep),
            os.environ,
            self.root,
            self.address("redis"),
            self.logs / "redis.log",
            redis_answers,
        )

    def _service(self, name: str) -> Spec:
        return Spec(
            name,
            (sys.executable, "-m", f"services.{name}"),
            self._environment(name),
            self.root,
            self.address(name),
            self.logs / f"{name}.log",
            grpc_serves,
        )

    def _environment(self, name: str) -> dict[str, str]:
        env = {key: value for key, value in os.environ.items() if key not in _PRIVATE}
        for key, value in _defaults(name).items():
            env.setdefault(key, value)
        peers = {peer: port for peer, port in self.ports.items() if peer in SERVICES}
        env |= {f"WMR1_{peer.upper()}": f"{HOST}:{port}" for peer, port in peers.items()}
        env |= {"WMR1_HOST": HOST, "WMR1_PORT": str(self.ports[name]), "PYTHONUNBUFFERED": "1"}
        if "redis" in self.ports:
            env["WMR1_REDIS_URL"] = f"redis://{self.address('redis')}/0"
        elif self.redis_url:
            env["WMR1_REDIS_URL"] = self.redis_url
        return env | dict(self.settings)


def _defaults(name: str) -> dict[str, str]:
    """What suits one machine, unless the environment says otherwise.

    The trainer gets all cores: the policy rests while weights are updated. The policy itself
    takes half of them on its own, for renderer and world model work while it samples.
    """
    return {"WMR1_THREADS": str(cores())} if name == "trainer" else {}
