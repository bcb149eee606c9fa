"""Serve's own configuration: options of each application, and the file that a cluster's operator reads.

Serve accepts misspelt keys and ignores them; here they are refused.
"""

import types
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any, Union, get_args, get_origin

from pydantic import BaseModel, ConfigDict

from services.runtime.names import ROUTED_BY_SCOPE, ServiceName
from services.runtime.ray_settings import RaySettings

if TYPE_CHECKING:
    from ray.serve.schema import ServeDeploySchema

BUILDER = "services.runtime.ray_applications:build"
SERVICERS = (
    "palimpsest.internal.v1.preprocessor_pb2_grpc.add_PreprocessorServiceServicer_to_server",
    "palimpsest.internal.v1.extractor_pb2_grpc.add_ExtractorServiceServicer_to_server",
    "palimpsest.internal.v1.classifier_pb2_grpc.add_ClassifierServiceServicer_to_server",
    "palimpsest.internal.v1.resolver_pb2_grpc.add_ResolverServiceServicer_to_server",
    "palimpsest.internal.v1.recall_pb2_grpc.add_RecallServiceServicer_to_server",
)
_BY_SESSION = {"request_router_class": "ray.serve.experimental.consistent_hash_router.ConsistentHashRouter"}


class UnknownKeys(ValueError):
    """A Serve config has keys that Serve does not know and would ignore."""


class BuildArguments(BaseModel):
    """Arguments of an application in a Serve config."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    service: ServiceName


def deployment_options(name: ServiceName, settings: RaySettings) -> dict[str, Any]:
    """What `serve.deployment` is told of a service; also the deployment's part of a Serve config."""
    scale = settings.scale_of(name)
    options: dict[str, Any] = {
        "name": name.value,
        "max_ongoing_requests": scale.max_ongoing_requests,
        "graceful_shutdown_timeout_s": scale.graceful_shutdown_timeout_seconds,
        "health_check_period_s": 5,
        "health_check_timeout_s": 30,
        "ray_actor_options": {"num_cpus": scale.cpus},
        "autoscaling_config": {
            "min_replicas": scale.min_replicas,
            "max_replicas": scale.max_replicas,
            "target_ongoing_requests": scale.target_ongoing_requests,
            "upscale_delay_s": scale.upscale_delay_seconds,
            "downscale_delay_s": scale.downscale_delay_seconds,
            "look_back_period_s": scale.look_back_seconds,
        },
    }
    # HAProxy is told to balance by itself, and Serve then refuses a router of ours.
    if name in ROUTED_BY_SCOPE and settings.ingress == "proxy":
        options["request_router_config"] = dict(_BY_SESSION)
    return options


def serve_config(settings: RaySettings, host: str = "127.0.0.1", port: int = 9000) -> dict[str, Any]:
    """The five applications as `serveConfigV2` of a RayService, or a file for `serve deploy`."""
    return {
        "proxy_location": "EveryNode",
        "http_options": {"host": host, "port": 8000},
        "grpc_options": {
            "port": port,
            "grpc_servicer_functions": list(SERVICERS),
            "enable_reflection": False,
        },
        "applications": [
            {
                "name": name.value,
                "route_prefix": f"/{name.value}",
                "import_path": BUILDER,
                "args": {"service": name.value},
                "deployments": [deployment_options(name, settings)],
            }
            for name in ServiceName
        ],
    }


def checked(config: Mapping[str, Any]) -> "ServeDeploySchema":
    """A config that Serve reads whole. Raises UnknownKeys with every path, ValueError for bad values."""
    from ray.serve.schema import ServeDeploySchema  # Serve takes a second to import

    unknown = sorted(_unknown(ServeDeploySchema, config, ""))
    if unknown:
        raise UnknownKeys(", ".join(unknown))
    return ServeDeploySchema.model_validate(config)


def _unknown(model: type[BaseModel], value: Mapping[str, Any], path: str) -> Iterator[str]:
    fields = {field.alias or name: field.annotation for name, field in model.model_fields.items()}
    fields |= {name: field.annotation for name, field in model.model_fields.items()}
    for key, inner in value.items():
        here = f"{path}.{key}" if path else str(key)
        if key not in fields:
            yield here
        else:
            yield from _unknown_in(fields[key], inner, here)


def _unknown_in(annotation: Any, value: object, path: str) -> Iterator[str]:
    """Looks into what models lie under an annotation; `Dict` beside a model does not excuse its keys."""
    model = next(_models(annotation), None)
    if model is None:
        return
    if isinstance(value, Mapping):
        yield from _unknown(model, value, path)
    elif isinstance(value, list):
        for index, item in enumerate(value):
            yield from _unknown_in(annotation, item, f"{path}[{index}]")


def _models(annotation: Any) -> Iterator[type[BaseModel]]:
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        yield annotation
    elif get_origin(annotation) in (Union, types.UnionType, list):
        for part in get_args(annotation):
            yield from _models(part)
