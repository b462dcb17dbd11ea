"""The compose file and the Dockerfiles: every service, and what each of them needs."""

import ast
import re
import sys
from pathlib import Path
from typing import Any

import pytest
import yaml

from wmkit.cli.stack import SERVICES
from wmkit.settings import DEFAULT_PORTS

ROOT = Path(__file__).parent.parent.parent
COMPOSE: dict[str, Any] = yaml.safe_load((ROOT / "docker-compose.yml").read_text())
STANDARD = sys.stdlib_module_names
# What a distribution is imported as, where the name differs.
IMPORTED_AS = {
    "grpc": "grpcio",
    "grpc-health": "grpcio-health-checking",
    "grpc-reflection": "grpcio-reflection",
    "grpc-status": "grpcio-status",
    "google": "protobuf",
    "pil": "pillow",
}

# What an extra of its own brings, asked for by a setting and imported only then.
OPTIONAL = {
    "worldmodel": {"torch", "transformers"},
    "policy": {"vllm"},
    "trainer": {"tensorboard", "trackio", "wandb"},
}


def dockerfile(name: str) -> str:
    return (ROOT / "services" / name / "Dockerfile").read_text()


def test_the_compose_file_names_every_service_and_redis() -> None:
    assert set(COMPOSE["services"]) == {"redis", *SERVICES}
    # docker-compose 1.29 takes a file without `version` as the current specification.
    assert "version" not in COMPOSE


@pytest.mark.parametrize("name", SERVICES)
def test_a_service_is_built_from_its_dockerfile_and_waits_for_what_it_needs(name: str) -> None:
    service = COMPOSE["services"][name]
    assert service["build"]["dockerfile"] == f"services/{name}/Dockerfile"
    assert all(port.startswith("127.0.0.1:") for port in service.get("ports", []))
    for peer, condition in service.get("depends_on", {}).items():
        assert peer in COMPOSE["services"] and condition == {"condition": "service_healthy"}
    for volume in service.get("volumes", []):
        assert volume.partition(":")[0] in COMPOSE["volumes"]
    assert "blobs:/data/blobs" in service["volumes"], "pictures and trajectories go by digest"


@pytest.mark.parametrize("name", SERVICES)
def test_an_image_listens_where_its_peers_look_and_is_not_root(name: str) -> None:
    text, port = dockerfile(name), DEFAULT_PORTS[name]
    assert f"EXPOSE {port}\n" in text
    assert f'"wmkit.rpc.health", "127.0.0.1:{port}"' in text
    assert f'CMD ["python", "-m", "services.{name}"]' in text
    assert "\nUSER 10001\n" in text
    if name != "rollout":
        environment = COMPOSE["services"][name]["environment"]
        assert environment[f"WMR1_{name.upper()}"] == f"{name}:{port}"


@pytest.mark.parametrize("name", SERVICES)
def test_all_that_an_image_copies_is_in_its_context(name: str) -> None:
    allowed = {
        line[1:] for line in (ROOT / ".dockerignore").read_text().split() if line.startswith("!")
    }
    for source in re.findall(r"^COPY (?!--from)(\S+)", dockerfile(name), re.MULTILINE):
        assert (ROOT / source).exists(), source
        assert any(source == each or source.startswith(f"{each}/") for each in allowed), source


@pytest.mark.parametrize("name", SERVICES)
def test_an_image_has_the_packages_that_its_code_imports(name: str) -> None:
    lock = (ROOT / "requirements" / f"{name}.lock").read_text()
    locked = {line.partition("==")[0] for line in lock.splitlines() if "==" in line}
    for module in sorted(imports(ROOT / "services" / name) - OPTIONAL.get(name, set())):
        package = module.replace("_", "-").lower()
        assert IMPORTED_AS.get(package, package) in locked, f"{name} imports {module}"


def imports(folder: Path) -> set[str]:
    """Top-level names of other people's modules that the code in a folder imports."""
    found = set()
    for file in folder.rglob("*.py"):
        for node in ast.walk(ast.parse(file.read_text())):
            match node:
                case ast.Import(names):
                    found |= {alias.name.partition(".")[0] for alias in names}
                case ast.ImportFrom(module=str(module), level=0):
                    found.add(module.partition(".")[0])
    return found - STANDARD - {"services", "wmkit", "wmr1"}
