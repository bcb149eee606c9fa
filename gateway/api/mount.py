"""Mounts servicers by their descriptors; an RPC that no servicer has answers NOT_IMPLEMENTED, by itself."""

from collections.abc import Mapping
from typing import Any

import grpc
import grpc.aio
from google.protobuf.descriptor import MethodDescriptor
from google.protobuf.message_factory import GetMessageClass

from gateway.errors import NotImplementedYet
from gateway.rpcs import SERVICES, path

Servicers = Mapping[str, object]
"""A servicer by the name of its service, such as `GraphService`."""


def mount(server: grpc.aio.Server, servicers: Servicers) -> None:
    """Serves the whole public API on a server. Raises LookupError for a service that there isn't."""
    unknown = servicers.keys() - {service.name for service in SERVICES}
    if unknown:
        raise LookupError(f"no such services: {sorted(unknown)}")
    for service in SERVICES:
        servicer = servicers.get(service.name)
        handlers = {method.name: _handler(method, servicer) for method in service.methods}
        server.add_generic_rpc_handlers([grpc.method_handlers_generic_handler(service.full_name, handlers)])


def served(servicers: Servicers) -> frozenset[str]:
    """The paths of the RPCs that servicers have."""
    return frozenset(
        path(method)
        for service in SERVICES
        for method in service.methods
        if _has(servicers.get(service.name), method.name)
    )


def unserved(servicers: Servicers) -> frozenset[str]:
    """The paths of the RPCs that answer NOT_IMPLEMENTED."""
    everything = {path(method) for service in SERVICES for method in service.methods}
    return frozenset(everything - served(servicers))


def _has(servicer: object | None, name: str) -> bool:
    # The generated base class has every method of its service, only to refuse it.
    owner = next((kind for kind in type(servicer).__mro__ if name in vars(kind)), None)
    return owner is not None and not owner.__module__.endswith("_pb2_grpc")


def _handler(method: MethodDescriptor, servicer: object | None) -> Any:
    behaviour = getattr(servicer, method.name) if _has(servicer, method.name) else _refusing(method)
    shape = {
        (False, False): grpc.unary_unary_rpc_method_handler,
        (False, True): grpc.unary_stream_rpc_method_handler,
        (True, False): grpc.stream_unary_rpc_method_handler,
        (True, True): grpc.stream_stream_rpc_method_handler,
    }[method.client_streaming, method.server_streaming]
    return shape(
        behaviour,
        request_deserializer=GetMessageClass(method.input_type).FromString,
        response_serializer=GetMessageClass(method.output_type).SerializeToString,
    )


def _refusing(method: MethodDescriptor) -> Any:
    async def refuse(_request: object, _context: object) -> None:
        raise NotImplementedYet(f"{method.containing_service.name}.{method.name}")

    return refuse
