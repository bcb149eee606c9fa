"""The chain: one gRPC interceptor that leads each call through its steps, in order, and back."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import AbstractAsyncContextManager, AsyncExitStack, aclosing
from typing import Any, Protocol

import grpc
import grpc.aio

from gateway.interceptors.call import Call
from gateway.rpcs import RPCS


class Step(Protocol):
    """What happens around a call: before it, and after it however it ends.

    A step refuses a call by raising an error of the tree before the body. For calls that are not of the
    public API (health, reflection) `call.rpc` is None.
    """

    def around(self, call: Call) -> AbstractAsyncContextManager[None]: ...


async def finished(call: Call, handling: Awaitable[Any]) -> Any:
    """What a handler answers. One that is let finish goes on as `call.left` when the call is cancelled."""
    if not call.finishes:
        return await handling
    work = asyncio.ensure_future(handling)
    try:
        return await asyncio.shield(work)
    except asyncio.CancelledError:
        call.left = work
        raise


Handler = Any
"""grpc.RpcMethodHandler; its behaviours have four shapes, of which each handler has one."""


class Chain(grpc.aio.ServerInterceptor):
    """Runs every call through `steps`, the first outermost. Unary and streaming calls alike."""

    def __init__(self, steps: Sequence[Step]) -> None:
        self.steps = tuple(steps)

    async def intercept_service(
        self,
        continuation: Callable[[grpc.HandlerCallDetails], Awaitable[Handler]],
        handler_call_details: grpc.HandlerCallDetails,
    ) -> Handler:
        handler = await continuation(handler_call_details)
        method = handler_call_details.method
        if handler is None:
            return None
        coders = {
            "request_deserializer": handler.request_deserializer,
            "response_serializer": handler.response_serializer,
        }
        if not handler.request_streaming and not handler.response_streaming:
            return grpc.unary_unary_rpc_method_handler(self._answering(method, handler.unary_unary), **coders)
        if not handler.request_streaming:
            return grpc.unary_stream_rpc_method_handler(
                self._streaming(method, handler.unary_stream), **coders
            )
        if not handler.response_streaming:
            return grpc.stream_unary_rpc_method_handler(
                self._answering(method, handler.stream_unary), **coders
            )
        return grpc.stream_stream_rpc_method_handler(self._streaming(method, handler.stream_stream), **coders)

    def _answering(self, method: str, behaviour: Callable[..., Awaitable[Any]]) -> Any:
        async def answer(request: Any, context: "grpc.aio.ServicerContext[Any, Any]") -> Any:
            async with AsyncExitStack() as stack:
                call = Call(method, RPCS.get(method), context, request)
                await self._enter(stack, call)
                call.response = await finished(call, behaviour(request, context))
                return call.response

        return answer

    def _streaming(self, method: str, behaviour: Callable[..., AsyncIterator[Any]]) -> Any:
        # A coroutine that writes, not a generator: a cancelled one is unwound at once, in its own task.
        async def stream(request: Any, context: "grpc.aio.ServicerContext[Any, Any]") -> None:
            async with AsyncExitStack() as stack:
                await self._enter(stack, Call(method, RPCS.get(method), context, request))
                answers: Any = behaviour(request, context)
                if not hasattr(answers, "__aiter__"):
                    await answers
                    return
                async with aclosing(answers):
                    async for message in answers:
                        await context.write(message)

        return stream

    async def _enter(self, stack: AsyncExitStack, call: Call) -> None:
        for step in self.steps:
            await stack.enter_async_context(step.around(call))
