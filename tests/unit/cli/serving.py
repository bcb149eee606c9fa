"""A server that answers by script, on loopback; it keeps what it was asked."""

from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

import grpc
from google.protobuf.any_pb2 import Any as AnyMessage
from google.protobuf.descriptor import MethodDescriptor
from google.protobuf.message import Message
from google.protobuf.message_factory import GetMessageClass
from google.rpc import error_details_pb2, status_pb2

from gateway.rpcs import SERVICES

_CODES = {code.value[0]: code for code in grpc.StatusCode}

Step = Message | Sequence[Message]
"""What one call gets: a message, an error as a rich status, or for a stream several of them."""


def refusal(code: grpc.StatusCode, reason: str, message: str = "no", *details: Message) -> status_pb2.Status:
    """A rich status as the gateway sends it."""
    status = status_pb2.Status(code=code.value[0], message=message)
    for detail in (error_details_pb2.ErrorInfo(reason=reason, domain="palimpsest"), *details):
        packed = AnyMessage()
        packed.Pack(detail)
        status.details.append(packed)
    return status


@dataclass
class Scripted:
    """Answers each RPC, by its name, with the steps given for it, in order; the last one stays."""

    target: str = ""
    script: dict[str, list[Step]] = field(default_factory=dict)
    asked: list[Message] = field(default_factory=list)
    keys: list[str] = field(default_factory=list)

    def answers(self, rpc: str, *steps: Step) -> None:
        self.script[rpc] = list(steps)

    @property
    def last(self) -> Any:
        """The newest request."""
        return self.asked[-1]

    def next_step(self, rpc: str, request: Message, context: grpc.ServicerContext) -> list[Message]:
        self.asked.append(request)
        metadata = dict(context.invocation_metadata())
        self.keys.append(str(metadata.get("authorization", "")).removeprefix("Bearer "))
        steps = self.script[rpc]
        step = steps.pop(0) if len(steps) > 1 else steps[0]
        return list(step) if isinstance(step, Sequence) else [step]


@contextmanager
def serving() -> Iterator[Scripted]:
    """A running server without a script yet."""
    scripted = Scripted()
    with ThreadPoolExecutor(4) as threads:
        server = grpc.server(threads)
        for service in SERVICES:
            handlers = {method.name: _handler(scripted, method) for method in service.methods}
            server.add_generic_rpc_handlers(
                [grpc.method_handlers_generic_handler(service.full_name, handlers)]
            )
        scripted.target = f"127.0.0.1:{server.add_insecure_port('127.0.0.1:0')}"
        server.start()
        try:
            yield scripted
        finally:
            server.stop(grace=None).wait()


def _handler(scripted: Scripted, method: MethodDescriptor) -> "grpc.RpcMethodHandler[Any, Any]":
    def stream(request: Message, context: grpc.ServicerContext) -> Iterator[Message]:
        for answer in scripted.next_step(method.name, request, context):
            if isinstance(answer, status_pb2.Status):
                context.set_trailing_metadata((("grpc-status-details-bin", answer.SerializeToString()),))
                context.abort(_CODES[answer.code], answer.message)
            yield answer

    def unary(request: Message, context: grpc.ServicerContext) -> Message:
        return next(stream(request, context))

    make: Callable[..., grpc.RpcMethodHandler[Any, Any]] = (
        grpc.unary_stream_rpc_method_handler
        if method.server_streaming
        else grpc.unary_unary_rpc_method_handler
    )
    return make(
        stream if method.server_streaming else unary,
        request_deserializer=GetMessageClass(method.input_type).FromString,
        response_serializer=GetMessageClass(method.output_type).SerializeToString,
    )
