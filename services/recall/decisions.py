"""Decisions: the log of a graph, read by time; and the reasons that users gave for records of a statement."""

from collections.abc import Mapping

from palimpsest.internal.v1 import recall_decisions_pb2 as pb
from services.domain.ids import Revision, StatementId
from services.domain.instants import Instant
from services.domain.scope import Scope
from services.stores.memory.port import Decision, DecisionFilter, DecisionLog
from services.wire.fields import maybe

MOST = 1000
"""Decisions in one answer."""


class Decisions:
    """Reads the log of decisions. Every method raises StoreUnavailable."""

    def __init__(self, log: DecisionLog) -> None:
        self._log = log

    async def list(self, scope: Scope, request: pb.ListDecisionsRequest) -> pb.ListDecisionsResponse:
        """Newest first, by time; none for a graph on which nothing was decided."""
        after_at = maybe(request, "after_at")
        where = DecisionFilter(
            action=request.action,
            target=request.target,
            since=maybe(request, "since"),
            until=maybe(request, "until"),
            after=None if after_at is None else (Instant(after_at), request.after_id),
        )
        found = await self._log.find(scope, where, max(1, min(request.limit or MOST, MOST)))
        return pb.ListDecisionsResponse(decisions=[decision_out(one) for one in found])

    async def reasons(self, scope: Scope, statement: StatementId) -> Mapping[Revision, str]:
        """Why users ended or denied a statement, by revision: a call is one revision."""
        found = await self._log.find(scope, DecisionFilter(target=statement), MOST)
        return {one.revision: one.why for one in found if one.request and one.why}


def decision_out(decision: Decision) -> pb.Decision:
    return pb.Decision(
        id=decision.id,
        revision=decision.revision,
        at=decision.at,
        action=decision.action,
        target=decision.target,
        other=decision.other,
        actor=decision.actor,
        why=decision.why,
        model=decision.model,
        prompt_version=decision.prompt_version,
        request=decision.request,
    )
