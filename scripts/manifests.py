"""Checks of the Kubernetes manifests, without a cluster: `python -m scripts.manifests [--release]`.

Each overlay is rendered; Kubernetes' own kinds are validated strictly, the operators' against their schemas
with unknown fields refused, the rest against manifest_schemas.yaml; then come manifest_policies.py.
"""

import json
import subprocess
import sys
from collections.abc import Iterator, Mapping, Sequence
from copy import deepcopy
from functools import cache
from pathlib import Path
from typing import Any

import jsonschema
import kubernetes_validate  # type: ignore[import-untyped]  # it has no types
import yaml

from scripts.manifest_policies import POLICIES, unreleased

Manifest = dict[str, Any]

ROOT = Path(__file__).parents[1]
OVERLAYS = ("dev", "prod")
VERSION = "1.37"
OWN_SCHEMAS = Path(__file__).with_name("manifest_schemas.yaml")
"""Of kinds whose operators' schemas are not at hand: the fields that the manifests use, and no others."""


def rendered(overlay: str) -> list[Manifest]:
    """What `kubectl apply -k k8s/overlays/…` would send."""
    kubectl = Path(sys.executable).with_name("kubectl")
    overlay_path = ROOT / "k8s" / "overlays" / overlay
    told = subprocess.run([kubectl, "kustomize", overlay_path], check=True, capture_output=True, text=True)
    return [manifest for manifest in yaml.safe_load_all(told.stdout) if manifest]


def problems(manifests: Sequence[Manifest], operators: Path) -> list[str]:
    """All that is wrong with rendered manifests, a line each. `operators`: the folder of their schemas."""
    return [*invalid(manifests, operators), *unruly(manifests)]


def invalid(manifests: Sequence[Manifest], operators: Path) -> list[str]:
    """What their schemas refuse."""
    schemas = _schemas(operators)
    return [f"{_name(one)}: {told}" for one in manifests for told in _invalid(one, schemas)]


def unruly(manifests: Sequence[Manifest]) -> list[str]:
    """What our policies refuse, of all manifests of an overlay."""
    return [told for policy in POLICIES for told in policy(manifests)]


def _invalid(manifest: Manifest, schemas: Mapping[tuple[str, str], Any]) -> Iterator[str]:
    kind = manifest["apiVersion"], manifest["kind"]
    if kind in schemas:
        for error in jsonschema.Draft202012Validator(schemas[kind]).iter_errors(manifest):
            yield f"{'.'.join(map(str, error.absolute_path))}: {error.message}"
        return
    try:
        kubernetes_validate.validate(manifest, VERSION, strict=True)
    except kubernetes_validate.ValidationError as error:
        yield f"{'.'.join(map(str, error.path))}: {error.message}"
    except kubernetes_validate.SchemaNotFoundError:
        yield f"no schema of {manifest['kind']} in {manifest['apiVersion']}"


@cache
def _schemas(operators: Path) -> dict[tuple[str, str], Any]:
    found = {}
    for file in sorted(operators.glob("*.json")):
        told = json.loads(file.read_text("utf-8"))
        found[told["apiVersion"], told["kind"]] = _strict(told["openAPIV3Schema"])
    for told in yaml.safe_load(OWN_SCHEMAS.read_text("utf-8")):
        found[told["apiVersion"], told["kind"]] = _strict(told["schema"])
    return found


def _strict(schema: Any) -> Any:
    """An OpenAPI schema as a JSON schema that refuses what it does not name."""
    if isinstance(schema, list):
        return [_strict(one) for one in schema]
    if not isinstance(schema, dict):
        return schema
    strict = {key: _strict(value) for key, value in deepcopy(schema).items()}
    if isinstance(schema.get("properties"), dict):
        if not schema.get("x-kubernetes-preserve-unknown-fields") and "additionalProperties" not in schema:
            strict["additionalProperties"] = False
        if {"apiVersion", "kind", "metadata"} <= set(schema["properties"]):
            strict["properties"]["metadata"] = {"type": "object"}
    if schema.get("x-kubernetes-int-or-string"):
        strict.pop("anyOf", None)
        strict["type"] = ["integer", "string"]
    if schema.get("nullable") and isinstance(strict.get("type"), str):
        strict["type"] = [strict["type"], "null"]
    return strict


def _name(manifest: Manifest) -> str:
    return f"{manifest['kind']}/{manifest['metadata']['name']}"


def main() -> int:
    """Prints what is wrong; the exit code tells whether anything is."""
    operators = ROOT.parent / "shared" / "k8s-schemas"
    if not operators.is_dir():
        print("no schemas of the operators beside the repository: shared/k8s-schemas", file=sys.stderr)
        return 2
    found = []
    for overlay in OVERLAYS:
        manifests = rendered(overlay)
        told = [*problems(manifests, operators), *(unreleased(manifests) if "--release" in sys.argv else ())]
        found += [f"{overlay}: {line}" for line in told]
    for line in found:
        print(line)
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
