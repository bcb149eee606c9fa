"""The Ray Serve adapter: from the front of a service to a class whose replicas serve its RPCs.

Serve hands each call the request and a context that travels with the answer. Errors are reported by setting
the context and returning: raising would lose the trailers, and send the exception's text to the caller.
"""

from collections.abc import AsyncIterator, Awaitable, Callable, Iterable
from contextlib import AsyncExitStack
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import structlog
from google.protobuf.descriptor import MethodDescriptor, ServiceDescriptor
from google.protobuf.message import Message
from google.protobuf.message_factory import GetMessageClass

from services.domain.errors import ApplicationUnknown
from services.runtime import telemetry
from services.runtime.assertion import Signer
from services.runtime.catalogue import open_service
from services.runtime.clock import clock
from services.runtime.front import Front
from services.runtime.handover import taken_over
from services.runtime.heap import settle
from services.runtime.logs import LOGS, log_to
from services.runtime.names import ServiceName
from services.runtime.status import Rendered, render

if TYPE_CHECKING:
    from ray.serve.grpc_util import RayServegRPCContext

log = structlog.get_logger(__name__)

Opener = Callable[[AsyncExitStack], Awaitable[Front]]
"""Opens what a replica serves, in the replica; the stack closes it. Must be picklable."""


@dataclass(frozen=True, slots=True)
class OpenService:
    """Opens one of the five, on the settings of a handover (or of the environment when there is none)."""

    name: ServiceName
    handover: str = ""

    async def __call__(self, stack: AsyncExitStack) -> Front:
        settings = taken_over(self.handover)
        log_to(settings.data_dir / LOGS if self.handover else None, f"{self.name}.log")
        # One of many on its node: nobody could ask each at a port of its own.
        told = telemetry.start(settings.telemetry.model_copy(update={"metrics_port": None}), self.name)
        stack.callback(told.close)
        secret, other = settings.assertion_secret, settings.assertion_secret_other
        signer = Signer(secret.get_secret_value().encode(), clock, other.get_secret_value().encode())
        return Front(self.name, await open_service(self.name, settings, stack, clock), signer)


class Replica:
    """What all replicas do but serve RPCs: open their own resources, live, close them."""

    _front: Front
    _stack: AsyncExitStack

    async def _open(self, opener: Opener) -> None:
        self._stack = AsyncExitStack()
        try:
            self._front = await opener(self._stack)
        except BaseException:
            await self._stack.aclose()
            raise
        settle()
        log.info("replica up", service=self._front.application)

    async def _close(self) -> None:
        log.info("replica down", service=self._front.application)
        await self._stack.aclose()

    async def check_health(self) -> None:
        """Healthy while its event loop gets here: a store that is down is no reason to be replaced."""


def replica_class(
    name: str, module: str, descriptor: ServiceDescriptor, others: Iterable[ServiceDescriptor] = ()
) -> type:
    """A class for Serve with a method for each RPC. It must be found in `module` under `name`.

    RPCs of `others`, which the ingress lets through to any application, are refused here: for a method that
    is missing Serve would tell the caller all those that are not.
    """
    foreign = {rpc.name: _refusing(rpc) for other in others for rpc in other.methods}
    methods = {
        rpc.name: _streaming(rpc) if rpc.server_streaming else _unary(rpc) for rpc in descriptor.methods
    }
    # Serve awaits both: resources are opened before a replica takes calls, and closed when it has drained.
    life = {"__init__": Replica._open, "__del__": Replica._close, "__module__": module}
    return type(name, (Replica,), foreign | methods | life)


def _unary(rpc: MethodDescriptor) -> object:
    assert not rpc.client_streaming, "no internal RPC takes a stream"
    method, nothing = rpc.name, GetMessageClass(rpc.output_type)

    async def unary(self: Replica, request: Message, grpc_context: "RayServegRPCContext") -> Message:
        answer = await self._front.answer(method, request, grpc_context.invocation_metadata())
        return _reported(answer, grpc_context) or nothing()

    return unary


def _streaming(rpc: MethodDescriptor) -> object:
    assert not rpc.client_streaming, "no internal RPC takes a stream"
    method, nothing = rpc.name, GetMessageClass(rpc.output_type)

    async def streaming(
        self: Replica, request: Message, grpc_context: "RayServegRPCContext"
    ) -> AsyncIterator[Message]:
        async for answer in self._front.stream(method, request, grpc_context.invocation_metadata()):
            yield _reported(answer, grpc_context) or nothing()

    return streaming


def _refusing(rpc: MethodDescriptor) -> object:
    nothing = GetMessageClass(rpc.output_type)

    async def refusing(self: Replica, request: Message, grpc_context: "RayServegRPCContext") -> Message:
        del self, request
        return _reported(render(ApplicationUnknown()), grpc_context) or nothing()

    return refusing


def _reported(answer: Message | Rendered, context: Any) -> Message | None:
    """The message, or None when it was a status, which is then set."""
    if not isinstance(answer, Rendered):
        return answer
    context.set_code(answer.code)
    context.set_details(answer.details)
    context.set_trailing_metadata(list(answer.trailers))
    return None
