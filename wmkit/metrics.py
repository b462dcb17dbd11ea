"""Prometheus metrics: the ones that every server has, and the port that shows them.

A service declares its own metrics in its own modules with `prometheus_client`.
"""

from prometheus_client import Histogram, start_http_server

RPC_SECONDS = Histogram(
    "wmr1_rpc_seconds",
    "Time to answer a call, by method and status code.",
    ["method", "code"],
    buckets=(0.001, 0.002, 0.005, 0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1, 2, 5, 10, 30, 60),
)


def serve(host: str, port: int) -> None:
    """Show this process's metrics at http://host:port/metrics; OSError when the port is taken."""
    start_http_server(port, addr=host)
