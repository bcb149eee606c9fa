"""What a user decides about facts and sentences: ends, denials, verdicts, and taking back what closed them.

Idempotent by request_id. What is kept for a repeated call are ids and the revision, no text: the answer is
read anew, as of that revision, so that what was deleted since is not told again.
"""

import asyncio
from collections.abc import Awaitable, Callable
from typing import Protocol, TypeVar

from google.protobuf.message import Message

from gateway.commands.reads import Reads
from gateway.convert.recall import voice_out
from gateway.convert.statements import verdict_kind_in
from gateway.convert.times import instant_of, precision_in
from gateway.ingest.background import Background
from gateway.services import Services
from gateway.store.graphs import Graphs
from gateway.store.requests import RequestName, Requests, fingerprint
from palimpsest.internal.v1 import recall_pb2, values_pb2
from palimpsest.internal.v1 import resolver_judging_pb2 as internal
from palimpsest.v1 import common_pb2, memory_statements_pb2, memory_voice_pb2
from services.domain.scope import Scope

Kept = TypeVar("Kept", bound=Message)


class Asking(Protocol):
    """A request that says why, and names itself."""

    @property
    def reason(self) -> str: ...

    @property
    def request_id(self) -> str: ...


class Judging:
    """EndStatement, DenyStatement, RestoreStatement, JudgePair, EndVoiceAspect, RestoreVoiceAspect.

    Each raises GraphNotFound, StatementNotFound or VoiceAspectNotFound, RequestIdReused, and what is said
    with it. They cost nothing.
    """

    def __init__(
        self,
        services: Services,
        graphs: Graphs,
        requests: Requests,
        background: Background,
        reads: Reads,
        seconds: float,
    ) -> None:
        """`seconds` is how long each call to a service may take."""
        self._services = services
        self._graphs = graphs
        self._requests = requests
        self._background = background
        self._reads = reads
        self._seconds = seconds

    async def end(
        self, scope: Scope, request: memory_statements_pb2.EndStatementRequest, actor: str
    ) -> memory_statements_pb2.EndStatementResponse:
        """Raises ValidationFailed for a time before it began."""
        asked = internal.EndStatementRequest(
            asker=_asker(request, actor),
            statement_id=request.statement_id,
            precision=precision_in(request.ended_at_precision),
        )
        if request.HasField("ended_at"):
            asked.at = instant_of(request.ended_at)

        async def work() -> internal.EndStatementResponse:
            method = self._services.resolver.EndStatement
            return await self._services.call(scope, method, asked, self._seconds)

        kept = await self._once(scope, request, request.request_id, work, internal.EndStatementResponse())
        read = await self._statement(scope, request.statement_id, kept.revision)
        return memory_statements_pb2.EndStatementResponse(
            statement=read.statement,
            end=next((end for end in read.ends if end.end_id == kept.record_id), None),
            revision=kept.revision,
        )

    async def deny(
        self, scope: Scope, request: memory_statements_pb2.DenyStatementRequest, actor: str
    ) -> memory_statements_pb2.DenyStatementResponse:
        """Raises ValidationFailed for an empty period."""
        asked = internal.DenyStatementRequest(asker=_asker(request, actor), statement_id=request.statement_id)
        if request.HasField("denied_from"):
            asked.start = instant_of(request.denied_from)
        if request.HasField("denied_until"):
            asked.until = instant_of(request.denied_until)

        async def work() -> internal.DenyStatementResponse:
            method = self._services.resolver.DenyStatement
            return await self._services.call(scope, method, asked, self._seconds)

        kept = await self._once(scope, request, request.request_id, work, internal.DenyStatementResponse())
        read = await self._statement(scope, request.statement_id, kept.revision)
        return memory_statements_pb2.DenyStatementResponse(
            statement=read.statement,
            denial=next((one for one in read.denials if one.denial_id == kept.record_id), None),
            revision=kept.revision,
        )

    async def restore(
        self, scope: Scope, request: memory_statements_pb2.RestoreStatementRequest, actor: str
    ) -> memory_statements_pb2.RestoreStatementResponse:
        """Nothing revoked and no verdict: it held already. Raises EndStated."""
        asked = internal.RestoreStatementRequest(
            asker=_asker(request, actor), statement_id=request.statement_id
        )

        async def work() -> internal.RestoreStatementResponse:
            method = self._services.resolver.RestoreStatement
            return await self._services.call(scope, method, asked, self._seconds)

        kept = await self._once(scope, request, request.request_id, work, internal.RestoreStatementResponse())
        read = await self._statement(scope, request.statement_id, kept.revision)
        recorded = set(kept.verdict_ids)
        return memory_statements_pb2.RestoreStatementResponse(
            statement=read.statement,
            revoked_record_ids=kept.revoked_record_ids,
            verdicts=[verdict for verdict in read.verdicts if verdict.verdict_id in recorded],
            revision=kept.revision,
        )

    async def judge(
        self, scope: Scope, request: memory_statements_pb2.JudgePairRequest, actor: str
    ) -> memory_statements_pb2.JudgePairResponse:
        """Raises ValidationFailed where the two have no thing in common, unless they are to be compatible."""
        asked = internal.JudgePairRequest(
            asker=_asker(request, actor),
            statement_id=request.statement_id,
            other_statement_id=request.other_statement_id,
            kind=verdict_kind_in(request.verdict),
        )

        async def work() -> internal.JudgePairResponse:
            method = self._services.resolver.JudgePair
            return await self._services.call(scope, method, asked, self._seconds)

        kept = await self._once(scope, request, request.request_id, work, internal.JudgePairResponse())
        one = await self._statement(scope, request.statement_id, kept.revision)
        other = await self._statement(scope, request.other_statement_id, kept.revision)
        return memory_statements_pb2.JudgePairResponse(
            verdict=next((each for each in one.verdicts if each.verdict_id == kept.verdict_id), None),
            statements=[one.statement, other.statement],
            revision=kept.revision,
        )

    async def end_voice(
        self, scope: Scope, request: memory_voice_pb2.EndVoiceAspectRequest, actor: str
    ) -> memory_voice_pb2.EndVoiceAspectResponse:
        """Raises ValidationFailed for a time before it was last said."""
        asked = internal.EndVoiceAspectRequest(asker=_asker(request, actor), voice_id=request.voice_aspect_id)
        if request.HasField("ended_at"):
            asked.at = instant_of(request.ended_at)

        async def work() -> internal.EndVoiceAspectResponse:
            method = self._services.resolver.EndVoiceAspect
            return await self._services.call(scope, method, asked, self._seconds)

        kept = await self._once(scope, request, request.request_id, work, internal.EndVoiceAspectResponse())
        voice = await self._voice(scope, request.voice_aspect_id, kept.revision)
        return memory_voice_pb2.EndVoiceAspectResponse(
            voice_aspect=voice_out(voice, scope.graph), revision=kept.revision
        )

    async def restore_voice(
        self, scope: Scope, request: memory_voice_pb2.RestoreVoiceAspectRequest, actor: str
    ) -> memory_voice_pb2.RestoreVoiceAspectResponse:
        """Where it was held already, the revision is the current one."""
        asked = internal.RestoreVoiceAspectRequest(
            asker=_asker(request, actor), voice_id=request.voice_aspect_id
        )

        async def work() -> internal.RestoreVoiceAspectResponse:
            method = self._services.resolver.RestoreVoiceAspect
            return await self._services.call(scope, method, asked, self._seconds)

        kept = await self._once(
            scope, request, request.request_id, work, internal.RestoreVoiceAspectResponse()
        )
        voice = await self._voice(scope, request.voice_aspect_id, kept.revision)
        return memory_voice_pb2.RestoreVoiceAspectResponse(
            voice_aspect=voice_out(voice, scope.graph), revision=kept.revision
        )

    async def _once(
        self,
        scope: Scope,
        request: Message,
        request_id: str,
        work: Callable[[], Awaitable[Kept]],
        kept: Kept,
    ) -> Kept:
        """Does `work` once for a request, and reads what was kept of it into `kept`."""
        await self._graphs.check(scope, writing=True)
        method = f"MemoryService.{request.DESCRIPTOR.name.removesuffix('Request')}"
        name = RequestName(scope.tenant, method, request_id, fingerprint(request), scope.graph)

        async def worked() -> bytes:
            return (await work()).SerializeToString()

        # The caller may leave; what was begun is carried out all the same.
        answer, _ = await asyncio.shield(self._background.start(self._requests.once(name, worked)))
        kept.ParseFromString(answer)
        return kept

    async def _statement(
        self, scope: Scope, statement_id: str, revision: int
    ) -> memory_statements_pb2.GetStatementResponse:
        asked = memory_statements_pb2.GetStatementRequest(
            graph_id=scope.graph,
            statement_id=statement_id,
            known_at=common_pb2.KnownAt(revision=revision),
            include_past_beliefs=True,
        )
        return await self._reads.statement(scope, asked, self._seconds)

    async def _voice(self, scope: Scope, voice_id: str, revision: int) -> values_pb2.VoiceAspect:
        asked = recall_pb2.ReadVoiceAspectRequest(
            voice_id=voice_id, known_at=values_pb2.KnownAt(revision=revision)
        )
        method = self._services.recall.ReadVoiceAspect
        return (await self._services.call(scope, method, asked, self._seconds)).voice


def _asker(request: Asking, actor: str) -> internal.Asker:
    return internal.Asker(commit_id=request.request_id, actor=actor, why=request.reason)
