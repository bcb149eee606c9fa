"""Predicates of a graph: what a tenant declares of them, and their list."""

import asyncio
import uuid
from collections.abc import Callable
from contextlib import suppress

from gateway.commands.reads import Place
from gateway.convert.predicates import CARDINALITIES_IN, declared_out
from gateway.errors import GraphExists
from gateway.ingest.background import Background
from gateway.services import Services
from gateway.store.graphs import Graphs
from palimpsest.internal.v1 import recall_lists_pb2, resolver_pb2
from palimpsest.v1 import common_pb2, graph_pb2
from services.domain.ids import Revision
from services.domain.instants import Instant
from services.domain.scope import Scope


class Predicates:
    """Declares and lists. Costs nothing."""

    def __init__(
        self,
        services: Services,
        graphs: Graphs,
        background: Background,
        seconds: float,
        now: Callable[[], Instant],
    ) -> None:
        """`seconds` is how long a declaration may take."""
        self._services = services
        self._graphs = graphs
        self._background = background
        self._seconds = seconds
        self._now = now

    async def declare(
        self, scope: Scope, request: graph_pb2.DeclarePredicateRequest, actor: str
    ) -> graph_pb2.DeclarePredicateResponse:
        """Idempotent by what is declared; makes the graph if it isn't there. Raises ValidationFailed."""
        with suppress(GraphExists):  # with settings of its own
            await self._graphs.create(scope, graph_pb2.GraphSettings())
        asked = resolver_pb2.DeclarePredicateRequest(
            commit_id=uuid.uuid4().hex,
            name=request.name,
            cardinality=CARDINALITIES_IN[request.cardinality],
            aliases=request.aliases,
            inverse=request.inverse,
            actor=actor,
            why="declared",
        )
        method = self._services.resolver.DeclarePredicate
        work = self._services.call(scope, method, asked, self._seconds)
        # The caller may leave; what was begun is carried out all the same.
        made = await asyncio.shield(self._background.start(work))
        return graph_pb2.DeclarePredicateResponse(
            predicate=declared_out(made.predicate), revision=made.revision
        )

    async def listed(
        self,
        scope: Scope,
        request: graph_pb2.ListPredicatesRequest,
        place: Place,
        size: int,
        timeout_seconds: float,
    ) -> tuple[graph_pb2.ListPredicatesResponse, Place | None]:
        """A page, and where the next begins. Raises GraphNotFound."""
        await self._graphs.check(scope)
        now = self._now() if place.now is None else place.now
        asked = recall_lists_pb2.ListPredicatesRequest(
            declared_only=request.declared_only,
            known_at=place.known_at(common_pb2.KnownAt(), timeout_seconds),
            page_size=size,
            after=place.after,
        )
        method = self._services.recall.ListPredicates
        listed = await self._services.call(scope, method, asked, timeout_seconds)
        page = graph_pb2.ListPredicatesResponse(predicates=map(declared_out, listed.predicates))
        following = Place(listed.after, Revision(listed.revision), now) if listed.after else None
        return page, following
