"""Builders: short ways to make a graph's values for tests. Ids follow from what they name."""

from collections.abc import Iterable
from dataclasses import dataclass, fields, replace
from datetime import UTC, datetime
from typing import Any

from services.domain.graph import (
    Entity,
    EntityType,
    GraphAspect,
    Literal,
    LiteralKind,
    Span,
    Statement,
    span_id,
    statement_id,
)
from services.domain.ids import EntityId, EpisodeId, RecordId, Revision, SpanId, derive_id
from services.domain.instants import Instant, Precision, instant
from services.domain.records import Claim, Denial, End, Judge, Source, Verdict, VerdictKind
from services.domain.scope import GraphId, Scope, TenantId
from services.stores.graph.port import Alias, ClosedSpan, Commit, Revocation


def a_scope(graph: str = "notes", tenant: str = "acme") -> Scope:
    return Scope(TenantId(tenant), GraphId(graph))


def on(day: str) -> Instant:
    """The instant of an ISO date or datetime; a naive one is UTC."""
    moment = datetime.fromisoformat(day)
    return instant(moment if moment.tzinfo else moment.replace(tzinfo=UTC))


def text(value: str) -> Literal:
    return Literal(LiteralKind.STRING, value)


SAID = on("2024-06-01")
"""When builders' records are attested unless a test says otherwise."""


@dataclass(frozen=True, slots=True)
class Maker:
    """Makes values of one scope."""

    scope: Scope

    def episode(self, name: str = "e1") -> EpisodeId:
        return EpisodeId(derive_id(self.scope, "episode", name))

    def entity(self, name: str, type: EntityType = EntityType.CONCEPT, revision: int = 1) -> Entity:
        id = EntityId(derive_id(self.scope, "entity", type.value, name))
        return Entity(id, name, name.casefold(), type, (name,), Revision(revision))

    def predicate(self, name: str, revision: int = 1) -> Entity:
        return self.entity(name, EntityType.PREDICATE, revision)

    def alias(self, entity: Entity, key: str = "") -> Alias:
        return Alias(key or entity.key, entity.type, entity.id, entity.name)

    def statement(
        self,
        subject: Entity,
        predicate: Entity,
        target: Entity | Literal,
        revision: int = 1,
        aspect: GraphAspect | None = None,
    ) -> Statement:
        named = target.text if isinstance(target, Literal) else target.name
        return Statement(
            id=statement_id(
                self.scope, subject.id, predicate.id, target if isinstance(target, Literal) else target.id
            ),
            subject=subject.id,
            predicate=predicate.id,
            object=target if isinstance(target, Literal) else target.id,
            fact=f"{subject.name} {predicate.name} {named}",
            aspect=aspect,
            created_at=Revision(revision),
        )

    def record_id(self, kind: str, statement: Statement, *parts: str | int | None) -> RecordId:
        return RecordId(derive_id(self.scope, kind, statement.id, *parts))

    def claim(
        self,
        statement: Statement,
        episode: str = "e1",
        start: Instant | None = None,
        end: Instant | None = None,
        said: Instant = SAID,
        revision: int = 1,
    ) -> Claim:
        return Claim(
            id=self.record_id("claim", statement, episode, start, end, said),
            statement=statement.id,
            start=start,
            end=end,
            attested_at=said,
            seen=said,
            source=Source(self.episode(episode), quote=statement.fact),
            recorded_at=Revision(revision),
        )

    def end(
        self, statement: Statement, at: Instant, episode: str = "e1", said: Instant = SAID, revision: int = 1
    ) -> End:
        return End(
            id=self.record_id("end", statement, episode, at, said),
            statement=statement.id,
            at=at,
            attested_at=said,
            source=Source(self.episode(episode)),
            recorded_at=Revision(revision),
        )

    def denial(
        self,
        statement: Statement,
        start: Instant | None = None,
        until: Instant | None = None,
        episode: str = "e1",
        said: Instant = SAID,
        revision: int = 1,
    ) -> Denial:
        return Denial(
            id=self.record_id("denial", statement, episode, start, until, said),
            statement=statement.id,
            start=start,
            until=until,
            attested_at=said,
            source=Source(self.episode(episode)),
            recorded_at=Revision(revision),
        )

    def verdict(
        self,
        one: Statement,
        other: Statement,
        kind: VerdictKind = VerdictKind.CONTRADICTS,
        episode: str | None = None,
        revision: int = 1,
    ) -> Verdict:
        left, right = sorted((one, other), key=lambda statement: statement.id)
        return Verdict(
            id=self.record_id("verdict", left, right.id, kind.value),
            left=left.id,
            right=right.id,
            kind=kind,
            judge=Judge.RULE,
            attested_at=SAID,
            episode=self.episode(episode) if episode else None,
            recorded_at=Revision(revision),
        )

    def span(
        self,
        statement: Statement,
        valid_at: Instant | None = None,
        invalid_at: Instant | None = None,
        revision: int = 1,
        started_by: RecordId | None = None,
        ended_by: RecordId | None = None,
        contested: bool = False,
        precisions: tuple[Precision, Precision] = (Precision.INSTANT, Precision.INSTANT),
        assumed: bool = False,
    ) -> Span:
        return Span(
            id=SpanId(span_id(self.scope, statement.id, valid_at, Revision(revision))),
            statement=statement.id,
            valid_at=valid_at,
            invalid_at=invalid_at,
            known_from=Revision(revision),
            known_to=None,
            started_by=started_by or self.record_id("claim", statement, "some"),
            ended_by=ended_by,
            contested=contested,
            start_precision=precisions[0],
            end_precision=precisions[1],
            assumed=assumed,
        )

    def fact(
        self,
        subject: str,
        predicate: str,
        target: str | Literal,
        valid_at: Instant | None = None,
        invalid_at: Instant | None = None,
        *,
        episode: str = "e1",
        revision: int = 1,
        aspect: GraphAspect | None = None,
    ) -> Commit:
        """A revision in which one episode claims one fact, with its nodes, their aliases and one span."""
        nodes = [self.entity(subject, revision=revision), self.predicate(predicate, revision)]
        if isinstance(target, str):
            nodes.append(self.entity(target, revision=revision))
        named = target if isinstance(target, Literal) else nodes[2]
        statement = self.statement(nodes[0], nodes[1], named, revision, aspect)
        claim = self.claim(statement, episode, valid_at, invalid_at, revision=revision)
        span = self.span(statement, valid_at, invalid_at, revision, started_by=claim.id)
        return Commit(
            revision=Revision(revision),
            entities=nodes,
            aliases=[self.alias(node) for node in nodes],
            statements=[statement],
            claims=[claim],
            opened=[span],
        )


def together(commits: Iterable[Commit]) -> Commit:
    """One commit of all that several of the same revision hold."""
    first, *rest = commits
    assert all(commit.revision == first.revision for commit in rest), "commits of several revisions"
    parts = [field.name for field in fields(Commit) if field.name != "revision"]
    joined: dict[str, Any] = {
        part: tuple(dict.fromkeys(item for commit in (first, *rest) for item in getattr(commit, part)))
        for part in parts
    }
    return replace(first, **joined)


def without_precisions(span: Span) -> Span:
    """As one was written before spans told how fine they are."""
    return replace(span, start_precision=None, end_precision=None, assumed=None)


def closing(span: Span) -> ClosedSpan:
    return ClosedSpan(span.id, span.statement)


def revoking(record: Claim | End | Denial | Verdict) -> Revocation:
    return Revocation(record.id, record.left if isinstance(record, Verdict) else record.statement)
