"""Serve's configuration: whole, and refused when Serve would ignore a part of it."""

import copy
import importlib
from typing import Any

import pytest
from pydantic import ValidationError

from services.runtime.names import ServiceName
from services.runtime.ray_settings import RaySettings, ServiceScale
from services.runtime.serve_config import BUILDER, SERVICERS, UnknownKeys, checked, serve_config

CLUSTER = RaySettings(address="ray-head.example:6379")


def changed(path: str, value: object) -> dict[str, Any]:
    """A sound config with one value more or other."""
    config = copy.deepcopy(serve_config(CLUSTER))
    *parents, last = path.split(".")
    place: Any = config
    for name in parents:
        place = place[int(name) if name.isdigit() else name]
    place[last] = value
    return config


def test_it_has_the_five_applications_each_with_its_scaling() -> None:
    read = checked(serve_config(CLUSTER))
    assert [application.name for application in read.applications] == list(ServiceName)
    scaling = {
        application.name: dict(application.deployments[0].autoscaling_config)  # type: ignore[arg-type]
        for application in read.applications
    }
    assert scaling["recall"]["min_replicas"] == 2
    assert scaling["extractor"]["target_ongoing_requests"] == pytest.approx(
        0.6 * ServiceScale.of(ServiceName.EXTRACTOR).max_ongoing_requests
    )


@pytest.mark.parametrize(
    "path",
    [
        "aplications",
        "grpc_options.prot",
        "http_options.hots",
        "applications.0.import_paht",
        "applications.1.deployments.0.max_ongoing_request",
        "applications.1.deployments.0.autoscaling_config.max_replica",
        "applications.4.deployments.0.ray_actor_options.num_cpu",
        "applications.4.deployments.0.request_router_config.request_router_clas",
    ],
)
def test_a_misspelt_key_is_refused_and_named(path: str) -> None:
    with pytest.raises(UnknownKeys) as refused:
        checked(changed(path, 1))
    assert path.rpartition(".")[2] in str(refused.value)


def test_a_bad_value_is_refused() -> None:
    with pytest.raises(ValueError, match="max_ongoing_requests"):
        checked(changed("applications.0.deployments.0.max_ongoing_requests", 0))


def test_what_it_names_can_be_imported() -> None:
    module, _, builder = BUILDER.partition(":")
    assert callable(getattr(importlib.import_module(module), builder))
    for servicer in SERVICERS:
        module, _, name = servicer.rpartition(".")
        assert callable(getattr(importlib.import_module(module), name))


def test_haproxy_balances_by_itself() -> None:
    behind = serve_config(RaySettings(address="ray-head.example:6379", ingress="haproxy"))
    assert "request_router_config" not in str(behind)
    assert "request_router_config" in str(serve_config(CLUSTER))


@pytest.mark.parametrize("changes", [{"min_replicas": 9, "max_replicas": 8}, {"target_ongoing_requests": 99}])
def test_scaling_that_can_not_be_is_refused(changes: dict[str, int]) -> None:
    with pytest.raises(ValidationError):
        ServiceScale(**(ServiceScale.of(ServiceName.RECALL).model_dump() | changes))
