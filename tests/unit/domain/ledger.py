"""A graph in memory: records, revisions and beliefs, changed as the resolver changes a graph."""

from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import TypeVar

from services.domain.beliefs import BeliefChanges, SlotRecords, believed, changes, derive, in_force
from services.domain.graph import Span, Statement, statement_id
from services.domain.ids import EntityId, RecordId, Revision, StatementId
from services.domain.instants import Instant
from services.domain.predicates import Cardinality
from services.domain.records import Claim, Denial, End, Verdict
from services.domain.scope import GraphId, Scope, TenantId
from services.domain.slots import Reading, closures
from services.domain.timeline import DerivedSpan

SCOPE = Scope(TenantId("tenant"), GraphId("graph"))
SUBJECT = EntityId("Mara")
Row = tuple[str, Instant | None, Instant | None]
Record = Claim | End | Denial | Verdict
R = TypeVar("R", Claim, End, Denial, Verdict)


def statement(predicate: str, target: str, subject: str = SUBJECT) -> Statement:
    """A statement whose object's name is its id, as the tests write entities."""
    ids = EntityId(subject), EntityId(predicate), EntityId(target)
    return Statement(statement_id(SCOPE, *ids), *ids, f"{subject} {predicate} {target}")


class Ledger:
    """Keeps every record and span. `commit` publishes one revision and answers what it changed."""

    def __init__(self, single: Iterable[str] = ()) -> None:
        self._single = set(single)
        self.statements: dict[StatementId, Statement] = {}
        self.records: dict[RecordId, Record] = {}
        self.spans: dict[str, Span] = {}
        self.merged: dict[EntityId, EntityId] = {}
        self.revision = Revision(0)

    def knows(self, *statements: Statement) -> None:
        self.statements |= {each.id: each for each in statements}

    def cardinality(self, predicate: EntityId) -> Cardinality:
        return Cardinality.SINGLE if predicate in self._single else Cardinality.MULTI

    @property
    def reading(self) -> Reading:
        return Reading(self.merged, {})

    def commit(self, *added: Record, revoke: Iterable[RecordId] = ()) -> BeliefChanges:
        """Records and revokes, then derives the closures of what was touched and stores what changes."""
        self.revision = Revision(self.revision + 1)
        touched: set[StatementId] = set()
        for record in added:
            self.records[record.id] = replace(record, recorded_at=self.revision)
            touched |= _touched(record)
        for id in revoke:
            self.records[id] = replace(self.records[id], revoked_at=self.revision)
            touched |= _touched(self.records[id])
        return self._store(self.changes_of(touched))

    def rederive(self) -> BeliefChanges:
        """A revision that adds no record: entities read otherwise, or nothing changed at all."""
        self.revision = Revision(self.revision + 1)
        return self._store(self.changes_of(self.statements))

    def changes_of(self, touched: Iterable[StatementId]) -> BeliefChanges:
        """What the current revision must write for the closures of these statements."""
        wanted = set(touched)
        verdicts = in_force(self._of(Verdict), self.revision)
        groups = closures(list(self.statements.values()), verdicts, self.cardinality, self.reading)
        ids = {each.id for group in groups if wanted & {one.id for one in group} for each in group}
        records = self.slot(ids)
        return changes(SCOPE, self.revision, records.spans, self.derived(records))

    def derived(
        self, records: SlotRecords | None = None, known_at: Revision | None = None
    ) -> tuple[DerivedSpan, ...]:
        everything = self.slot(self.statements) if records is None else records
        return derive(everything, self.cardinality, known_at=known_at, reading=self.reading)

    def slot(self, ids: Iterable[StatementId]) -> SlotRecords:
        wanted = set(ids)
        return SlotRecords(
            tuple(each for each in self.statements.values() if each.id in wanted),
            tuple(each for each in self._of(Claim) if each.statement in wanted),
            tuple(each for each in self._of(End) if each.statement in wanted),
            tuple(each for each in self._of(Denial) if each.statement in wanted),
            tuple(each for each in self._of(Verdict) if {each.left, each.right} <= wanted),
            tuple(each for each in self.spans.values() if each.statement in wanted),
        )

    def believed(self, known_at: Revision | None = None) -> list[Span]:
        return believed(self.spans.values(), self.revision if known_at is None else known_at)

    def _of(self, kind: type[R]) -> list[R]:
        return [record for record in self.records.values() if isinstance(record, kind)]

    def _store(self, made: BeliefChanges) -> BeliefChanges:
        for span in made.closed:
            self.spans[span.id] = replace(self.spans[span.id], known_to=self.revision)
        for span in made.opened:
            assert span.id not in self.spans
            self.spans[span.id] = span
        return made


def said(spans: Iterable[Span | DerivedSpan], names: Mapping[StatementId, Statement]) -> list[Row]:
    """Spans as the cases write them, by object, in order of time."""
    rows = [(str(names[span.statement].object), span.valid_at, span.invalid_at) for span in spans]
    return sorted(rows, key=lambda row: (row[1] is not None, row[1] or 0, row[0]))


def _touched(record: Record) -> set[StatementId]:
    return {record.left, record.right} if isinstance(record, Verdict) else {record.statement}
