"""What our manifests must keep to beyond their schemas. Each policy is given all manifests of an overlay."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

import yaml

from gateway.settings_page import PROCESSES, settings_of
from services.runtime.ray_settings import RaySettings
from services.runtime.serve_config import UnknownKeys, checked, serve_config

Manifest = dict[str, Any]
Policy = Callable[[Sequence[Manifest]], Iterator[str]]

SETTINGS = "PALIMPSEST_"
SERVE_PORT = 9000
_UNTAGGED = {"NebulaCluster"}
"""Its operator joins `image` and `version` itself, and takes no digest."""
_NO_PROBES = {"Job"}
_ZEROS = "sha256:" + 64 * "0"


def of_kind(manifests: Sequence[Manifest], *kinds: str) -> Iterator[Manifest]:
    return (one for one in manifests if one["kind"] in kinds)


def pods(manifests: Sequence[Manifest]) -> Iterator[tuple[str, str, Manifest]]:
    """Every pod that we write ourselves: its name, the kind it is of, its template."""
    for one in of_kind(manifests, "Deployment", "StatefulSet", "Job"):
        yield f"{one['kind']}/{one['metadata']['name']}", one["kind"], one["spec"]["template"]
    for one in of_kind(manifests, "RayService"):
        cluster = one["spec"]["rayClusterConfig"]
        name = f"RayService/{one['metadata']['name']}"
        yield f"{name} head", "RayService", cluster["headGroupSpec"]["template"]
        for group in cluster["workerGroupSpecs"]:
            yield f"{name} {group['groupName']}", "RayService", group["template"]


def containers(manifests: Sequence[Manifest]) -> Iterator[tuple[str, str, Manifest]]:
    for name, kind, template in pods(manifests):
        for container in template["spec"]["containers"] + template["spec"].get("initContainers", []):
            yield f"{name} {container['name']}", kind, container


def probed(manifests: Sequence[Manifest]) -> Iterator[str]:
    """Ray's operator gives its pods probes of its own; a job ends."""
    for name, kind, container in containers(manifests):
        if kind not in _NO_PROBES | {"RayService"}:
            for probe in ("startupProbe", "livenessProbe", "readinessProbe"):
                if probe not in container:
                    yield f"{name}: no {probe}"
            if "grpc" in container.get("livenessProbe", {}) and (
                container["livenessProbe"]["grpc"].get("service")
                == container.get("readinessProbe", {}).get("grpc", {}).get("service")
            ):
                yield f"{name}: liveness and readiness ask for the same name"


def limited(manifests: Sequence[Manifest]) -> Iterator[str]:
    for name, _, container in containers(manifests):
        resources = container.get("resources", {})
        for side in ("requests", "limits"):
            for what in ("cpu", "memory"):
                if what not in resources.get(side, {}):
                    yield f"{name}: no {side} of {what}"


def confined(manifests: Sequence[Manifest]) -> Iterator[str]:
    for name, _, template in pods(manifests):
        context = template["spec"].get("securityContext", {})
        if not context.get("runAsNonRoot") or not context.get("runAsUser"):
            yield f"{name}: may run as root"
        if context.get("seccompProfile", {}).get("type") != "RuntimeDefault":
            yield f"{name}: no seccomp profile"
        automount = template["spec"].get("automountServiceAccountToken")
        if automount is not False and not name.endswith(" head"):
            yield f"{name}: carries a token of Kubernetes"
    for name, _, container in containers(manifests):
        context = container.get("securityContext", {})
        if context.get("allowPrivilegeEscalation") is not False:
            yield f"{name}: may gain privileges"
        if context.get("readOnlyRootFilesystem") is not True:
            yield f"{name}: writes to its root"
        if context.get("capabilities", {}).get("drop") != ["ALL"]:
            yield f"{name}: keeps capabilities"


def drained(manifests: Sequence[Manifest]) -> Iterator[str]:
    """The pods' grace outlasts what the settings let a gateway take to stop."""
    settings = _settings(manifests)
    takes = float(settings["PALIMPSEST_DRAIN_WAIT_SECONDS"]) + float(settings["PALIMPSEST_DRAIN_SECONDS"])
    for name, _, template in pods(manifests):
        runs = [part for one in template["spec"]["containers"] for part in one.get("args", ())]
        if runs[:2] == ["palimpsest", "gateway"]:
            grace = template["spec"].get("terminationGracePeriodSeconds", 30)
            if grace <= takes:
                yield f"{name}: is killed after {grace} s, while it may drain for {takes:g} s"


def disrupted(manifests: Sequence[Manifest]) -> Iterator[str]:
    """What serves and has several pods loses one at a time."""
    budgets = [one["spec"]["selector"]["matchLabels"] for one in of_kind(manifests, "PodDisruptionBudget")]
    for one in of_kind(manifests, "Deployment", "StatefulSet"):
        labels = one["spec"]["template"]["metadata"]["labels"]
        many = one["kind"] == "Deployment" or one["spec"].get("replicas", 1) > 1
        if many and not any(budget.items() <= labels.items() for budget in budgets):
            yield f"{one['kind']}/{one['metadata']['name']}: no PodDisruptionBudget"


def closed(manifests: Sequence[Manifest]) -> Iterator[str]:
    """All traffic is denied but what a NetworkPolicy lists; each port of a Service is let in to its pods."""
    policies = list(of_kind(manifests, "NetworkPolicy"))
    denied = {"podSelector": {}, "policyTypes": ["Ingress", "Egress"]}
    if not any(policy["spec"] == denied for policy in policies):
        yield "no NetworkPolicy denies everything first"
    for policy in policies:
        for rule in policy["spec"].get("ingress", ()):
            if not rule.get("from"):
                yield f"NetworkPolicy/{policy['metadata']['name']}: lets anybody in"
    for service in of_kind(manifests, "Service"):
        selector = service["spec"].get("selector", {})
        for port in service["spec"]["ports"]:
            number = _number(manifests, selector, port)
            if port["name"] != "health" and not _let_in(policies, selector, number):
                yield f"Service/{service['metadata']['name']}: no NetworkPolicy lets anybody to port {number}"


def _number(manifests: Sequence[Manifest], selector: Mapping[str, str], port: Manifest) -> Any:
    target = port.get("targetPort", port["port"])
    for _, _, template in pods(manifests):
        if selector.items() <= template["metadata"]["labels"].items():
            for container in template["spec"]["containers"]:
                for listed in container.get("ports", ()):
                    if listed["name"] == target:
                        return listed["containerPort"]
    return target


def _let_in(policies: Sequence[Manifest], selector: Mapping[str, str], number: Any) -> bool:
    return any(
        (policy["spec"]["podSelector"].get("matchLabels") or {"": ""}).items() <= selector.items()
        and any(port["port"] == number for port in rule.get("ports", ()))
        for policy in policies
        for rule in policy["spec"].get("ingress", ())
    )


def pinned(manifests: Sequence[Manifest]) -> Iterator[str]:
    """No image without a version; those of an overlay that uses digests all have one."""
    images = list(_images(manifests))
    by_digest = any("@sha256:" in image for _, image in images)
    for name, image in images:
        tag = image.rpartition("/")[2].partition("@")[0].partition(":")[2]
        if "@sha256:" in image:
            continue
        if tag in {"", "latest"}:
            yield f"{name}: {image} names no version"
        elif by_digest:
            yield f"{name}: {image} has no digest"


def unreleased(manifests: Sequence[Manifest]) -> Iterator[str]:
    """Digests that a release has yet to set."""
    for name, image in _images(manifests):
        if _ZEROS in image:
            yield f"{name}: {image} is not released"


def _images(manifests: Sequence[Manifest]) -> Iterator[tuple[str, str]]:
    for name, _, container in containers(manifests):
        yield name, container["image"]
    for one in manifests:
        name = f"{one['kind']}/{one['metadata']['name']}"
        if one["kind"] == "Milvus":
            yield name, one["spec"]["components"]["image"]
        elif one["kind"] == "Cluster":
            yield name, one["spec"]["imageName"]
        elif one["kind"] in _UNTAGGED:
            for part in ("graphd", "metad", "storaged"):
                if one["spec"][part].get("version") in {None, "latest"}:
                    yield f"{name} {part}", f"{one['spec'][part]['image']}:latest"


def known(manifests: Sequence[Manifest]) -> Iterator[str]:
    """Each variable of ours is a setting that a process reads."""
    settings = {setting.name for _, model in PROCESSES for setting in settings_of(model)}
    for where, name in _variables(manifests):
        if name.startswith(SETTINGS) and name not in settings:
            yield f"{where}: {name} is no setting"


def _variables(manifests: Sequence[Manifest]) -> Iterator[tuple[str, str]]:
    for name, _, container in containers(manifests):
        yield from ((name, one["name"]) for one in container.get("env", ()))
    for one in of_kind(manifests, "ConfigMap"):
        yield from ((f"ConfigMap/{one['metadata']['name']}", name) for name in one["data"])
    for one in of_kind(manifests, "ExternalSecret"):
        yield from (
            (f"ExternalSecret/{one['metadata']['name']}", it["secretKey"]) for it in one["spec"]["data"]
        )


def referenced(manifests: Sequence[Manifest]) -> Iterator[str]:
    """Each secret that is fetched is used, and each that is used is fetched, where an overlay fetches any."""
    fetched = {
        (one["spec"]["target"]["name"], item["secretKey"])
        for one in of_kind(manifests, "ExternalSecret")
        for item in one["spec"]["data"]
    }
    if not fetched:
        return
    whole, single = set(_whole_secrets(manifests)), set(_single_keys(manifests))
    for secret, key in sorted(fetched):
        if secret not in whole and (secret, key) not in single:
            yield f"Secret/{secret}: nothing reads {key}"
    for secret, key in sorted(single - fetched):
        yield f"Secret/{secret}: {key} is read, and nothing fetches it"
    for secret in sorted(whole - {secret for secret, _ in fetched}):
        yield f"Secret/{secret}: is read, and nothing fetches it"


def _whole_secrets(manifests: Sequence[Manifest]) -> Iterator[str]:
    for _, _, template in pods(manifests):
        for volume in template["spec"].get("volumes", ()):
            if "secret" in volume:
                yield volume["secret"]["secretName"]
    for _, _, container in containers(manifests):
        yield from (one["secretRef"]["name"] for one in container.get("envFrom", ()) if "secretRef" in one)
    for one in of_kind(manifests, "Cluster"):
        yield one["spec"]["bootstrap"]["initdb"]["secret"]["name"]
        yield from (role["passwordSecret"]["name"] for role in one["spec"]["managed"]["roles"])


def _single_keys(manifests: Sequence[Manifest]) -> Iterator[tuple[str, str]]:
    def sources() -> Iterator[Manifest]:
        for _, _, container in containers(manifests):
            yield from (one["valueFrom"] for one in container.get("env", ()) if "valueFrom" in one)
        for one in of_kind(manifests, "RayService"):
            yield one["spec"]["rayClusterConfig"]["gcsFaultToleranceOptions"]["redisPassword"]["valueFrom"]

    for source in sources():
        if "secretKeyRef" in source:
            yield source["secretKeyRef"]["name"], source["secretKeyRef"]["key"]


def served(manifests: Sequence[Manifest]) -> Iterator[str]:
    """Ray Serve reads all of its config, and it is that of the code; its port is where calls are sent."""
    for one in of_kind(manifests, "RayService"):
        told = yaml.safe_load(one["spec"]["serveConfigV2"])
        try:
            checked(told)
        except (UnknownKeys, ValueError) as error:
            yield f"serveConfigV2: {error}"
        wanted = serve_config(RaySettings(ingress="haproxy", address="ray:6379"), host="0.0.0.0")  # noqa: S104
        if told != wanted:
            yield "serveConfigV2: is not what services/runtime/serve_config.py says"
        service = one["spec"]["serveService"]
        target = f"{service['metadata']['name']}:{told['grpc_options']['port']}"
        if _settings(manifests)["PALIMPSEST_SERVICES_TARGET"] != target:
            yield f"PALIMPSEST_SERVICES_TARGET is not {target}"
        if not any(port["name"] == "serve-grpc" for port in service["spec"]["ports"]):
            yield "RayService: no port named serve-grpc"


def one_name_each(manifests: Sequence[Manifest]) -> Iterator[str]:
    """A process that runs jobs comes back under its name; what has names at random runs none."""
    for name, kind, container in containers(manifests):
        env = {one["name"]: one for one in container.get("env", ())}
        if container.get("args", [])[:2] != ["palimpsest", "gateway"]:
            continue
        if env.get("PALIMPSEST_EXECUTOR_ID", {}).get("valueFrom", {}).get("fieldRef") is None:
            yield f"{name}: its executor has not the pod's name"
        if kind == "Deployment" and env["PALIMPSEST_WORKFLOW_CONCURRENCY"]["value"] != "0":
            yield f"{name}: runs jobs under a name that does not come back"


def _settings(manifests: Sequence[Manifest]) -> Mapping[str, str]:
    (found,) = (
        one["data"]
        for one in of_kind(manifests, "ConfigMap")
        if one["metadata"]["name"] == "palimpsest-settings"
    )
    return found  # type: ignore[no-any-return]  # of a manifest


POLICIES: Sequence[Policy] = (
    probed,
    limited,
    confined,
    drained,
    disrupted,
    closed,
    pinned,
    known,
    referenced,
    served,
    one_name_each,
)
