"""Recall: one question to one graph or several, answered as data and as one prompt block."""

import uuid
from collections.abc import Callable

from gateway.convert.recall import (
    degraded_out,
    fact_out,
    plan_out,
    question_in,
    recalled_passage_out,
    recalled_voice_out,
)
from gateway.convert.summaries import persona_out, summary_out
from gateway.convert.times import instant_of
from gateway.convert.zones import check_time_zone
from gateway.credits.ledger import Ledger
from gateway.credits.money import MicroCredits
from gateway.credits.prices import Prices
from gateway.errors import InsufficientCredits, NotImplementedYet
from gateway.services import Services
from gateway.store.graphs import Graphs
from palimpsest.internal.v1 import recall_pb2 as internal
from palimpsest.v1 import common_pb2, recall_pb2
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
    ) -> None:
        self._services = services
        self._graphs = graphs
        self._ledger = ledger
        self._prices = prices
        self._now = now
        self._engine = engine

    async def __call__(
        self, scope: Scope, request: recall_pb2.RecallRequest, timeout_seconds: float
    ) -> recall_pb2.RecallResponse:
        """Raises GraphNotFound, RevisionNotReady, InsufficientCredits, StoreDown (unless degraded answers
        are allowed).
        """
        self._refuse_what_comes_later(request)
        check_time_zone(request.time_zone, "time_zone")
        for time in (request.now, request.as_of, request.time_range.start, request.time_range.end):
            instant_of(time)
        settings = (await self._graphs.get(scope)).settings
        prices = await self._prices.current()
        if prices.recall:
            await self._check_affordable(scope.tenant, prices.recall)
        asked = question_in(request, self._now(), settings, timeout_seconds)
        answer = await self._services.call(scope, self._services.recall.Recall, asked, timeout_seconds)
        response = _answer_out(answer, scope.graph, explain=request.explain)
        response.engine = self._engine
        if prices.recall:
            # A call has no request id, so that each is charged: it must not be one that a client chose.
            async with self._ledger.books(scope.tenant) as books:
                await books.charge(scope.tenant, uuid.uuid4().hex, prices.recall, CHARGED_AS, prices.version)
        return response

    async def _check_affordable(self, tenant: TenantId, price: MicroCredits) -> None:
        """So that nobody works for a caller who can't pay; what is charged is checked when it is charged."""
        balance = await self._ledger.balance(tenant)
        if balance.available < price:
            raise InsufficientCredits(price, balance.available)

    @staticmethod
    def _refuse_what_comes_later(request: recall_pb2.RecallRequest) -> None:
        if len(request.graph_ids) > 1:
            raise NotImplementedYet("Recall over several graphs")


def _answer_out(
    answer: internal.RecallResponse, graph_id: str, *, explain: bool
) -> recall_pb2.RecallResponse:
    response = recall_pb2.RecallResponse(
        facts=[fact_out(fact, graph_id) for fact in answer.facts],
        passages=[recalled_passage_out(passage, graph_id) for passage in answer.passages],
        voice=[recalled_voice_out(voice, graph_id) for voice in answer.voice],
        summaries=[summary_out(summary, graph_id) for summary in answer.summaries],
        persona=persona_out(answer.persona, graph_id) if answer.HasField("persona") else None,
        context=answer.context,
        evidence={
            item.name: recall_pb2.Evidence(
                passage_id=item.passage_id,
                graph_id=graph_id,
                episode_id=item.episode_id,
                quote=item.quote,
            )
            for item in answer.evidence
        },
        degraded=[degraded_out(component) for component in answer.degraded],
        revisions=[common_pb2.GraphRevision(graph_id=graph_id, revision=answer.revision)],
        tokens_used=answer.context_tokens,
        truncated=answer.left_out > 0,
        abstention_score=1.0 - answer.answerable,
    )
    if explain:
        response.plan.CopyFrom(plan_out(answer.plan))
    return response
