"""What a graph holds, asked of the recall service."""

from gateway.api.graphs import HeldFacts
from gateway.convert.times import timestamp
from gateway.services import Services
from palimpsest.internal.v1 import recall_pb2
from palimpsest.v1.common_pb2 import RevisionStamp
from palimpsest.v1.graph_pb2 import GraphCounts
from services.domain.scope import Scope

TIMEOUT_SECONDS = 5.0


class ServiceFacts:
    """Asks for counts and revision of a graph. Raises ServiceError."""

    def __init__(self, services: Services) -> None:
        self._services = services

    async def facts(self, scope: Scope) -> HeldFacts:
        read = await self._services.call(
            scope, self._services.recall.ReadGraph, recall_pb2.ReadGraphRequest(), TIMEOUT_SECONDS
        )
        counts = GraphCounts(
            entities=read.entities,
            statements=read.statements,
            episodes=read.episodes,
            claims=read.claims,
            archived=read.archived,
        )
        at = timestamp(read.revision_at if read.HasField("revision_at") else None)
        return HeldFacts(counts, RevisionStamp(revision=read.revision, time=at))
