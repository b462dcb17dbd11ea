"""Is a server serving? As a function, and as the health probe of containers:

    python -m wmkit.rpc.health 127.0.0.1:50051

prints the status and exits with 0 when it is SERVING, 1 otherwise.
"""

import asyncio
import sys
import time

import grpc
from grpc_health.v1 import health_pb2, health_pb2_grpc

from wmkit.domain.errors import DeadlineExpired
from wmkit.rpc.channel import open_channel


async def check(address: str, service: str = "", timeout_s: float = 2.0) -> str:
    """`SERVING`, `NOT_SERVING`, `SERVICE_UNKNOWN` or, when nobody answers, `UNREACHABLE`."""
    async with open_channel(address) as channel:
        try:
            answer = await health_pb2_grpc.HealthStub(channel).Check(
                health_pb2.HealthCheckRequest(service=service), timeout=timeout_s
            )
        except grpc.aio.AioRpcError as error:
            unknown = error.code() is grpc.StatusCode.NOT_FOUND
            return "SERVICE_UNKNOWN" if unknown else "UNREACHABLE"
    name: str = health_pb2.HealthCheckResponse.ServingStatus.Name(answer.status)
    return name


async def wait_serving(address: str, timeout_s: float) -> None:
    """Return as soon as the server is SERVING. Raises DeadlineExpired after `timeout_s`."""
    end = time.monotonic() + timeout_s
    while (found := await check(address, timeout_s=1.0)) != "SERVING":
        if time.monotonic() > end:
            raise DeadlineExpired(f"{address} is still {found} after {timeout_s:g} s")
        await asyncio.sleep(0.1)


def main() -> None:
    if len(sys.argv) not in (2, 3) or sys.argv[1].startswith("-"):
        print("usage: python -m wmkit.rpc.health ADDRESS [SERVICE]", file=sys.stderr)
        raise SystemExit(2)
    service = sys.argv[2] if len(sys.argv) == 3 else ""
    found = asyncio.run(check(sys.argv[1], service))
    print(found)
    raise SystemExit(found != "SERVING")


if __name__ == "__main__":
    main()
