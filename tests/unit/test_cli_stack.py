"""What the processes of a stack are told."""

import os
import socket
from pathlib import Path

import pytest

from wmkit.cli.stack import SERVICES, Layout, free_ports
from wmkit.cli.stack.child import Child, Phase, Spec


def layout(tmp_path: Path, *names: str, **more: object) -> Layout:
    ports = {name: 1000 + n for n, name in enumerate(names)}
    return Layout(tmp_path, tmp_path, tmp_path / "log", ports, **more)  # type: ignore[arg-type]


def environments(stack: Layout) -> dict[str, dict[str, str]]:
    return {spec.name: dict(spec.env) for spec in stack.specs()}


def test_every_service_learns_its_port_and_those_of_the_others(tmp_path: Path) -> None:
    found = environments(layout(tmp_path, "redis", *SERVICES))
    assert list(found) == ["redis", "renderer", "worldmodel", "policy", "rollout", "trainer"]
    assert found["worldmodel"]["WMR1_PORT"] == "1002"
    for name in SERVICES:
        assert found[name]["WMR1_REDIS_URL"] == "redis://127.0.0.1:1000/0"
        assert found[name]["WMR1_POLICY"] == "127.0.0.1:1003"
        assert found[name]["WMR1_HOST"] == "127.0.0.1"


def test_a_stack_without_redis_uses_the_one_that_is_named(tmp_path: Path) -> None:
    found = environments(layout(tmp_path, "worldmodel", redis_url="redis://elsewhere/3"))
    assert list(found) == ["worldmodel"]
    assert found["worldmodel"]["WMR1_REDIS_URL"] == "redis://elsewhere/3"


def test_the_environment_passes_but_one_process_alone_gets_no_port_of_another(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("WMR1_LOG_LEVEL", "debug")
    monkeypatch.setenv("WMR1_THREADS", "7")
    monkeypatch.setenv("WMR1_METRICS_PORT", "9000")
    monkeypatch.setenv("WMR1_HOST", "0.0.0.0")
    stack = layout(tmp_path, "trainer", settings={"WMR1_LOG_LEVEL": "error"})
    env = environments(stack)["trainer"]
    assert env["WMR1_THREADS"] == "7"
    assert env["WMR1_LOG_LEVEL"] == "error", "settings of the stack win"
    assert env["WMR1_HOST"] == "127.0.0.1" and "WMR1_METRICS_PORT" not in env


def test_free_ports_differ_and_can_be_had() -> None:
    ports = free_ports(("a", "b", "c"))
    assert len(set(ports.values())) == 3
    for port in ports.values():
        with socket.socket() as probe:
            probe.bind(("127.0.0.1", port))


def test_the_last_words_of_a_process_are_its_last_line_for_people(tmp_path: Path) -> None:
    log = tmp_path / "x.log"
    log.write_text('renderer: no browser found\n{"event": "stopped"}\n\n')
    spec = Spec("x", ("true",), os.environ, tmp_path, "127.0.0.1:1", log, lambda _: True)
    child = Child(spec)
    assert child.last_words() == "renderer: no browser found"
    assert child.phase is Phase.STOPPED and child.pid is None
    log.unlink()
    assert child.last_words() == ""
