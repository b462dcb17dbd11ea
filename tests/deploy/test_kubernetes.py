"""The manifests build, are valid Kubernetes, and run what the services expect."""

import shutil
import subprocess
import sys
from functools import cache
from pathlib import Path
from typing import Any

import pytest
import yaml

from wmkit.cli.stack import SERVICES
from wmkit.settings import DEFAULT_PORTS

ROOT = Path(__file__).parent.parent.parent
OVERLAY = "k8s/overlays/dev"


@cache
def built() -> str:
    if shutil.which("kubectl") is None:
        pytest.skip("kubectl is not installed")
    command = ("kubectl", "kustomize", OVERLAY)
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout


def objects(kind: str) -> dict[str, dict[str, Any]]:
    found = [each for each in yaml.safe_load_all(built()) if each["kind"] == kind]
    return {each["metadata"]["name"]: each for each in found}


def pod(name: str) -> dict[str, Any]:
    spec: dict[str, Any] = objects("Deployment")[name]["spec"]["template"]["spec"]
    return spec


def test_the_overlay_is_valid_kubernetes(tmp_path: Path) -> None:
    file = tmp_path / "dev.yaml"
    file.write_text(built())
    tool = Path(sys.executable).parent / "kubernetes-validate"
    done = subprocess.run(
        (str(tool), "--strict", str(file)), capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stdout + done.stderr
    passed = [line for line in (done.stdout + done.stderr).splitlines() if " passed " in line]
    assert len(passed) == built().count("\nkind:") + built().startswith("kind:")


@pytest.mark.parametrize("name", SERVICES)
def test_every_service_is_probed_limited_and_not_root(name: str) -> None:
    spec = pod(name)
    (container,) = spec["containers"]
    assert container["image"] == f"wmr1/{name}:dev"
    for probe in ("startupProbe", "readinessProbe", "livenessProbe"):
        assert container[probe]["grpc"]["port"] == DEFAULT_PORTS[name]
    assert set(container["resources"]["limits"]) == {"cpu", "memory"}
    assert spec["securityContext"]["runAsNonRoot"] is True
    assert container["securityContext"] == {
        "allowPrivilegeEscalation": False,
        "readOnlyRootFilesystem": True,
        "capabilities": {"drop": ["ALL"]},
    }
    # The server ends its calls in 20 s after a pause; Kubernetes must not be faster.
    assert spec["terminationGracePeriodSeconds"] > 20


def test_settings_name_the_services_and_their_ports() -> None:
    data = objects("ConfigMap")["wmr1"]["data"]
    services = objects("Service")
    for name in ("renderer", "worldmodel", "policy", "trainer"):
        assert data[f"WMR1_{name.upper()}"] == f"{name}:{DEFAULT_PORTS[name]}"
        assert services[name]["spec"]["ports"][0]["port"] == DEFAULT_PORTS[name]
    assert "redis" in services and "redis" in objects("StatefulSet")


def test_no_service_can_be_mistaken_for_a_setting() -> None:
    # With service links, a service named wmr1-x would come as the variable WMR1_X_PORT.
    assert not [name for name in objects("Service") if name.startswith("wmr1")]
    assert all(pod(name)["enableServiceLinks"] is False for name in SERVICES)


def test_what_draws_hostile_pages_reaches_nobody() -> None:
    spec = objects("NetworkPolicy")["renderer"]["spec"]
    assert spec["policyTypes"] == ["Egress"] and not spec.get("egress")
    labels = objects("Deployment")["renderer"]["spec"]["template"]["metadata"]["labels"]
    assert spec["podSelector"]["matchLabels"].items() <= labels.items()


@pytest.mark.parametrize("name", SERVICES)
def test_those_who_share_blobs_mount_the_same_claim(name: str) -> None:
    claims = {
        volume["name"]: volume["persistentVolumeClaim"]["claimName"]
        for volume in pod(name)["volumes"]
        if "persistentVolumeClaim" in volume
    }
    assert claims["blobs"] == "blobs" and set(claims.values()) <= set(
        objects("PersistentVolumeClaim")
    )
