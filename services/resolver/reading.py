"""Reading: a text that is read anew, and a reading that is taken back, each as one revision."""

from collections.abc import Callable

from palimpsest.internal.v1 import resolver_pb2 as pb
from services.domain.ids import EpisodeId, Revision
from services.domain.instants import Instant
from services.domain.scope import Scope
from services.llm.port import EngineError
from services.resolver.answers import outcome_out, why_nothing, withdrawals_in
from services.resolver.change import Draft, Outcome
from services.resolver.deciding import By
from services.resolver.drafting import Drafting
from services.resolver.memo import Memo
from services.resolver.publish import Publisher
from services.resolver.rereading import Anew
from services.resolver.undoing import Undo, Undoing
from services.stores.memory.commits import reading
from services.wire.facts import dropped_out, receipt_out


class Reading:
    """Publishes both. Idempotent by commit id."""

    def __init__(
        self, publisher: Publisher, drafting: Drafting, undoing: Undoing, now: Callable[[], Instant]
    ) -> None:
        self._publisher = publisher
        self._drafting = drafting
        self._undoing = undoing
        self._now = now

    async def anew(self, scope: Scope, request: pb.ResolveAnewRequest) -> pb.ResolveAnewResponse:
        """Puts what a text says by a new reading in place of what it said. Idempotent by commit id.

        Raises EpisodeNotFound, Conflict, EngineError.
        """
        id, memo = EpisodeId(request.facts.episode_id), Memo()
        by = By(request.actor, "read anew", request=request.commit_id)
        anew = Anew(request.commit_id, by, withdrawals_in(request.withdrawals))
        last = Draft(Revision(0))

        async def build(known: Revision, revision: Revision) -> Draft:
            nonlocal last
            last = await self._drafting.draft(scope, id, request.facts, (known, revision), memo, anew)
            return last

        try:
            published = await self._publisher.publish(scope, reading(id, request.commit_id), build)
        except EngineError as error:
            error.before = (*memo.receipts, *error.before)
            raise
        told = published.outcome if published.outcome != Outcome() else last
        revoked = published.outcome.revoked
        return pb.ResolveAnewResponse(
            revision=published.revision,
            outcome=outcome_out(published.outcome),
            receipts=[receipt_out(receipt) for receipt in told.receipts],
            dropped=[dropped_out(one.reason, "resolve", one.turn) for one in told.dropped],
            nothing=why_nothing(request.facts, memo),
            claims_revoked=revoked.claims,
            ends_revoked=revoked.ends,
            denials_revoked=revoked.denials,
            voice_revoked=revoked.voice,
        )

    async def read_by(self, scope: Scope, request: pb.ListReadAnewRequest) -> pb.ListReadAnewResponse:
        """The episodes whose readings a commit replaced. See Undoing."""
        episodes, after = await self._undoing.read_by(scope, request.commit_id, request.after)
        return pb.ListReadAnewResponse(episode_ids=episodes, after=after)

    async def undo(self, scope: Scope, request: pb.UndoReadingRequest) -> pb.UndoReadingResponse:
        """A text says again what it said before. Idempotent by commit id. Raises Conflict."""
        id, commit, changed_since = EpisodeId(request.episode_id), request.commit_id, False
        by = By(request.actor, "reading undone", request=commit)
        undo = Undo(id, request.read_by, commit, by)

        async def build(_known: Revision, revision: Revision) -> Draft:
            nonlocal changed_since
            draft = await self._undoing.draft(scope, revision, undo, self._now())
            changed_since = draft is None
            return Draft(revision) if draft is None else draft

        published = await self._publisher.publish(scope, reading(id, commit), build)
        revoked = published.outcome.revoked
        return pb.UndoReadingResponse(
            revision=published.revision,
            outcome=outcome_out(published.outcome),
            changed_since=changed_since,
            claims_revoked=revoked.claims,
            ends_revoked=revoked.ends,
            denials_revoked=revoked.denials,
            voice_revoked=revoked.voice,
        )
