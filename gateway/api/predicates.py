"""GraphService with the predicates of graphs, which the services keep: from a call to a command and back."""

from gateway.api.graphs import Context, GraphFacts, GraphServicer
from gateway.commands.predicates import Predicates
from gateway.commands.reads import Place
from gateway.commands.rules import Rules
from gateway.interceptors.call import current_caller, downstream_seconds
from gateway.paging import page_of, token_of
from gateway.store.graphs import Graphs
from palimpsest.v1 import graph_pb2


class GraphsAndPredicates(GraphServicer):
    """All of GraphServicer, DeclarePredicate and ListPredicates."""

    def __init__(
        self,
        graphs: Graphs,
        rules: Rules,
        facts: GraphFacts,
        predicates: Predicates,
        offered_models: frozenset[str],
    ) -> None:
        super().__init__(graphs, rules, facts, offered_models)
        self._predicates = predicates

    async def DeclarePredicate(
        self, request: graph_pb2.DeclarePredicateRequest, context: Context
    ) -> graph_pb2.DeclarePredicateResponse:
        caller = current_caller()
        return await self._predicates.declare(caller.scope(request.graph_id), request, f"key:{caller.key}")

    async def ListPredicates(
        self, request: graph_pb2.ListPredicatesRequest, context: Context
    ) -> graph_pb2.ListPredicatesResponse:
        caller = current_caller()
        asked = page_of(caller.tenant, request)
        scope, place = caller.scope(request.graph_id), Place.of(asked.after)
        page, following = await self._predicates.listed(
            scope, request, place, asked.size, downstream_seconds(caller)
        )
        page.next_page_token = token_of(caller.tenant, request, following.text if following else "")
        return page
