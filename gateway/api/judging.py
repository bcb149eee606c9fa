"""The calls of MemoryService by which users decide about facts: from a call to a command and back."""

from typing import Any

import grpc.aio

from gateway.commands.judging import Judging
from gateway.interceptors.call import current_caller
from gateway.policy import TextPolicy
from palimpsest.v1 import memory_statements_pb2, memory_voice_pb2

Context = grpc.aio.ServicerContext[Any, Any]


class JudgingServicer:
    """EndStatement, DenyStatement, RestoreStatement, JudgePair, EndVoiceAspect, RestoreVoiceAspect.

    A part of MemoryService, whose servicer sets `_judging` and `_policy`.
    """

    _judging: Judging
    _policy: TextPolicy

    async def EndStatement(
        self, request: memory_statements_pb2.EndStatementRequest, context: Context
    ) -> memory_statements_pb2.EndStatementResponse:
        caller = current_caller()
        scope = caller.scope(request.graph_id)
        return await self._judging.end(scope, await self._policy(scope, request), caller.actor)

    async def DenyStatement(
        self, request: memory_statements_pb2.DenyStatementRequest, context: Context
    ) -> memory_statements_pb2.DenyStatementResponse:
        caller = current_caller()
        scope = caller.scope(request.graph_id)
        return await self._judging.deny(scope, await self._policy(scope, request), caller.actor)

    async def RestoreStatement(
        self, request: memory_statements_pb2.RestoreStatementRequest, context: Context
    ) -> memory_statements_pb2.RestoreStatementResponse:
        caller = current_caller()
        scope = caller.scope(request.graph_id)
        return await self._judging.restore(scope, await self._policy(scope, request), caller.actor)

    async def JudgePair(
        self, request: memory_statements_pb2.JudgePairRequest, context: Context
    ) -> memory_statements_pb2.JudgePairResponse:
        caller = current_caller()
        scope = caller.scope(request.graph_id)
        return await self._judging.judge(scope, await self._policy(scope, request), caller.actor)

    async def EndVoiceAspect(
        self, request: memory_voice_pb2.EndVoiceAspectRequest, context: Context
    ) -> memory_voice_pb2.EndVoiceAspectResponse:
        caller = current_caller()
        scope = caller.scope(request.graph_id)
        return await self._judging.end_voice(scope, await self._policy(scope, request), caller.actor)

    async def RestoreVoiceAspect(
        self, request: memory_voice_pb2.RestoreVoiceAspectRequest, context: Context
    ) -> memory_voice_pb2.RestoreVoiceAspectResponse:
        caller = current_caller()
        scope = caller.scope(request.graph_id)
        return await self._judging.restore_voice(scope, await self._policy(scope, request), caller.actor)
