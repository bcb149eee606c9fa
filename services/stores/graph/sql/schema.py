"""The graph's tables, an index for every access path. A scope's key opens every primary key and index."""

from pathlib import Path

from sqlalchemy import Boolean, Column, Double, ForeignKeyConstraint, Index, MetaData, SmallInteger, Table
from sqlalchemy.schema import SchemaItem

from services.stores.graph.plain import OPEN as OPEN
from services.stores.graph.plain import UNKNOWN_START as UNKNOWN_START
from services.stores.sql.migrations import Schema
from services.stores.sql.rows import Int64, Key, Prose

metadata = MetaData()
SCHEMA = Schema("graph", metadata, Path(__file__).parent / "migrations")


def _scope() -> Column[str]:
    return Column("scope", Key, primary_key=True)


def _forgotten_at() -> Column[int]:
    return Column(
        "forgotten_at", Int64, doc="the revision that emptied its text; one of a later revision restores it"
    )


def _part_of(table: str, *columns: str) -> ForeignKeyConstraint:
    return ForeignKeyConstraint(["scope", *columns], [f"{table}.scope", f"{table}.id"])


def _record(name: str, *columns: SchemaItem) -> Table:
    """Records lie beside each other by statement, so that a slot is read as a few ranges."""
    return Table(
        name,
        metadata,
        _scope(),
        Column("statement", Key, primary_key=True),
        Column("id", Key, primary_key=True),
        Column("attested_at", Int64, nullable=False),
        Column("episode", Key),
        Column("passage", Key),
        Column("quote", Prose, nullable=False),
        Column("confidence", Double, nullable=False),
        Column("recorded_at", Int64, nullable=False),
        *columns,
        _part_of("graph_statements", "statement"),
        Index(f"{name}_episode", "scope", "episode"),
    )


entities = Table(
    "graph_entities",
    metadata,
    _scope(),
    Column("id", Key, primary_key=True),
    Column("name", Prose, nullable=False),
    Column("key", Prose, nullable=False),
    Column("type", Key, nullable=False),
    Column("aliases", Prose, nullable=False, doc="JSON array of texts"),
    Column("created_at", Int64, nullable=False),
    _forgotten_at(),
)

aliases = Table(
    "graph_aliases",
    metadata,
    _scope(),
    # A key may be longer than an index entry can be.
    Column("key_hash", Key, primary_key=True),
    Column("type", Key, primary_key=True),
    Column("entity", Key, primary_key=True),
    Column("key", Prose, nullable=False),
    Column("name", Prose, nullable=False),
    Column("recorded_at", Int64, nullable=False),
    _part_of("graph_entities", "entity"),
    Index("graph_aliases_entity", "scope", "entity"),
)

statements = Table(
    "graph_statements",
    metadata,
    _scope(),
    Column("id", Key, primary_key=True),
    Column("subject", Key, nullable=False),
    Column("predicate", Key, nullable=False),
    Column("object", Key, doc="an entity; NULL when the object is a literal"),
    Column("literal_kind", Key),
    Column("literal_text", Prose),
    Column("fact", Prose, nullable=False),
    Column("aspect", Key),
    Column("event_at", Int64),
    Column("created_at", Int64, nullable=False),
    # The hull of all its spans, past beliefs included; empty (from > to) while it has none.
    Column("hull_from", Int64, nullable=False),
    Column("hull_to", Int64, nullable=False),
    _forgotten_at(),
    _part_of("graph_entities", "subject"),
    _part_of("graph_entities", "predicate"),
    _part_of("graph_entities", "object"),
    Index("graph_statements_created", "scope", "created_at", "id"),
    Index("graph_statements_slot", "scope", "subject", "predicate", "created_at", "id"),
    Index("graph_statements_subject", "scope", "subject", "created_at", "id"),
    Index("graph_statements_object", "scope", "object", "created_at", "id"),
    Index("graph_statements_between", "scope", "subject", "object"),
    Index("graph_statements_predicate", "scope", "predicate", "created_at", "id"),
    Index("graph_statements_aspect", "scope", "aspect", "created_at", "id"),
)

claims = _record(
    "graph_claims",
    Column("start", Int64),
    Column("end", Int64),
    Column("seen", Int64, nullable=False),
    Column("start_precision", SmallInteger, nullable=False),
    Column("end_precision", SmallInteger, nullable=False),
    Column("time_text", Prose, nullable=False),
)

ends = _record(
    "graph_ends",
    Column("at", Int64, nullable=False),
    Column("precision", SmallInteger, nullable=False),
    Column("reason", SmallInteger, nullable=False),
)

denials = _record("graph_denials", Column("start", Int64), Column("until", Int64))

verdicts = Table(
    "graph_verdicts",
    metadata,
    _scope(),
    Column("id", Key, primary_key=True),
    Column("left", Key, nullable=False),
    Column("right", Key, nullable=False),
    Column("kind", SmallInteger, nullable=False),
    Column("judge", SmallInteger, nullable=False),
    Column("attested_at", Int64, nullable=False),
    Column("why", Prose, nullable=False),
    Column("model", Prose, nullable=False),
    Column("prompt_version", Prose, nullable=False),
    Column("episode", Key),
    Column("recorded_at", Int64, nullable=False),
    _part_of("graph_statements", "left"),
    _part_of("graph_statements", "right"),
    Index("graph_verdicts_left", "scope", "left"),
    Index("graph_verdicts_right", "scope", "right"),
    Index("graph_verdicts_episode", "scope", "episode"),
)

revocations = Table(
    "graph_revocations",
    metadata,
    _scope(),
    Column("record", Key, primary_key=True),
    Column("statement", Key, nullable=False),
    Column("revoked_at", Int64, nullable=False),
)

spans = Table(
    "graph_spans",
    metadata,
    _scope(),
    Column("statement", Key, primary_key=True),
    Column("id", Key, primary_key=True),
    Column("valid_at", Int64, nullable=False, doc="UNKNOWN_START where it is not known"),
    Column("invalid_at", Int64, nullable=False, doc="OPEN while it holds"),
    Column("known_from", Int64, nullable=False),
    Column("known_to", Int64, nullable=False, doc="OPEN while it is believed; the only column ever changed"),
    Column("started_by", Key, nullable=False),
    Column("ended_by", Key),
    Column("contested", Boolean, nullable=False),
    # NULL in rows of before revision 0003: as fine as what caused the border.
    Column("start_precision", SmallInteger),
    Column("end_precision", SmallInteger),
    Column("assumed", Boolean),
    _part_of("graph_statements", "statement"),
    Index("graph_spans_ended_by", "scope", "ended_by"),
)
