"""The grpc.aio adapter: mounts a transport-free service class on a server by its descriptor.

A service class has one coroutine for each RPC, named in snake case (`ReadEpisode` is `read_episode`; a
keyword gets an underscore: `Assert` is `assert_`), from a scope and a request message to a response message.
"""

import keyword
import re
from collections.abc import Awaitable, Callable

import grpc
import grpc.aio
import structlog
from google.protobuf.descriptor import MethodDescriptor, ServiceDescriptor
from google.protobuf.message import Message
from google.protobuf.message_factory import GetMessageClass

from services.domain.errors import InternalFailure, Unauthenticated
from services.domain.scope import Scope
from services.runtime.assertion import METADATA_KEY, Signer
from services.runtime.status import error_of, render

log = structlog.get_logger(__name__)

Method = Callable[[Scope, Message], Awaitable[Message]]


def method_name(rpc: str) -> str:
    """`ReadEpisode` → `read_episode`."""
    name = re.sub(r"(?<!^)(?=[A-Z])", "_", rpc).lower()
    return f"{name}_" if keyword.iskeyword(name) else name


def mount(server: grpc.aio.Server, descriptor: ServiceDescriptor, service: object, signer: Signer) -> None:
    """Serves every RPC of `descriptor` by the methods of `service`. AttributeError if one is missing."""
    handlers = {rpc.name: _handler(rpc, service, signer) for rpc in descriptor.methods}
    server.add_generic_rpc_handlers([grpc.method_handlers_generic_handler(descriptor.full_name, handlers)])


def _handler(
    rpc: MethodDescriptor, service: object, signer: Signer
) -> "grpc.RpcMethodHandler[Message, Message]":
    assert not rpc.client_streaming, "no internal RPC takes a stream"
    assert not rpc.server_streaming, "no internal RPC answers a stream yet"
    method: Method = getattr(service, method_name(rpc.name))

    async def handle(request: Message, context: grpc.aio.ServicerContext[Message, Message]) -> Message:
        try:
            return await method(_scope(context, signer), request)
        except Exception as exception:
            error = error_of(exception)
            if isinstance(error, InternalFailure):
                log.exception("internal failure", rpc=rpc.full_name)
            rendered = render(exception)
            await context.abort(rendered.code, rendered.details, rendered.trailers)

    return grpc.unary_unary_rpc_method_handler(
        handle,
        request_deserializer=GetMessageClass(rpc.input_type).FromString,
        response_serializer=GetMessageClass(rpc.output_type).SerializeToString,
    )


def _scope(context: grpc.aio.ServicerContext[Message, Message], signer: Signer) -> Scope:
    for key, value in context.invocation_metadata() or ():
        if key == METADATA_KEY:
            return signer.verify(value if isinstance(value, str) else value.decode("ascii", "replace"))
    raise Unauthenticated
