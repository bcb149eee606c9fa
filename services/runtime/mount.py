"""The grpc.aio adapter: mounts the front of a service on a server by its descriptor."""

from collections.abc import AsyncIterator

import grpc
import grpc.aio
from google.protobuf.descriptor import MethodDescriptor, ServiceDescriptor
from google.protobuf.message import Message
from google.protobuf.message_factory import GetMessageClass

from services.runtime.front import Front, method_name
from services.runtime.status import Rendered

Context = grpc.aio.ServicerContext[Message, Message]


def mount(server: grpc.aio.Server, descriptor: ServiceDescriptor, front: Front) -> None:
    """Serves every RPC of `descriptor`. AttributeError if the service lacks a method for one."""
    for rpc in descriptor.methods:
        getattr(front.service, method_name(rpc.name))
    handlers = {rpc.name: _handler(rpc, front) for rpc in descriptor.methods}
    server.add_generic_rpc_handlers([grpc.method_handlers_generic_handler(descriptor.full_name, handlers)])


def _handler(rpc: MethodDescriptor, front: Front) -> "grpc.RpcMethodHandler[Message, Message]":
    assert not rpc.client_streaming, "no internal RPC takes a stream"
    request_of = GetMessageClass(rpc.input_type).FromString
    bytes_of = GetMessageClass(rpc.output_type).SerializeToString

    async def unary(request: Message, context: Context) -> Message:
        answer = await front.answer(rpc.name, request, tuple(context.invocation_metadata() or ()))
        if isinstance(answer, Rendered):
            await context.abort(answer.code, answer.details, answer.trailers)
        return answer

    async def streaming(request: Message, context: Context) -> AsyncIterator[Message]:
        async for answer in front.stream(rpc.name, request, tuple(context.invocation_metadata() or ())):
            if isinstance(answer, Rendered):
                await context.abort(answer.code, answer.details, answer.trailers)
            yield answer

    if rpc.server_streaming:
        return grpc.unary_stream_rpc_method_handler(
            streaming, request_deserializer=request_of, response_serializer=bytes_of
        )
    return grpc.unary_unary_rpc_method_handler(
        unary, request_deserializer=request_of, response_serializer=bytes_of
    )
