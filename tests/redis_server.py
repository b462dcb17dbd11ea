"""A real redis-server of a test's own, on a socket file in its folder: no port to collide on."""

import shutil
import subprocess
from pathlib import Path

import pytest


class RedisServer:
    """Started by `start`, which may follow `kill`: the append-only file keeps the data."""

    def __init__(self, folder: Path) -> None:
        binary = shutil.which("redis-server")
        if binary is None:
            pytest.skip("redis-server is not installed")
        self._binary = binary
        self._folder = folder
        self._socket = folder / "redis.sock"
        self._process: subprocess.Popen[bytes] | None = None
        self.url = f"unix://{self._socket}"

    def start(self) -> "RedisServer":
        listen = ("--port", "0", "--unixsocket", str(self._socket))
        keep = ("--save", "", "--appendonly", "yes", "--appendfsync", "always")
        self._process = subprocess.Popen(
            [self._binary, *listen, *keep, "--dir", str(self._folder)], stdout=subprocess.PIPE
        )
        assert self._process.stdout is not None
        for line in self._process.stdout:
            if b"eady to accept connections" in line:
                return self
        raise RuntimeError(f"redis-server ended with {self._process.wait()}")

    def kill(self) -> None:
        if self._process is not None:
            self._process.kill()
            self._process.wait()
            assert self._process.stdout is not None
            self._process.stdout.close()
            self._process = None
