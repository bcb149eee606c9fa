"""The calls by which users decide, as the resolver service serves them."""

from palimpsest.internal.v1 import resolver_judging_pb2 as judging_pb
from services.domain.scope import Scope
from services.resolver.judging import Judging
from services.resolver.voicing import Voicing


class Deciding:
    """A part of the resolver service, which sets `_judging` and `_voicing`. Idempotent by commit id."""

    _judging: Judging
    _voicing: Voicing

    async def end_statement(
        self, scope: Scope, request: judging_pb.EndStatementRequest
    ) -> judging_pb.EndStatementResponse:
        """Raises StatementNotFound, ValidationFailed, Conflict."""
        return await self._judging.end(scope, request)

    async def deny_statement(
        self, scope: Scope, request: judging_pb.DenyStatementRequest
    ) -> judging_pb.DenyStatementResponse:
        """Raises StatementNotFound, ValidationFailed, Conflict."""
        return await self._judging.deny(scope, request)

    async def restore_statement(
        self, scope: Scope, request: judging_pb.RestoreStatementRequest
    ) -> judging_pb.RestoreStatementResponse:
        """Raises StatementNotFound, EndStated, Conflict."""
        return await self._judging.restore(scope, request)

    async def judge_pair(
        self, scope: Scope, request: judging_pb.JudgePairRequest
    ) -> judging_pb.JudgePairResponse:
        """Raises StatementNotFound, ValidationFailed, Conflict."""
        return await self._judging.judge(scope, request)

    async def end_voice_aspect(
        self, scope: Scope, request: judging_pb.EndVoiceAspectRequest
    ) -> judging_pb.EndVoiceAspectResponse:
        """Raises VoiceAspectNotFound, ValidationFailed, Conflict."""
        return await self._voicing.end(scope, request)

    async def restore_voice_aspect(
        self, scope: Scope, request: judging_pb.RestoreVoiceAspectRequest
    ) -> judging_pb.RestoreVoiceAspectResponse:
        """Raises VoiceAspectNotFound, Conflict."""
        return await self._voicing.restore(scope, request)
