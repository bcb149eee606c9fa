"""The manifests of k8s/ are right as far as can be seen without a cluster; each check finds its mistake."""

from collections.abc import Callable, Sequence
from copy import deepcopy
from pathlib import Path
from typing import Any

import pytest
import yaml

from scripts.manifest_policies import unreleased
from scripts.manifests import OVERLAYS, Manifest, invalid, problems, rendered, unruly

Mistake = Callable[[list[Manifest]], None]


@pytest.fixture(scope="module")
def operators(shared: Path) -> Path:
    return shared / "k8s-schemas"


@pytest.fixture(scope="module")
def overlays() -> dict[str, list[Manifest]]:
    return {name: rendered(name) for name in OVERLAYS}


@pytest.mark.parametrize("name", OVERLAYS)
def test_an_overlay_has_no_problems(overlays: dict[str, list[Manifest]], operators: Path, name: str) -> None:
    assert problems(overlays[name], operators) == []


def test_what_is_not_released_is_told(overlays: dict[str, list[Manifest]]) -> None:
    told = list(unreleased(overlays["prod"]))
    assert any("Deployment/gateway" in line for line in told)
    assert list(unreleased(overlays["dev"])) == []


def one(manifests: Sequence[Manifest], kind: str, name: str) -> Any:
    (found,) = (it for it in manifests if it["kind"] == kind and it["metadata"]["name"] == name)
    return found


def spec(manifests: Sequence[Manifest], kind: str, name: str) -> Any:
    return one(manifests, kind, name)["spec"]


def pod(manifests: Sequence[Manifest], kind: str, name: str) -> Any:
    return spec(manifests, kind, name)["template"]["spec"]


def gateway(manifests: Sequence[Manifest]) -> Any:
    return pod(manifests, "Deployment", "gateway")["containers"][0]


def secrets(manifests: Sequence[Manifest], name: str) -> Any:
    return spec(manifests, "ExternalSecret", name)["data"][0]


def ray(manifests: Sequence[Manifest]) -> Any:
    return spec(manifests, "RayService", "palimpsest-services")


def serve(manifests: list[Manifest], change: Callable[[Any], None]) -> None:
    config = yaml.safe_load(ray(manifests)["serveConfigV2"])
    change(config)
    ray(manifests)["serveConfigV2"] = yaml.safe_dump(config)


def setting(manifests: Sequence[Manifest]) -> Any:
    return one(manifests, "ConfigMap", "palimpsest-settings")["data"]


def put(target: Any, **more: Any) -> None:
    target.update(more)


MISTAKES: dict[str, tuple[Mistake, str]] = {
    "a field that Kubernetes does not know": (
        lambda them: put(spec(them, "Deployment", "gateway"), replica=3),
        "Deployment/gateway",
    ),
    "a field that Ray's operator does not know": (
        lambda them: put(ray(them)["rayClusterConfig"], headSpec={}),
        "headSpec",
    ),
    "a field that NebulaGraph's operator does not know": (
        lambda them: put(spec(them, "NebulaCluster", "palimpsest-graph")["graphd"], replica=2),
        "replica",
    ),
    "a field that Milvus' operator does not know": (
        lambda them: put(spec(them, "Milvus", "palimpsest-vectors")["components"], proxies={}),
        "proxies",
    ),
    "a field that PostgreSQL's operator does not know": (
        lambda them: put(spec(them, "Cluster", "postgres"), replicas=3),
        "replicas",
    ),
    "a value of the wrong type": (
        lambda them: put(spec(them, "NebulaCluster", "palimpsest-graph")["graphd"], replicas="two"),
        "two",
    ),
    "a kind that nobody checks": (
        lambda them: them.append({"apiVersion": "example/v1", "kind": "Thing", "metadata": {"name": "it"}}),
        "no schema of Thing",
    ),
    "no readiness": (lambda them: gateway(them).pop("readinessProbe"), "no readinessProbe"),
    "one name for both probes": (
        lambda them: gateway(them)["readinessProbe"]["grpc"].update(service="palimpsest.live"),
        "the same name",
    ),
    "no limit of memory": (
        lambda them: gateway(them)["resources"]["limits"].pop("memory"),
        "no limits of memory",
    ),
    "root": (
        lambda them: pod(them, "StatefulSet", "worker")["securityContext"].pop("runAsNonRoot"),
        "may run as root",
    ),
    "a root that can be written": (
        lambda them: put(gateway(them)["securityContext"], readOnlyRootFilesystem=False),
        "writes to its root",
    ),
    "capabilities": (
        lambda them: gateway(them)["securityContext"].pop("capabilities"),
        "keeps capabilities",
    ),
    "privileges": (
        lambda them: put(gateway(them)["securityContext"], allowPrivilegeEscalation=True),
        "may gain privileges",
    ),
    "a token of Kubernetes": (
        lambda them: pod(them, "StatefulSet", "worker").pop("automountServiceAccountToken"),
        "carries a token",
    ),
    "no seccomp": (
        lambda them: pod(them, "StatefulSet", "redis")["securityContext"].pop("seccompProfile"),
        "no seccomp profile",
    ),
    "a stop that is cut short": (
        lambda them: put(setting(them), PALIMPSEST_DRAIN_SECONDS="120"),
        "is killed after 60 s",
    ),
    "no disruption budget": (
        lambda them: them.remove(one(them, "PodDisruptionBudget", "gateway")),
        "no PodDisruptionBudget",
    ),
    "open traffic": (
        lambda them: them.remove(one(them, "NetworkPolicy", "nothing")),
        "no NetworkPolicy denies",
    ),
    "a door for anybody": (
        lambda them: spec(them, "NetworkPolicy", "gateway")["ingress"][0].pop("from"),
        "lets anybody in",
    ),
    "a port without a policy": (
        lambda them: them.remove(one(them, "NetworkPolicy", "redis")),
        "no NetworkPolicy lets anybody to port 6379",
    ),
    "the latest image": (lambda them: put(gateway(them), image="palimpsest:latest"), "names no version"),
    "an image without digest": (lambda them: put(gateway(them), image="palimpsest:1.0"), "has no digest"),
    "a setting that does not exist": (
        lambda them: put(setting(them), PALIMPSEST_DRAIN_SECOND="5"),
        "PALIMPSEST_DRAIN_SECOND is no setting",
    ),
    "a secret that is no setting": (
        lambda them: secrets(them, "palimpsest-secrets").update(secretKey="PALIMPSEST_X"),
        "PALIMPSEST_X is no setting",
    ),
    "a secret that nothing reads": (
        lambda them: secrets(them, "palimpsest-redis").update(secretKey="pass"),
        "nothing reads pass",
    ),
    "a secret that nothing fetches": (
        lambda them: them.remove(one(them, "ExternalSecret", "palimpsest-owner")),
        "Secret/palimpsest-owner: is read, and nothing fetches it",
    ),
    "a misspelt key of Serve": (
        lambda them: serve(them, lambda it: it["applications"][0].update(routes="/x")),
        "routes",
    ),
    "a scaling that Serve does not know": (
        lambda them: serve(
            them,
            lambda it: it["applications"][0]["deployments"][0]["autoscaling_config"].update(max_replica=3),
        ),
        "max_replica",
    ),
    "an import path that leads nowhere": (
        lambda them: serve(them, lambda it: it["applications"][0].update(import_path="services:it")),
        "is not what services/runtime/serve_config.py says",
    ),
    "calls that go elsewhere": (
        lambda them: put(setting(them), PALIMPSEST_SERVICES_TARGET="elsewhere:9000"),
        "PALIMPSEST_SERVICES_TARGET is not",
    ),
    "a gateway of random names that runs jobs": (
        lambda them: next(
            it for it in gateway(them)["env"] if it["name"] == "PALIMPSEST_WORKFLOW_CONCURRENCY"
        ).update(value="16"),
        "under a name that does not come back",
    ),
    "one executor id for all": (
        lambda them: pod(them, "StatefulSet", "worker")["containers"][0]["env"].pop(0),
        "has not the pod's name",
    ),
}


@pytest.mark.parametrize("what", MISTAKES)
def test_a_mistake_is_found(overlays: dict[str, list[Manifest]], operators: Path, what: str) -> None:
    mistake, told = MISTAKES[what]
    wrong = deepcopy(overlays["prod"])
    mistake(wrong)
    changed = [it for it in wrong if it not in overlays["prod"]]
    found = [*invalid(changed, operators), *unruly(wrong)]
    assert any(told in line for line in found), found
