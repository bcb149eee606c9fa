"""Describe: statements as the internal API shows them, each border with what caused it."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace

from palimpsest.internal.v1 import values_pb2 as pb
from services.domain.graph import Literal, Span
from services.domain.ids import Revision, StatementId
from services.domain.instants import Instant
from services.domain.lexicon import Lexicon
from services.domain.records import Claim, Denial, End, Evidence
from services.domain.scope import Scope
from services.recall.causes import Causes, assumed, end_precision, read_causes, start_precision
from services.recall.confidence import confidence
from services.recall.hot.reads import Clocks, GraphReads
from services.recall.messages import entity_out, predicate_out, record_out
from services.recall.readings import AS_THEMSELVES, ReadAs
from services.stores.graph.port import Records, StatementView
from services.stores.memory.archive import ArchiveStore
from services.wire.fields import precision_out

KINDS: Mapping[type[Evidence], pb.FactKind.ValueType] = {
    Claim: pb.FACT_KIND_CLAIM,
    End: pb.FACT_KIND_END,
    Denial: pb.FACT_KIND_DENIAL,
}


class Described:
    """Statements with their records and clocks at hand, as known at a revision."""

    def __init__(
        self,
        known_at: Revision,
        causes: Causes,
        clocks: Mapping[Revision, Instant],
        lexicon: Lexicon | None = None,
        archived: frozenset[StatementId] = frozenset(),
    ) -> None:
        self.known_at = known_at
        self._archived = archived
        self.causes = causes
        self._clocks = clocks
        self._lexicon = lexicon

    def statement(
        self, view: StatementView, spans: Sequence[Span] | None = None, *, records: bool = False
    ) -> pb.Statement:
        """The message of a view; `spans` instead of the view's own, if given."""
        statement = view.statement
        shown = view.spans if spans is None else spans
        claims = self.causes.claims(statement.id, self.known_at)
        target = statement.object
        return pb.Statement(
            id=statement.id,
            subject=entity_out(view.subject),
            predicate=predicate_out(view.predicate, self._lexicon),
            entity=entity_out(view.object) if view.object is not None else None,
            literal=pb.Literal(kind=target.kind, text=target.text) if isinstance(target, Literal) else None,
            fact=statement.fact,
            aspect=statement.aspect or "",
            event_at=statement.event_at,
            spans=[self.span(span) for span in shown],
            episode_ids=_episodes(view, claims),
            records=self._records(view) if records else (),
            created_at=self._clock(statement.created_at),
            confidence=confidence(claims, any(span.contested for span in view.spans)),
            archived=statement.id in self._archived,
        )

    def _records(self, view: StatementView) -> list[pb.Record]:
        found = [
            record
            for record in self.causes.of_statement.get(view.statement.id, ())
            if record.recorded_at <= self.known_at
        ]
        found.sort(key=lambda record: (record.attested_at, record.recorded_at, record.id))
        return [self._record(_as_known(record, self.known_at)) for record in found]

    def _record(self, record: Evidence) -> pb.Record:
        message = record_out(record)
        message.recorded_at_clock = self._clock(record.recorded_at)
        if record.revoked_at is not None:
            message.revoked_at_clock = self._clock(record.revoked_at)
        return message

    def span(self, span: Span) -> pb.Span:
        """The message of a span whose cause was read."""
        started = self.causes.by_id.get(span.started_by)
        ended = self.causes.by_id.get(span.ended_by) if span.ended_by else None
        # A border that a later revision will set is not known yet.
        known_to = span.known_to if span.known_to and span.known_to <= self.known_at else None
        return pb.Span(
            valid_at=span.valid_at,
            invalid_at=span.invalid_at,
            known_from=span.known_from,
            known_to=known_to,
            known_from_at=self._clock(span.known_from),
            known_to_at=self._clock(known_to) if known_to is not None else None,
            started_by=span.started_by,
            ended_by=span.ended_by or "",
            started_by_episode=(started.source.episode or "") if started else "",
            ended_by_episode=(ended.source.episode or "") if ended else "",
            contested=span.contested,
            valid_at_precision=precision_out(start_precision(span, self.causes)),
            invalid_at_precision=precision_out(end_precision(span, self.causes)),
            start_assumed=assumed(span, self.causes),
            ended_by_kind=KINDS[type(ended)] if ended else pb.FACT_KIND_UNSPECIFIED,
            ended_by_statement=ended.statement if ended else "",
            ended_by_reason=ended.reason.name.lower() if isinstance(ended, End) else "",
        )

    def current(self, span: Span) -> Span:
        """A span that was read earlier, as it lies there now."""
        return next((one for one in self.causes.spans.get(span.statement, ()) if one.id == span.id), span)

    def _clock(self, revision: Revision) -> int:
        return self._clocks.get(revision, 0)


def _episodes(view: StatementView, claims: Iterable[Claim]) -> list[str]:
    """Whose claims speak for a statement, those of its duplicates among them; earliest attested first."""
    told = [claim.source.episode for claim in claims if claim.source.episode is not None]
    return list(dict.fromkeys(told)) if told else list(view.episodes)


def nothing_described(known_at: Revision) -> Described:
    """For views whose records can't be read now: spans without causes, no clocks, no confidence."""
    return Described(known_at, Causes({}, {}), {})


async def describe(
    graph: GraphReads,
    log: Clocks,
    archive: ArchiveStore | None,
    scope: Scope,
    views: Sequence[StatementView],
    known_at: Revision,
    past: bool = False,
    read: Records | None = None,
    records: bool = False,
    reads: ReadAs = AS_THEMSELVES,
) -> Described:
    """Reads what is needed to show views; with `past` also for spans no longer believed.

    `archive` None: nothing was ever archived. `read`: records that were read already. `records`: they are
    shown too. `reads`: how nodes read.
    """
    if not views:
        return nothing_described(known_at)
    shown = None if past else [span for view in views for span in view.spans]
    causes = await read_causes(graph, scope, [view.statement for view in views], shown, known_at, read, reads)
    every = [span for spans in causes.spans.values() for span in spans] if shown is None else shown
    said = [one for found in causes.of_statement.values() for one in found] if records else ()
    clocks = await log.clocks(scope, sorted(_revisions(views, every, said)))
    ids = [view.statement.id for view in views]
    archived = await archive.among(scope, ids) if archive else frozenset[StatementId]()
    return Described(known_at, causes, clocks, reads.lexicon, archived)


def _revisions(
    views: Iterable[StatementView], spans: Iterable[Span], said: Iterable[Evidence]
) -> set[Revision]:
    revisions = {view.statement.created_at for view in views}
    for record in said:
        revisions |= {record.recorded_at} | ({record.revoked_at} if record.revoked_at is not None else set())
    for span in spans:
        revisions |= {span.known_from} | ({span.known_to} if span.known_to is not None else set())
    return revisions


def _as_known(record: Evidence, known_at: Revision) -> Evidence:
    """A record without a revocation that came later."""
    if record.revoked_at is None or record.revoked_at <= known_at:
        return record
    return replace(record, revoked_at=None)
