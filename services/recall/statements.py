"""Statements: one by its id with its records, and the timeline of a subject and predicate."""

from collections.abc import Sequence

from palimpsest.internal.v1 import recall_pb2 as pb
from palimpsest.internal.v1 import values_pb2
from services.domain.beliefs import in_force
from services.domain.errors import EntityNotFound, PredicateNotFound, StatementNotFound
from services.domain.graph import Entity, Span
from services.domain.ids import EntityId, Revision, StatementId
from services.domain.instants import BEGINNING, FOREVER
from services.domain.records import Verdict
from services.domain.scope import Scope
from services.recall.decisions import Decisions
from services.recall.dependents import Dependents
from services.recall.describe import Described, describe
from services.recall.messages import entity_out, predicate_out, verdict_out
from services.recall.parts import Parts
from services.recall.predicates import Meant, Predicates
from services.recall.readings import Readings, shown_as
from services.recall.revisions import Revisions
from services.recall.seeds import Names
from services.stores.graph.port import AsOf, StatementView
from services.stores.paging import Page
from services.wire.fields import entity_type

PAGE = 1_000
"""Statements asked for at a time."""


class Statements:
    """Reads statements as known at a revision."""

    def __init__(
        self, parts: Parts, revisions: Revisions, names: Names, predicates: Predicates, readings: Readings
    ) -> None:
        self._parts = parts
        self._revisions = revisions
        self._names = names
        self._predicates = predicates
        self._decisions = Decisions(parts.decisions)
        self._readings = readings
        self.dependents = Dependents(parts.graph, parts.revisions)

    async def read(self, scope: Scope, request: pb.ReadStatementRequest) -> pb.ReadStatementResponse:
        """Raises StatementNotFound, RevisionNotReady, StoreUnavailable."""
        known = await self._revisions.known(scope, request.known_at, request.min_revision)
        id = StatementId(request.statement_id)
        views = await self._parts.graph.views(scope, [id], AsOf(known.at))
        # One whose text was forgotten is told by its id and dates alone, as the log of beliefs keeps them.
        if not views:
            raise StatementNotFound(request.statement_id)
        reads = await self._readings.of(scope, known.at)
        views = await shown_as(self._parts.graph, scope, views, reads)
        past = request.include_past_beliefs
        described = await describe(
            self._parts.graph,
            self._parts.revisions,
            self._parts.archive,
            scope,
            views,
            known.at,
            past,
            records=True,
            reads=reads,
        )
        spans = _beliefs(described, views[0], past)
        statement = described.statement(views[0], spans, records=True)
        await self._give_reasons(scope, id, statement)
        verdicts = (await self._parts.graph.records(scope, [id])).verdicts
        relying = await self.dependents.of(scope, views[0], in_force(verdicts, known.at), known, reads)
        return pb.ReadStatementResponse(
            statement=statement,
            revision=known.at,
            dependent_ids=relying,
            verdicts=await self._shown(scope, verdicts, known.at) if views[0].statement.fact else (),
        )

    async def _give_reasons(self, scope: Scope, id: StatementId, statement: values_pb2.Statement) -> None:
        """Why a user recorded what no episode says, in his words, as the log of decisions keeps them."""
        by_hand = [one for one in statement.records if not one.episode_id]
        reasons = await self._decisions.reasons(scope, id) if by_hand else {}
        for record in by_hand:
            record.why = reasons.get(Revision(record.recorded_at), "")

    async def _shown(
        self, scope: Scope, verdicts: Sequence[Verdict], known_at: Revision
    ) -> list[values_pb2.Verdict]:
        """Those recorded by then, earliest first."""
        known = sorted(
            (one for one in verdicts if one.recorded_at <= known_at),
            key=lambda one: (one.recorded_at, one.id),
        )
        revisions = {at for one in known for at in (one.recorded_at, one.revoked_at) if at is not None}
        clocks = await self._parts.revisions.clocks(scope, sorted(revisions)) if known else {}
        return [verdict_out(one, known_at, clocks) for one in known]

    async def timeline(self, scope: Scope, request: pb.ReadTimelineRequest) -> pb.ReadTimelineResponse:
        """Entries earliest first, each as it was recorded: by an inverse from the object's end.

        Raises EntityNotFound, PredicateNotFound, RevisionNotReady.
        """
        known = await self._revisions.known(scope, request.known_at, request.min_revision)
        subjects = await self._names.entities(
            scope, request.subject, known.at, entity_type(request.subject_type)
        )
        if not subjects:
            raise EntityNotFound(request.subject)
        meant = await self._predicates.meant(scope, request.predicate, known.at)
        if meant is None:
            raise PredicateNotFound(request.predicate)
        subject, views = await self._slot(scope, subjects, meant, known.at)
        past = request.include_past_beliefs
        described = await describe(
            self._parts.graph,
            self._parts.revisions,
            self._parts.archive,
            scope,
            views,
            known.at,
            past,
            reads=await self._readings.of(scope, known.at),
        )
        entries = [
            (view, span) for view in views for span in _beliefs(described, view, request.include_past_beliefs)
        ]
        entries.sort(key=_world_time)
        return pb.ReadTimelineResponse(
            subject=entity_out(subject),
            predicate=predicate_out(meant.shown, await self._predicates.lexicon(scope, known.at)),
            entries=[pb.TimelineEntry(statement=described.statement(view, [span])) for view, span in entries],
            revision=known.at,
        )

    async def _slot(
        self, scope: Scope, subjects: Sequence[Entity], meant: Meant, known_at: Revision
    ) -> tuple[Entity, list[StatementView]]:
        """Of several entities of one name, the first that has anything in its group's slot."""
        reads = await self._readings.of(scope, known_at)
        for subject in subjects:
            group = reads.group(subject.id)
            pairs = [(one, predicate) for one in group for predicate in meant.near]
            slots = await self._parts.graph.slots(scope, pairs) if pairs else {}
            ids = [id for pair in pairs for id in slots.get(pair, ())]
            for one in group:
                for predicate in meant.far:
                    ids += await self._of_object(scope, predicate, one)
            views = await self._parts.graph.views(scope, ids, AsOf(known_at)) if ids else ()
            if views:
                return subject, await shown_as(self._parts.graph, scope, views, reads)
        return subjects[0], []

    async def _of_object(self, scope: Scope, predicate: EntityId, target: EntityId) -> list[StatementId]:
        found: list[StatementId] = []
        after = ""
        while True:
            listed = await self._parts.graph.of_predicate(scope, predicate, target, Page(PAGE, after))
            found += listed.items
            after = listed.after
            if not after:
                return found


def _beliefs(described: Described, view: StatementView, past: bool) -> Sequence[Span]:
    """Spans believed as known; with `past`, also those that were believed at any time before."""
    if not past:
        return view.spans
    spans = described.causes.spans.get(view.statement.id, ())
    return sorted(
        (span for span in spans if span.known_from <= described.known_at),
        key=lambda span: _world_time((view, span)),
    )


def _world_time(entry: tuple[StatementView, Span]) -> tuple[int, int, int, str, str]:
    """Start (unknown first), end (open last), then belief, then the object's name."""
    view, span = entry
    target = view.object.name if view.object is not None else str(getattr(view.statement.object, "text", ""))
    return (
        BEGINNING if span.valid_at is None else span.valid_at,
        FOREVER if span.invalid_at is None else span.invalid_at,
        span.known_from,
        target,
        span.id,
    )
