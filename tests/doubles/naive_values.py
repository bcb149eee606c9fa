"""What NaiveGraph keeps of a graph, and what a commit or a forgetting does to it."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TypeVar

from services.domain.graph import Entity, EntityType, Literal, Span, Statement
from services.domain.ids import EntityId, RecordId, Revision, SpanId, StatementId
from services.domain.records import Claim, Denial, End, Verdict
from services.stores.graph.port import Alias, Commit, Forgetting

R = TypeVar("R", Claim, End, Denial, Verdict)
Said = TypeVar("Said", Claim, End, Denial)
AliasKey = tuple[str, EntityType, EntityId]


@dataclass(slots=True)
class KeptGraph:
    entities: dict[EntityId, Entity] = field(default_factory=dict)
    aliases: dict[AliasKey, tuple[Alias, Revision]] = field(default_factory=dict)
    statements: dict[StatementId, Statement] = field(default_factory=dict)
    claims: dict[RecordId, Claim] = field(default_factory=dict)
    ends: dict[RecordId, End] = field(default_factory=dict)
    denials: dict[RecordId, Denial] = field(default_factory=dict)
    verdicts: dict[RecordId, Verdict] = field(default_factory=dict)
    revoked: dict[RecordId, Revision] = field(default_factory=dict)
    spans: dict[SpanId, Span] = field(default_factory=dict)
    forgotten: dict[str, Revision] = field(default_factory=dict)
    """By which revision."""


def add_nodes(graph: KeptGraph, commit: Commit) -> None:
    """What is there stays, unless its text was forgotten."""
    for entity in commit.entities:
        if entity.id not in graph.entities:
            graph.entities[entity.id] = entity
        elif graph.forgotten.get(entity.id, commit.revision) < commit.revision:
            del graph.forgotten[entity.id]
            old = graph.entities[entity.id]
            graph.entities[entity.id] = replace(entity, type=old.type, created_at=old.created_at)
    for statement in commit.statements:
        if statement.id not in graph.statements:
            graph.statements[statement.id] = statement
        elif graph.forgotten.get(statement.id, commit.revision) < commit.revision:
            del graph.forgotten[statement.id]
            earlier = graph.statements[statement.id]
            graph.statements[statement.id] = replace(earlier, fact=statement.fact, object=statement.object)


def add(known: dict[RecordId, R], records: Sequence[R], graph: KeptGraph) -> None:
    for record in records:
        known.setdefault(record.id, record)
        if record.revoked_at is not None:
            graph.revoked.setdefault(record.id, record.revoked_at)


def empty_records(graph: KeptGraph, statements: set[StatementId], forgetting: Forgetting) -> None:
    named = {one.record for one in forgetting.records}

    def gone(records: Mapping[RecordId, Said]) -> list[Said]:
        return [one for one in records.values() if one.statement in statements or one.id in named]

    for claim in gone(graph.claims):
        graph.claims[claim.id] = replace(claim, source=replace(claim.source, quote=""), time_text="")
    for end in gone(graph.ends):
        graph.ends[end.id] = replace(end, source=replace(end.source, quote=""))
    for denial in gone(graph.denials):
        graph.denials[denial.id] = replace(denial, source=replace(denial.source, quote=""))
    reasonless = statements | {id for id, _ in forgetting.retold}
    for verdict in list(graph.verdicts.values()):
        if {verdict.left, verdict.right} & reasonless or verdict.id in named:
            graph.verdicts[verdict.id] = replace(verdict, why="")


def texts(commit: Commit) -> Iterable[str]:
    for entity in commit.entities:
        yield from (entity.name, entity.key, *entity.aliases)
    for alias in commit.aliases:
        yield from (alias.key, alias.name)
    for statement in commit.statements:
        yield statement.fact
        if isinstance(statement.object, Literal):
            yield statement.object.text
    for claim in commit.claims:
        yield from (claim.source.quote, claim.time_text)
    yield from (end.source.quote for end in commit.ends)
    yield from (denial.source.quote for denial in commit.denials)
    for verdict in commit.verdicts:
        yield from (verdict.why, verdict.model, verdict.prompt_version)
