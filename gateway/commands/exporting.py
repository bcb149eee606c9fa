"""ExportGraph: everything of a graph as lines between a header and a trailer, as fast as it is taken."""

import hashlib
import uuid
from collections.abc import AsyncGenerator
from contextlib import aclosing

from google.protobuf.json_format import MessageToDict

from gateway.convert.times import timestamp
from gateway.interceptors.call import Caller
from gateway.services import Services
from gateway.store.calls import Call, CallLog
from gateway.store.graphs import GraphRow, Graphs
from palimpsest.internal.v1 import resolver_carrying_pb2
from palimpsest.v1 import privacy_pb2
from services.domain.instants import Instant
from services.domain.scope import Scope
from services.upkeep.lines import GRAPH, GraphLine, graph_line

FORMAT = 1
"""Version of the format: a reader takes this one alone."""

Parts = AsyncGenerator[privacy_pb2.ExportGraphResponse, None]


class ExportGraph:
    """Streams a graph. Changes nothing but the log of calls, which tells that it was taken out."""

    def __init__(self, services: Services, graphs: Graphs, calls: CallLog) -> None:
        self._services = services
        self._graphs = graphs
        self._calls = calls

    async def __call__(
        self, scope: Scope, request: privacy_pb2.ExportGraphRequest, caller: Caller, timeout_seconds: float
    ) -> Parts:
        """Header, data, trailer. Raises GraphNotFound, Conflict (text was deleted meanwhile: ask again)."""
        row = await self._graphs.get(scope)
        digest, counts = hashlib.sha256(), {GRAPH: 1}
        asked = resolver_carrying_pb2.ExportRequest(with_vectors=True)
        answers = self._services.stream(row.scope, self._services.resolver.Export, asked, timeout_seconds)
        async with aclosing(answers):
            async for answer in answers:
                match answer.WhichOneof("part"):
                    case "begun":
                        begun = answer.begun
                        await self._tell(caller, scope, begun.revision)
                        yield _header(scope, begun)
                        first = graph_line(_line(row, begun))
                        digest.update(first)
                        yield privacy_pb2.ExportGraphResponse(data=first)
                    case "lines":
                        digest.update(answer.lines)
                        yield privacy_pb2.ExportGraphResponse(data=answer.lines)
                    case _:
                        counts |= dict(answer.ended.counts)
        trailer = privacy_pb2.ExportTrailer(counts=counts, sha256=digest.hexdigest())
        yield privacy_pb2.ExportGraphResponse(trailer=trailer)

    async def _tell(self, caller: Caller, scope: Scope, revision: int) -> None:
        kept = Call(
            tenant=scope.tenant,
            id=uuid.uuid4().hex,
            action="ExportGraph",
            key=caller.key,
            graph=scope.graph,
            request=caller.request_id,
            revision=revision,
        )
        await self._calls.record(kept)


def _header(scope: Scope, begun: resolver_carrying_pb2.ExportBegun) -> privacy_pb2.ExportGraphResponse:
    header = privacy_pb2.ExportHeader(
        format_version=FORMAT,
        graph_id=scope.graph,
        revision=begun.revision,
        created_at=timestamp(Instant(begun.until)),
    )
    return privacy_pb2.ExportGraphResponse(header=header)


def _line(row: GraphRow, begun: resolver_carrying_pb2.ExportBegun) -> GraphLine:
    return GraphLine(
        origin=row.scope.root,
        created_at=row.created_at,
        updated_at=row.updated_at,
        settings=MessageToDict(row.settings, preserving_proto_field_name=True),
        embedder=begun.embedder,
        dimension=begun.dimension,
    )
