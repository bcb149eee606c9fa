"""Judging: what a user decides about statements: ends, denials, verdicts, and taking back what closed one.

Each is one revision, named by its commit id. What a user records counts for what is known when he says it:
never attested before what it speaks of, so that a source dated ahead of the clock can't outweigh him.
"""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

from palimpsest.internal.v1 import resolver_judging_pb2 as pb
from services.domain.errors import EndStated, StatementNotFound, ValidationFailed, Violation
from services.domain.graph import Literal, Statement
from services.domain.ids import EntityId, RecordId, Revision, StatementId, derive_id
from services.domain.instants import Instant, period
from services.domain.records import Claim, Denial, End, EndReason, Judge, Source, Verdict, VerdictKind
from services.domain.restoring import restoring
from services.domain.scope import Scope
from services.domain.slots import Reading
from services.resolver.change import Draft
from services.resolver.closure import Read
from services.resolver.deciding import Action, By, decide, decide_said
from services.resolver.publish import Publisher
from services.stores.graph.port import Revocation
from services.wire.fields import maybe, precision_in


@dataclass(frozen=True, slots=True)
class _Spoken:
    """What is known of the statements that a call names."""

    read: Read
    statements: Sequence[Statement]

    def draft(self, revision: Revision) -> Draft:
        """An empty draft that need not look up again what is known of them."""
        records = self.read.records
        keys = dict(self.read.reading.keys)
        return Draft(revision, read={one.id for one in records.statements}, stored=records, keys=keys)

    @property
    def ids(self) -> set[StatementId]:
        """They, and what derives as one with them."""
        shown = self.read.shown()
        classes = {shown[one.id] for one in self.statements}
        return {id for id, each in shown.items() if each in classes}

    def claims(self) -> list[Claim]:
        return [one for one in self._counting(self.read.records.claims) if isinstance(one, Claim)]

    def after(self, now: Instant) -> Instant:
        """When the user says it: now, or just after the latest of what it speaks of."""
        records = self.read.records
        said = self._counting([*records.claims, *records.ends, *records.denials])
        return _after(now, (one.attested_at for one in said))

    def _counting(self, records: Iterable[Claim | End | Denial]) -> list[Claim | End | Denial]:
        ids = self.ids
        return [one for one in records if one.revoked_at is None and one.statement in ids]


class Judging:
    """EndStatement, DenyStatement, RestoreStatement, JudgePair. Idempotent by commit id.

    Every method raises StatementNotFound (also where the text was forgotten), Conflict, StoreUnavailable.
    """

    def __init__(self, publisher: Publisher, now: Callable[[], Instant]) -> None:
        self._publisher = publisher
        self._now = now

    async def end(self, scope: Scope, request: pb.EndStatementRequest) -> pb.EndStatementResponse:
        """Records that a statement stopped. Raises ValidationFailed for a time before it began."""
        id, by = StatementId(request.statement_id), by_asker(request.asker)
        made = RecordId(derive_id(scope, "end", id, "user", request.asker.commit_id))
        precision = precision_in(request.precision)

        async def build(known: Revision, revision: Revision) -> Draft:
            spoken = await self._spoken(scope, known, [id])
            now = self._now()
            at = maybe(request, "at")
            at = now if at is None else at
            last = period(at, precision).end or at
            starts = [one.start for one in spoken.claims()]
            # Where it was only said to hold, the end tells that it had held before that.
            if starts and all(start is not None and last <= start for start in starts):
                raise ValidationFailed(Violation("ended_at", "is before the statement began", "end.start"))
            draft = spoken.draft(revision)
            draft.ends[made] = End(
                made,
                id,
                at,
                spoken.after(now),
                Source(None),
                precision,
                EndReason.USER,
                recorded_at=revision,
            )
            decide_said(scope, draft, now, by)
            return draft

        published = await self._publisher.publish(scope, commit_of("end", request.asker, id), build)
        return pb.EndStatementResponse(revision=published.revision, record_id=made)

    async def deny(self, scope: Scope, request: pb.DenyStatementRequest) -> pb.DenyStatementResponse:
        """Records that a statement did not hold in a period. Raises ValidationFailed for an empty one."""
        id, by = StatementId(request.statement_id), by_asker(request.asker)
        start, until = maybe(request, "start"), maybe(request, "until")
        if start is not None and until is not None and until <= start:
            raise ValidationFailed(Violation("denied_until", "must be after denied_from", "denial.period"))
        made = RecordId(derive_id(scope, "denial", id, "user", request.asker.commit_id))

        async def build(known: Revision, revision: Revision) -> Draft:
            spoken = await self._spoken(scope, known, [id])
            draft, now = spoken.draft(revision), self._now()
            draft.denials[made] = Denial(
                made, id, start, until, spoken.after(now), Source(None), recorded_at=revision
            )
            decide_said(scope, draft, now, by)
            return draft

        published = await self._publisher.publish(scope, commit_of("deny", request.asker, id), build)
        return pb.DenyStatementResponse(revision=published.revision, record_id=made)

    async def restore(self, scope: Scope, request: pb.RestoreStatementRequest) -> pb.RestoreStatementResponse:
        """Undoes what closed a statement (services/domain/restoring.py); nothing where it holds already.

        Raises EndStated when nothing can be undone: its own source states the end.
        """
        id, by = StatementId(request.statement_id), by_asker(request.asker)

        async def build(known: Revision, revision: Revision) -> Draft:
            spoken = await self._spoken(scope, known, [id])
            draft, now = spoken.draft(revision), self._now()
            draft.keeps_words = True  # the text that said so is still there
            read = spoken.read
            undo = restoring(read.records, id, read.cardinality, now, read.reading)
            if undo.nothing and not undo.holds:
                raise EndStated
            for record in undo.revoked:
                draft.revocations[record.id] = Revocation(record.id, record.statement)
                draft.undone.append(record.id)
            for other in undo.exempted:
                verdict = self._verdict(
                    scope, draft, read, (id, other), VerdictKind.COMPATIBLE, request.asker
                )
                decide(scope, draft, now, Action.JUDGE, verdict.left, by, verdict.right)
            if not undo.nothing:
                decide(scope, draft, now, Action.RESTORE, id, by)
            return draft

        published = await self._publisher.publish(scope, commit_of("restore", request.asker, id), build)
        return pb.RestoreStatementResponse(
            revision=published.revision,
            revoked_record_ids=published.outcome.undone,
            verdict_ids=published.outcome.judged,
        )

    async def judge(self, scope: Scope, request: pb.JudgePairRequest) -> pb.JudgePairResponse:
        """Records a verdict in place of the user's last on the pair; those of rules and models it outweighs.

        Raises ValidationFailed for a contradiction or a duplicate of statements that share no thing: a user
        may know better than the rule that asks for one subject (`Ana tends Atlas`, `Ben tends Atlas`), but
        what says nothing of one thing together is a slip.
        """
        ids = (StatementId(request.statement_id), StatementId(request.other_statement_id))
        by, kind = by_asker(request.asker), VerdictKind.__members__.get(request.kind.upper())
        if kind is None:
            raise ValidationFailed(Violation("verdict", "is no kind of verdict", "verdict.kind"))

        async def build(known: Revision, revision: Revision) -> Draft:
            spoken = await self._spoken(scope, known, ids)
            one, other = spoken.statements
            if kind is not VerdictKind.COMPATIBLE and not _share(one, other, spoken.read.reading):
                raise ValidationFailed(
                    Violation("verdict", "the statements have no thing in common", "verdict.unrelated")
                )
            draft = spoken.draft(revision)
            verdict = self._verdict(scope, draft, spoken.read, ids, kind, request.asker)
            decide(scope, draft, self._now(), Action.JUDGE, verdict.left, by, verdict.right)
            return draft

        published = await self._publisher.publish(
            scope, commit_of("judge", request.asker, *sorted(ids)), build
        )
        return pb.JudgePairResponse(
            revision=published.revision, verdict_id=next(iter(published.outcome.judged), "")
        )

    def _verdict(
        self,
        scope: Scope,
        draft: Draft,
        read: Read,
        pair: tuple[StatementId, StatementId],
        kind: VerdictKind,
        asker: pb.Asker,
    ) -> Verdict:
        """Drafts a user's verdict; the user's earlier ones on the pair are revoked: his last word counts."""
        left, right = sorted(pair)
        mine = [one for one in read.records.verdicts if one.judge is Judge.USER and one.revoked_at is None]
        for one in mine:
            if (one.left, one.right) == (left, right):
                draft.revocations[one.id] = Revocation(one.id, one.left)
        made = RecordId(derive_id(scope, "verdict", left, right, int(kind), "user", asker.commit_id))
        said = _after(self._now(), (one.attested_at for one in mine))
        verdict = Verdict(made, left, right, kind, Judge.USER, said, asker.why, recorded_at=draft.revision)
        draft.verdicts[made] = verdict
        draft.judged.append(made)
        return verdict

    async def _spoken(self, scope: Scope, known: Revision, ids: Sequence[StatementId]) -> _Spoken:
        read = await self._publisher.read(scope, known, ids)
        by_id = {one.id: one for one in read.records.statements}
        for id in ids:
            if id not in by_id or not by_id[id].fact:
                raise StatementNotFound(id)
        return _Spoken(read, [by_id[id] for id in ids])


def by_asker(asker: pb.Asker) -> By:
    """Who decides, for the log."""
    return By(asker.actor, asker.why, request=asker.commit_id)


def commit_of(kind: str, asker: pb.Asker, *ids: str) -> str:
    """The commit id of a user's call."""
    # A tenant may use a request id again once it is forgotten: for other statements it is another commit.
    return ":".join((kind, asker.commit_id, *ids))


def _after(now: Instant, said: Iterable[Instant]) -> Instant:
    """Now; or just after the latest of what was said, where that is not before now."""
    return max([now, *(Instant(at + 1) for at in said)])


def _share(one: Statement, other: Statement, reading: Reading) -> bool:
    """Whether they speak of one thing, as ids read now."""
    return bool(_things(one, reading) & _things(other, reading))


def _things(statement: Statement, reading: Reading) -> set[EntityId]:
    target = statement.object
    named = {statement.subject} if isinstance(target, Literal) else {statement.subject, target}
    return {reading.entity(id) for id in named}
