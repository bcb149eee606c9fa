"""Causes: the records behind statements as known at a revision, those of rivals that ended them included."""

from collections import defaultdict
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import product

from services.domain.beliefs import believed, in_force, said_in_force
from services.domain.graph import Literal, Span, Statement
from services.domain.ids import RecordId, Revision, StatementId
from services.domain.instants import Precision
from services.domain.records import Claim, End, Evidence, Verdict, VerdictKind
from services.domain.scope import Scope
from services.domain.slots import Reading, as_one
from services.recall.hot.reads import GraphReads
from services.recall.readings import AS_THEMSELVES, ReadAs
from services.stores.graph.port import NodePair, Records


@dataclass(frozen=True, slots=True)
class Causes:
    """Records by id and by statement; `spans` are every span of the statements asked for, past ones too."""

    by_id: Mapping[RecordId, Evidence]
    of_statement: Mapping[StatementId, Sequence[Evidence]]
    spans: Mapping[StatementId, Sequence[Span]] = field(default_factory=dict)

    def claims(self, statement: StatementId, known_at: Revision) -> list[Claim]:
        """The claims that count, earliest attested first."""
        found = [record for record in self.of_statement.get(statement, ()) if isinstance(record, Claim)]
        return sorted(
            (claim for claim in found if counts(claim, known_at)),
            key=lambda claim: (claim.attested_at, claim.recorded_at, claim.id),
        )

    def evidence(self, statement: StatementId, known_at: Revision) -> Sequence[Claim | End]:
        """What speaks for a statement: its claims, or where there are none the ends of it; earliest first."""
        ends = [record for record in self.of_statement.get(statement, ()) if isinstance(record, End)]
        return self.claims(statement, known_at) or sorted(
            (end for end in ends if counts(end, known_at)),
            key=lambda end: (end.attested_at, end.recorded_at, end.id),
        )


def counts(record: Evidence, known_at: Revision) -> bool:
    """Recorded by then and not revoked by then."""
    return record.recorded_at <= known_at and (record.revoked_at is None or known_at < record.revoked_at)


async def read_causes(
    graph: GraphReads,
    scope: Scope,
    statements: Sequence[Statement],
    spans: Iterable[Span] | None,
    known_at: Revision,
    read: Records | None = None,
    reads: ReadAs = AS_THEMSELVES,
) -> Causes:
    """The records of some statements, and those elsewhere that caused `spans` (None: every span of theirs).

    What speaks for a duplicate speaks for the statement as which it derived in `known_at`. `read`: records of
    some of them that were read already. `reads`: how entities read. Raises StoreUnavailable.
    """
    have = {statement.id for statement in read.statements} if read else set()
    wanted = [statement.id for statement in statements if statement.id not in have]
    own = _joined([*([read] if read else ()), *([await graph.records(scope, wanted)] if wanted else ())])
    own = await _with_duplicates(graph, scope, await _with_merged(graph, scope, own, reads))
    by_id = _by_id([own])
    asked = {statement.id for statement in statements}
    shown = [span for span in own.spans if span.statement in asked] if spans is None else spans
    needed = {cause for span in shown for cause in (span.started_by, span.ended_by) if cause is not None}
    missing = needed - by_id.keys()
    if missing:
        owners = {span.statement for span in own.spans if missing & {span.started_by, span.ended_by}}
        of_owners = [one for one in statements if one.id in owners]
        rivals = await _rivals(graph, scope, of_owners, own, reads)
        by_id |= _by_id([await graph.records(scope, rivals)])
    of_statement: dict[StatementId, list[Evidence]] = defaultdict(list)
    for record in _each(own):
        of_statement[record.statement].append(record)
    for shown_one, others in _shown_for(own, known_at, reads).items():
        of_statement[shown_one] += [record for other in others for record in of_statement.get(other, ())]
    every: dict[StatementId, list[Span]] = defaultdict(list)
    for span in own.spans:
        every[span.statement].append(span)
    return Causes(by_id, of_statement, every)


async def _with_merged(graph: GraphReads, scope: Scope, own: Records, reads: ReadAs) -> Records:
    """Records of statements, with those of what merges make the same triple."""
    if not reads.merged:
        return own
    reading = Reading(reads.merged, {})
    triples = {(*reading.slot(one), reading.target(one)) for one in own.statements}
    pairs: dict[NodePair, None] = {}
    for subject, predicate, target in triples:
        slot = reads.group(subject), reads.group(predicate)
        others = 1 if isinstance(target, Literal) else len(reads.group(target))
        if max(*map(len, slot), others) > 1:
            pairs |= dict.fromkeys(product(*slot))
    slots = await graph.slots(scope, list(pairs)) if pairs else {}
    read = {statement.id for statement in own.statements}
    missing = list(dict.fromkeys(id for ids in slots.values() for id in ids if id not in read))
    found = await graph.records(scope, missing) if missing else None
    if found is None:
        return own
    same = {one.id for one in found.statements if (*reading.slot(one), reading.target(one)) in triples}
    return _joined([own, _only(found, same)])


def _only(records: Records, ids: Collection[StatementId]) -> Records:
    return Records(
        statements=[one for one in records.statements if one.id in ids],
        claims=[one for one in records.claims if one.statement in ids],
        ends=[one for one in records.ends if one.statement in ids],
        denials=[one for one in records.denials if one.statement in ids],
        verdicts=[one for one in records.verdicts if one.left in ids or one.right in ids],
        spans=[one for one in records.spans if one.statement in ids],
    )


async def _with_duplicates(graph: GraphReads, scope: Scope, own: Records) -> Records:
    """Records of statements, with those of what any verdict calls the same."""
    read = {statement.id for statement in own.statements}
    while missing := _called_the_same(own.verdicts) - read:
        own = _joined([own, await graph.records(scope, sorted(missing))])
        read |= missing
    return own


def _called_the_same(verdicts: Iterable[Verdict]) -> set[StatementId]:
    return {
        side
        for verdict in verdicts
        if verdict.kind is VerdictKind.DUPLICATE
        for side in (verdict.left, verdict.right)
    }


def _shown_for(own: Records, known_at: Revision, reads: ReadAs) -> dict[StatementId, list[StatementId]]:
    """By a statement with spans: the others that derived as it, which have none of their own."""
    verdicts = in_force(own.verdicts, known_at)
    if not _called_the_same(verdicts) and not reads.merged:
        return {}
    groups: dict[StatementId, list[StatementId]] = defaultdict(list)
    said, reading = said_in_force(own, known_at), Reading(reads.merged, {})
    for id, root in as_one(own.statements, said, verdicts, reading).items():
        groups[root].append(id)
    holding = {span.statement for span in believed(own.spans, known_at)}
    return {
        id: [other for other in group if other not in holding]
        for group in groups.values()
        for id in group
        if id in holding and len(group) > 1
    }


async def _rivals(
    graph: GraphReads, scope: Scope, statements: Sequence[Statement], own: Records, reads: ReadAs
) -> list[StatementId]:
    """What may have begun or ended these: the rest of their slots, and what verdicts connect them with."""
    known = {statement.id for statement in own.statements}
    slots = dict.fromkeys(
        (subject, predicate)
        for one in statements
        for subject in reads.group(one.subject)
        for predicate in reads.group(one.predicate)
    )
    found = await graph.slots(scope, list(slots))
    ids = dict.fromkeys(id for slot in slots for id in found.get(slot, ()))
    for verdict in own.verdicts:
        ids |= dict.fromkeys((verdict.left, verdict.right))
    return [id for id in ids if id not in known]


def _joined(read: Sequence[Records]) -> Records:
    return Records(
        statements=[one for each in read for one in each.statements],
        claims=[one for each in read for one in each.claims],
        ends=[one for each in read for one in each.ends],
        denials=[one for each in read for one in each.denials],
        verdicts=[one for each in read for one in each.verdicts],
        spans=[one for each in read for one in each.spans],
    )


def _by_id(read: Iterable[Records]) -> dict[RecordId, Evidence]:
    return {record.id: record for records in read for record in _each(records)}


def _each(records: Records) -> list[Evidence]:
    return [*records.claims, *records.ends, *records.denials]


def start_precision(span: Span, causes: Causes) -> Precision:
    """How fine the start of a span is known; as its cause has it where the span was written without."""
    if span.start_precision is not None:
        return span.start_precision
    return _border(causes.by_id.get(span.started_by), own=True)


def end_precision(span: Span, causes: Causes) -> Precision:
    """The same for its end."""
    if span.end_precision is not None:
        return span.end_precision
    record = causes.by_id.get(span.ended_by) if span.ended_by else None
    if isinstance(record, Claim) and record.statement == span.statement:
        return record.end_precision
    return _border(record, own=False)


def assumed(span: Span, causes: Causes) -> bool:
    """Whether a span starts where it was said, not where it is known to have begun."""
    if span.assumed is not None:
        return span.assumed
    started = causes.by_id.get(span.started_by)
    return isinstance(started, Claim) and started.start is None


def _border(record: Evidence | None, own: bool) -> Precision:
    """`own`: the record is of the span's own statement."""
    match record:
        case Claim():
            return record.start_precision if record.start is not None or not own else Precision.INSTANT
        case End():
            return record.precision
        case _:
            return Precision.INSTANT
