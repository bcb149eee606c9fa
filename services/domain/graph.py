"""The graph's nodes as values: entities, statements and the spans in which statements hold."""

from dataclasses import dataclass
from enum import StrEnum

from services.domain.ids import EntityId, RecordId, Revision, SpanId, StatementId, derive_id
from services.domain.instants import Instant, Precision
from services.domain.scope import Scope


class EntityType(StrEnum):
    """What kind of thing an entity is. UNKNOWN is compatible with every type but Predicate."""

    PERSON = "Person"
    ORGANIZATION = "Organization"
    PLACE = "Place"
    EVENT = "Event"
    PROJECT = "Project"
    TASK = "Task"
    TECHNOLOGY = "Technology"
    PRODUCT = "Product"
    STANDARD = "Standard"
    CONCEPT = "Concept"
    PREDICATE = "Predicate"
    UNKNOWN = "Unknown"


class GraphAspect(StrEnum):
    """What a fact is about."""

    IDENTITY = "Identity"
    EVENT = "Event"
    RELATIONSHIP = "Relationship"
    DECISION = "Decision"
    KNOWLEDGE = "Knowledge"
    PROBLEM = "Problem"
    TASK = "Task"


class LiteralKind(StrEnum):
    """How a literal object is read."""

    STRING = "string"
    NUMBER = "number"
    BOOLEAN = "boolean"
    TIME = "time"


@dataclass(frozen=True, slots=True)
class Literal:
    """An object that is a value, not a node. `text` is normalised: one text for one value."""

    kind: LiteralKind
    text: str


@dataclass(frozen=True, slots=True)
class Entity:
    """A node. `key` is the normalised name (services/domain/names.py); `created_at` a revision."""

    id: EntityId
    name: str
    key: str
    type: EntityType
    aliases: tuple[str, ...] = ()
    created_at: Revision = Revision(0)


@dataclass(frozen=True, slots=True)
class Statement:
    """A fact as a node: one for each (subject, predicate, object). Says nothing of when it holds."""

    id: StatementId
    subject: EntityId
    predicate: EntityId
    object: EntityId | Literal
    fact: str
    aspect: GraphAspect | None = None
    event_at: Instant | None = None
    created_at: Revision = Revision(0)


@dataclass(frozen=True, slots=True)
class Span:
    """A statement holds in `[valid_at, invalid_at)`, as believed in revisions `[known_from, known_to)`.

    None: unknown start, still holds, still believed. `started_by` is the claim and `ended_by` the claim,
    end or denial that caused each border. How fine the borders are known, and whether the start is only
    assumed, is as derived (timeline.py); None where it was written before that was kept. Written once; only
    `known_to` is set later.
    """

    id: SpanId
    statement: StatementId
    valid_at: Instant | None
    invalid_at: Instant | None
    known_from: Revision
    known_to: Revision | None
    started_by: RecordId
    ended_by: RecordId | None
    contested: bool = False
    start_precision: Precision | None = None
    end_precision: Precision | None = None
    assumed: bool | None = None


def statement_id(
    scope: Scope, subject: EntityId, predicate: EntityId, target: EntityId | Literal
) -> StatementId:
    parts = (target.kind, target.text) if isinstance(target, Literal) else ("entity", target)
    return StatementId(derive_id(scope, "statement", subject, predicate, *parts))


def span_id(scope: Scope, statement: StatementId, valid_at: Instant | None, known_from: Revision) -> SpanId:
    return SpanId(derive_id(scope, "span", statement, valid_at, known_from))
