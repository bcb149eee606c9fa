"""Recall: one question to one graph or several, answered as data and as one prompt block."""

import uuid
from collections.abc import Callable, Sequence

from gateway.commands.several import ask_all
from gateway.convert.answers import answer_out
from gateway.convert.recall import question_in
from gateway.convert.times import instant_of
from gateway.convert.zones import check_time_zone
from gateway.credits.ledger import Ledger
from gateway.credits.money import MicroCredits
from gateway.credits.prices import Prices
from gateway.errors import InsufficientCredits
from gateway.policy import TextPolicy
from gateway.services import Services
from gateway.store.graphs import Graphs
from palimpsest.internal.v1 import recall_pb2 as internal
from palimpsest.v1 import recall_pb2
from services.domain.instants import Instant
from services.domain.scope import Scope, TenantId

CHARGED_AS = "RECALL"
"""Why, in the ledger."""


class Recall:
    """Answers questions. Costs nothing by the default prices. `engine` understands the texts here.

    Where recall has a price, each answer is charged at once, a refusal never.
    """

    def __init__(
        self,
        services: Services,
        graphs: Graphs,
        ledger: Ledger,
        prices: Prices,
        now: Callable[[], Instant],
        engine: str,
        policy: TextPolicy,
    ) -> None:
        self._policy = policy
        self._services = services
        self._graphs = graphs
        self._ledger = ledger
        self._prices = prices
        self._now = now
        self._engine = engine

    async def __call__(
        self, scopes: Sequence[Scope], request: recall_pb2.RecallRequest, timeout_seconds: float
    ) -> recall_pb2.RecallResponse:
        """The answer of graphs of one tenant, all or nothing.

        Raises GraphNotFound, EntityNotFound, ModelNotAllowed, RevisionNotReady, InsufficientCredits,
        StoreDown (unless degraded answers are allowed).
        """
        check_time_zone(request.time_zone, "time_zone")
        for time in (request.now, request.as_of, request.time_range.start, request.time_range.end):
            instant_of(time)
        graphs, version = await self._graphs.asked(scopes)
        for graph in graphs:
            # Whatever one of the graphs blacks out, none is asked for.
            request = await self._policy.held(graph.settings, request)
        # As they were just read: with whence their ids follow.
        scopes = [graph.scope for graph in graphs]
        tenant = scopes[0].tenant
        prices = await self._prices.newest(version)
        if prices.recall:
            await self._check_affordable(tenant, prices.recall)
        now = self._now()
        asked = [question_in(request, now, graph.settings, timeout_seconds) for graph in graphs]

        async def ask(scope: Scope, question: internal.RecallRequest) -> internal.RecallResponse:
            return await self._services.call(
                scope, self._services.recall.Recall, question, timeout_seconds, whole=True
            )

        if len(scopes) == 1:
            answers = [await ask(scopes[0], asked[0])]
        else:
            answers = await ask_all(ask, scopes, asked)
        response = answer_out(answers, [scope.graph for scope in scopes], explain=request.explain)
        response.engine = self._engine
        if prices.recall:
            # A call has no request id, so that each is charged: it must not be one that a client chose.
            async with self._ledger.books(tenant) as books:
                await books.charge(tenant, uuid.uuid4().hex, prices.recall, CHARGED_AS, prices.version)
        return response

    async def _check_affordable(self, tenant: TenantId, price: MicroCredits) -> None:
        """So that nobody works for a caller who can't pay; what is charged is checked when it is charged."""
        balance = await self._ledger.balance(tenant)
        if balance.available < price:
            raise InsufficientCredits(price, balance.available)
