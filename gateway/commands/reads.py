"""Reads of memory: episodes, statements, timelines, subgraphs. Each asks first that the graph is there."""

import re
from collections.abc import Callable
from dataclasses import dataclass

from gateway.convert.assertions import normal_literal
from gateway.convert.episodes import document_out, episode_out, passage_out
from gateway.convert.names import aspect_in, entity_type_in
from gateway.convert.recall import subgraph_out
from gateway.convert.statements import (
    claim_out,
    denial_out,
    end_out,
    entity_out,
    object_out,
    predicate_out,
    span_out,
    statement_out,
    verdict_out,
)
from gateway.convert.times import instant_of, known_at_in
from gateway.services import Services
from gateway.store.graphs import Graphs
from palimpsest.internal.v1 import preprocessor_pb2, values_pb2
from palimpsest.internal.v1 import recall_pb2 as internal
from palimpsest.v1 import (
    common_pb2,
    entity_pb2,
    memory_episodes_pb2,
    memory_statements_pb2,
    recall_subgraph_pb2,
)
from services.domain.errors import EpisodeNotFound
from services.domain.graph import EntityType
from services.domain.ids import Revision
from services.domain.instants import Instant
from services.domain.scope import Scope
from services.stores.paging import NotAPosition

DEFAULT_PAGE = 50
MAX_PAGE = 500
DEFAULT_DEPTH = 1
DEFAULT_NODES = 200
DEFAULT_EDGES = 500
DEFAULT_EDGES_PER_LEVEL = 200


_COUNT = re.compile(r"[0-9]{1,18}")


@dataclass(frozen=True, slots=True)
class Place:
    """Where a page of a list begins. Later pages read the graph, and the clock, as the first one did."""

    after: str = ""
    revision: Revision | None = None
    now: Instant | None = None

    @property
    def text(self) -> str:
        return f"{self.revision}.{self.now}.{self.after}"

    @property
    def number(self) -> int:
        """Where the list is counted by its items. Raises ValueError for what is no number."""
        if self.after and not _COUNT.fullmatch(self.after):
            raise NotAPosition
        return int(self.after or 0)

    @classmethod
    def of(cls, text: str) -> "Place":
        """The place that `text` tells; "" is the beginning. Raises ValueError for anything else."""
        if not text:
            return cls()
        revision, now, after = [*text.split(".", 2), "", ""][:3]
        if not (_COUNT.fullmatch(revision) and _COUNT.fullmatch(now)):
            raise NotAPosition
        return cls(after, Revision(int(revision)), Instant(int(now)))

    def known_at(self, asked: common_pb2.KnownAt, timeout_seconds: float) -> values_pb2.KnownAt:
        """Which knowledge the page reads: that of the first page, or what is asked."""
        first = asked if self.revision is None else common_pb2.KnownAt(revision=self.revision)
        return known_at_in(first, timeout_seconds)


class Reads:
    """Asks the recall service and shows its answers. Raises ServiceError, GraphNotFound first of all."""

    def __init__(self, services: Services, graphs: Graphs, now: Callable[[], Instant]) -> None:
        self._services = services
        self._graphs = graphs
        self._now = now

    async def episode(
        self, scope: Scope, request: memory_episodes_pb2.GetEpisodeRequest, timeout_seconds: float
    ) -> memory_episodes_pb2.GetEpisodeResponse:
        """Without the stage, which jobs know. Raises EpisodeNotFound, also once it is deleted."""
        await self._graphs.check(scope)
        asked = internal.ReadEpisodeRequest(episode_id=request.episode_id)
        read = await self._services.call(scope, self._services.recall.ReadEpisode, asked, timeout_seconds)
        if read.episode.HasField("deleted_at"):
            raise EpisodeNotFound(request.episode_id)
        return memory_episodes_pb2.GetEpisodeResponse(
            episode=episode_out(read.episode, scope.graph),
            text=read.episode.text,
            passages=[passage_out(passage) for passage in read.episode.passages],
        )

    async def document(
        self, scope: Scope, request: memory_episodes_pb2.GetDocumentRequest, timeout_seconds: float
    ) -> memory_episodes_pb2.GetDocumentResponse:
        """One version, with a list of all. Raises DocumentNotFound, also once it is deleted."""
        await self._graphs.check(scope)
        asked = preprocessor_pb2.GetDocumentRequest(document_id=request.document_id, version=request.version)
        read = await self._services.call(
            scope, self._services.preprocessor.GetDocument, asked, timeout_seconds
        )
        return document_out(read, scope.graph)

    async def statement(
        self, scope: Scope, request: memory_statements_pb2.GetStatementRequest, timeout_seconds: float
    ) -> memory_statements_pb2.GetStatementResponse:
        """Raises StatementNotFound, RevisionNotReady."""
        await self._graphs.check(scope)
        asked = internal.ReadStatementRequest(
            statement_id=request.statement_id,
            known_at=known_at_in(request.known_at, timeout_seconds),
            min_revision=request.min_revision,
            include_past_beliefs=request.include_past_beliefs,
        )
        read = await self._services.call(scope, self._services.recall.ReadStatement, asked, timeout_seconds)
        found, kinds = read.statement, values_pb2
        past = [span for span in found.spans if span.HasField("known_to")]
        return memory_statements_pb2.GetStatementResponse(
            statement=statement_out(found, scope.graph),
            past_spans=[span_out(span, found.id) for span in past] if request.include_past_beliefs else (),
            claims=[claim_out(r, found.id) for r in found.records if r.kind == kinds.FACT_KIND_CLAIM],
            ends=[end_out(r, found.id) for r in found.records if r.kind == kinds.FACT_KIND_END],
            denials=[denial_out(r, found.id) for r in found.records if r.kind == kinds.FACT_KIND_DENIAL],
            verdicts=[verdict_out(one, found.id) for one in read.verdicts],
            dependent_statement_ids=read.dependent_ids,
            revision=read.revision,
        )

    async def statements(
        self,
        scope: Scope,
        request: memory_statements_pb2.ListStatementsRequest,
        place: Place,
        timeout_seconds: float,
    ) -> tuple[memory_statements_pb2.ListStatementsResponse, Place | None]:
        """A page, and where the next begins (None when there is no more). Raises RevisionNotReady."""
        await self._graphs.check(scope)
        now = self._now() if place.now is None else place.now
        asked = internal.ListStatementsRequest(
            subject=named(request.subject),
            subject_type=typed(request.subject),
            predicate=request.predicate.predicate_id or request.predicate.name,
            aspects=[aspect_in(aspect) for aspect in request.aspects if aspect],
            episode_ids=[request.episode_id] if request.episode_id else (),
            session_id=request.session_id,
            known_at=place.known_at(request.known_at, timeout_seconds),
            include_ended=request.include_ended,
            invalidated_by=request.invalidated_by,
            contested=request.contested if request.HasField("contested") else None,
            page_size=min(request.page_size or DEFAULT_PAGE, MAX_PAGE),
            after=place.after,
            now=now,
            min_revision=request.min_revision,
        )
        if request.object.HasField("literal"):
            asked.object = normal_literal(request.object.literal).text
        else:
            asked.object = named(request.object.entity)
            asked.object_type = typed(request.object.entity)
        if request.HasField("valid_at"):
            asked.valid_at = instant_of(request.valid_at)
        listed = await self._services.call(
            scope, self._services.recall.ListStatements, asked, timeout_seconds
        )
        page = memory_statements_pb2.ListStatementsResponse(
            statements=[statement_out(statement, scope.graph) for statement in listed.statements],
            revision=listed.revision,
        )
        return page, Place(listed.after, Revision(listed.revision), now) if listed.after else None

    async def timeline(
        self,
        scope: Scope,
        request: memory_statements_pb2.GetTimelineRequest,
        place: Place,
        size: int,
        timeout_seconds: float,
    ) -> tuple[memory_statements_pb2.GetTimelineResponse, Place | None]:
        """A page, earliest first, and where the next begins. Raises EntityNotFound, RevisionNotReady."""
        await self._graphs.check(scope)
        now = self._now() if place.now is None else place.now
        first = place.number
        asked = internal.ReadTimelineRequest(
            subject=named(request.subject),
            subject_type=typed(request.subject),
            predicate=request.predicate.predicate_id or request.predicate.name,
            known_at=place.known_at(request.known_at, timeout_seconds),
            min_revision=request.min_revision,
            include_past_beliefs=request.include_past_beliefs,
            now=now,
        )
        read = await self._services.call(scope, self._services.recall.ReadTimeline, asked, timeout_seconds)
        entries = [_entry(entry.statement, read.subject.id, now) for entry in read.entries]
        last = first + size
        page = memory_statements_pb2.GetTimelineResponse(
            entries=entries[first:last],
            subject=entity_out(read.subject),
            predicate=predicate_out(read.predicate),
            contested=any(entry.contested for entry in entries),
            revision=read.revision,
        )
        return page, Place(str(last), Revision(read.revision), now) if last < len(entries) else None

    async def subgraph(
        self, scope: Scope, request: recall_subgraph_pb2.GetSubgraphRequest, timeout_seconds: float
    ) -> recall_subgraph_pb2.GetSubgraphResponse:
        """Raises EntityNotFound, RevisionNotReady."""
        await self._graphs.check(scope)
        asked = internal.WalkRequest(
            seeds=[named(seed) for seed in request.seeds],
            max_hops=request.depth if request.HasField("depth") else DEFAULT_DEPTH,
            per_level=request.max_edges_per_level or DEFAULT_EDGES_PER_LEVEL,
            known_at=known_at_in(request.known_at, timeout_seconds),
            now=self._now(),
            include_ended=request.include_ended,
            min_revision=request.min_revision,
        )
        if request.HasField("as_of"):
            asked.as_of = instant_of(request.as_of)
        walk = await self._services.call(scope, self._services.recall.Walk, asked, timeout_seconds)
        return _capped(subgraph_out(walk, scope.graph), request)


def named(ref: entity_pb2.EntityRef) -> str:
    return ref.entity_id or ref.name


def typed(ref: entity_pb2.EntityRef) -> str:
    kind = entity_type_in(ref.type)
    return "" if kind is EntityType.UNKNOWN else kind


def _entry(
    statement: values_pb2.Statement, subject: str, now: Instant
) -> memory_statements_pb2.TimelineEntry:
    """Its object is the other end: of a fact that an inverse says, whom it was said of."""
    span = statement.spans[0]
    over = span.HasField("invalid_at") and span.invalid_at <= now
    turned = statement.entity.id == subject != statement.subject.id
    other = entity_pb2.ObjectValue(entity=entity_out(statement.subject)) if turned else object_out(statement)
    return memory_statements_pb2.TimelineEntry(
        statement_id=statement.id,
        object=other,
        fact=statement.fact,
        span=span_out(span, statement.id),
        contested=span.contested,
        struck=over or span.HasField("known_to"),
        confidence=statement.confidence,
    )


def _capped(
    graph: recall_subgraph_pb2.GetSubgraphResponse, request: recall_subgraph_pb2.GetSubgraphRequest
) -> recall_subgraph_pb2.GetSubgraphResponse:
    edges = list(graph.edges)[: request.max_edges or DEFAULT_EDGES]
    nodes = list(graph.nodes)[: request.max_nodes or DEFAULT_NODES]
    kept = {node.entity.entity_id for node in nodes}
    edges = [edge for edge in edges if _ends(edge) <= kept]
    return recall_subgraph_pb2.GetSubgraphResponse(
        nodes=nodes,
        edges=edges,
        truncated=len(edges) < len(graph.edges) or len(nodes) < len(graph.nodes),
        revision=graph.revision,
    )


def _ends(edge: recall_subgraph_pb2.SubgraphEdge) -> set[str]:
    ends = {edge.statement.subject.entity_id}
    if edge.statement.object.HasField("entity"):
        ends.add(edge.statement.object.entity.entity_id)
    return ends
