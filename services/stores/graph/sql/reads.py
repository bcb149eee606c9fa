"""Reads of the graph's tables by id: entities, statements as views, and whole slots of records."""

from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import cache
from operator import itemgetter
from typing import Any, TypeVar

from sqlalchemy import (
    Column,
    CompoundSelect,
    Exists,
    RowMapping,
    Select,
    Table,
    bindparam,
    cast,
    exists,
    func,
    literal_column,
    null,
    or_,
    select,
    union_all,
)
from sqlalchemy.engine import MappingResult
from sqlalchemy.ext.asyncio import AsyncConnection

from services.domain.graph import Entity, EntityType, Literal, Span, Statement
from services.domain.ids import EntityId, EpisodeId, Revision, StatementId
from services.domain.instants import Interval
from services.domain.records import Verdict
from services.domain.scope import Scope
from services.stores.chunks import in_chunks
from services.stores.graph.port import Alias, AsOf, Counts, Records, StatementView
from services.stores.graph.sql import schema, values
from services.stores.graph.sql.conditions import (
    believed,
    counting,
    has_span,
    id_chunks,
    window,
    with_revocations,
)
from services.stores.graph.sql.schema import OPEN, UNKNOWN_START
from services.stores.sql.one_of import listed, most_of, one_of
from services.stores.sql.rows import Int64, Key

V = TypeVar("V")

_KNOWN_AT = bindparam("known_at", type_=Int64)

RECORD_TABLES: tuple[tuple[Table, Callable[[RowMapping], Any]], ...] = (
    (schema.claims, values.claim_of),
    (schema.ends, values.end_of),
    (schema.denials, values.denial_of),
)


async def fetch(connection: AsyncConnection, query: Select[Any], read: Callable[[RowMapping], V]) -> list[V]:
    """All values that a query yields."""
    return [read(row) for row in (await connection.execute(query)).mappings()]


async def entities(
    connection: AsyncConnection, scope: Scope, ids: Iterable[EntityId]
) -> dict[EntityId, Entity]:
    nodes = await _of(connection, schema.entities, "id", scope, ids, values.entity_of, ("id",))
    return {entity.id: entity for entity in nodes}


async def find_entities(
    connection: AsyncConnection, scope: Scope, keys: Sequence[str], known_at: Revision
) -> dict[str, list[Entity]]:
    hashes = {values.key_hash(key): key for key in keys}
    found: dict[str, dict[EntityId, Entity]] = defaultdict(dict)
    for chunk in in_chunks(hashes):
        asked = {"in_scope": scope.key, "hashes": chunk, "known_at": known_at}
        for row in (await connection.execute(_named(), asked)).mappings():
            node = values.entity_of(row)
            found[hashes[row["key_hash"]]][node.id] = node
    return {key: list(nodes.values()) for key, nodes in found.items()}


@cache
def _named() -> Select[Any]:
    """The entities known by one of `hashes`, oldest first; made once."""
    alias, entity, known_at = schema.aliases, schema.entities, _KNOWN_AT
    return (
        select(entity, alias.c.key_hash)
        .join(alias, (alias.c.scope == entity.c.scope) & (alias.c.entity == entity.c.id))
        .where(
            alias.c.scope == bindparam("in_scope"),
            alias.c.key_hash.in_(bindparam("hashes", expanding=True)),
            alias.c.recorded_at <= known_at,
            entity.c.created_at <= known_at,
        )
        .order_by(entity.c.created_at, entity.c.id)
    )


async def aliases(connection: AsyncConnection, scope: Scope, known_at: Revision) -> list[Alias]:
    columns = schema.aliases.c
    query = (
        select(schema.aliases)
        .where(columns.scope == scope.key, columns.recorded_at <= known_at)
        .order_by(columns.key, columns.type, columns.entity)
    )
    return await fetch(connection, query, values.alias_of)


async def views(
    connection: AsyncConnection, scope: Scope, ids: Sequence[StatementId], at: AsOf
) -> list[StatementView]:
    """In the order asked, each once. Statements created after `at.known_at` are left out."""
    statements = {
        statement.id: statement
        for statement in await _of(
            connection, schema.statements, "id", scope, ids, values.statement_of, ("created_at", "id")
        )
        if statement.created_at <= at.known_at
    }
    nodes = await entities(connection, scope, _nodes(statements.values()))
    spans = await _spans(connection, scope, list(statements), at)
    episodes = await _episodes(connection, scope, list(statements), at.known_at)
    return [
        _view(statements[id], nodes, spans[id], episodes[id]) for id in dict.fromkeys(ids) if id in statements
    ]


def _nodes(statements: Iterable[Statement]) -> Iterable[EntityId]:
    for statement in statements:
        yield statement.subject
        yield statement.predicate
        if not isinstance(statement.object, Literal):
            yield statement.object


def _view(
    statement: Statement,
    nodes: Mapping[EntityId, Entity],
    spans: Sequence[Span],
    episodes: Sequence[EpisodeId],
) -> StatementView:
    target = statement.object
    return StatementView(
        statement=statement,
        subject=nodes[statement.subject],
        predicate=nodes[statement.predicate],
        object=None if isinstance(target, Literal) else nodes[target],
        spans=tuple(spans),
        episodes=tuple(episodes),
    )


async def _spans(
    connection: AsyncConnection, scope: Scope, ids: Sequence[StatementId], at: AsOf
) -> Mapping[StatementId, list[Span]]:
    before, after = window(at)
    found: dict[StatementId, list[Span]] = defaultdict(list)
    for chunk in id_chunks(ids):
        asked = {"in_scope": scope.key, "ids": chunk, "known_at": at.known_at}
        asked |= {"before": before, "after": after}
        for row in (await connection.execute(_spans_asked(), asked)).mappings():
            found[row["statement"]].append(values.span_of(row))
    return found


@cache
def _spans_asked() -> Select[Any]:
    """The spans of statements that a revision and a window see, in order; made once. See `as_asked`."""
    columns, known_at = schema.spans.c, _KNOWN_AT
    return (
        select(schema.spans)
        .where(
            columns.scope == bindparam("in_scope"),
            columns.statement.in_(bindparam("ids", expanding=True)),
            columns.known_from <= known_at,
            columns.known_to > known_at,
            columns.valid_at < bindparam("before"),
            columns.invalid_at > bindparam("after"),
        )
        .order_by(columns.valid_at, columns.invalid_at, columns.id)
    )


async def _episodes(
    connection: AsyncConnection, scope: Scope, ids: Sequence[StatementId], known_at: Revision
) -> Mapping[StatementId, list[EpisodeId]]:
    found: dict[StatementId, dict[EpisodeId, None]] = defaultdict(dict)
    for chunk in id_chunks(ids):
        asked = {"in_scope": scope.key, "ids": chunk, "known_at": known_at}
        for statement, episode in await connection.execute(_episodes_known(), asked):
            found[statement][episode] = None
    return defaultdict(list, {statement: list(episodes) for statement, episodes in found.items()})


@cache
def _episodes_known() -> Select[Any]:
    """The episodes whose claims of statements count, as they were attested; made once. See `counting`."""
    claims, revoked_at, known_at = schema.claims, schema.revocations.c.revoked_at, _KNOWN_AT
    return (
        with_revocations(claims)
        .with_only_columns(claims.c.statement, claims.c.episode)
        .where(
            claims.c.scope == bindparam("in_scope"),
            claims.c.statement.in_(bindparam("ids", expanding=True)),
            claims.c.recorded_at <= known_at,
            or_(revoked_at.is_(None), revoked_at > known_at),
            claims.c.episode.is_not(None),
        )
        .order_by(claims.c.attested_at, claims.c.episode)
    )


async def records(connection: AsyncConnection, scope: Scope, ids: Sequence[StatementId]) -> Records:
    """Everything of these statements, each list in the order recorded, spans in that of belief."""
    claims, ends, denials = await _said(connection, "statement", scope, ids)
    return Records(
        statements=await _of(
            connection, schema.statements, "id", scope, ids, values.statement_of, ("created_at", "id")
        ),
        claims=claims,
        ends=ends,
        denials=denials,
        verdicts=await verdicts(connection, scope, ids),
        spans=await _of(
            connection,
            schema.spans,
            "statement",
            scope,
            ids,
            values.span_of,
            ("known_from", "valid_at", "id"),
        ),
    )


async def _of(
    connection: AsyncConnection,
    table: Table,
    column: str,
    scope: Scope,
    ids: Iterable[str],
    read: Callable[[RowMapping], V],
    order: Sequence[str],
) -> list[V]:
    """The rows of a table that belong to some statements or nodes, in one order whatever the chunks."""
    found: list[RowMapping] = []
    for chunk in id_chunks(ids, most_of(connection.dialect.name)):
        found += (await _asked(connection, table, column, scope, chunk)).all()
    return [read(row) for row in sorted(found, key=itemgetter(*order))]


async def _asked(
    connection: AsyncConnection, table: Table, column: str, scope: Scope, ids: Sequence[str]
) -> MappingResult:
    dialect = connection.dialect.name
    asked = {"in_scope": scope.key, "ids": listed(dialect, ids)}
    rows: MappingResult = (await connection.execute(_rows_by(dialect, table, column), asked)).mappings()
    return rows


@cache
def _rows_by(dialect: str, table: Table, column: str) -> Select[Any]:
    """The rows of a scope whose `column` is one of `ids`, records with their revocations; made once."""
    query = with_revocations(table) if "recorded_at" in table.c else select(table)
    return query.where(table.c.scope == bindparam("in_scope"), one_of(dialect, table.c[column], "ids"))


async def _said(
    connection: AsyncConnection, column: str, scope: Scope, ids: Iterable[str]
) -> tuple[list[Any], list[Any], list[Any]]:
    """The claims, ends and denials whose `column` is one of these, each in the order recorded."""
    found: list[RowMapping] = []
    dialect = connection.dialect.name
    for chunk in id_chunks(ids, most_of(dialect)):
        asked = {"in_scope": scope.key, "ids": listed(dialect, chunk)}
        found += (await connection.execute(_said_by(dialect, column), asked)).mappings().all()
    found.sort(key=itemgetter("recorded_at", "id"))
    claims, ends, denials = (
        [read(row) for row in found if row["said"] == table.name] for table, read in RECORD_TABLES
    )
    return claims, ends, denials


@cache
def _said_by(dialect: str, column: str) -> CompoundSelect[Any]:
    """Records of all kinds at once; what a kind has not is NULL. Each part has its own index. Made once."""
    tables = [table for table, _ in RECORD_TABLES]
    columns = {each.name: each for table in tables for each in table.c}

    def part(table: Table) -> Select[Any]:
        there = table.c
        row = (
            there[name] if name in there else cast(null(), each.type).label(name)
            for name, each in columns.items()
        )
        kind = literal_column(f"'{table.name}'", Key).label("said")
        return _rows_by(dialect, table, column).with_only_columns(*row, schema.revocations.c.revoked_at, kind)

    return union_all(*map(part, tables))


async def verdicts(connection: AsyncConnection, scope: Scope, ids: Sequence[StatementId]) -> list[Verdict]:
    """Those on some statements, in the order recorded."""
    found: dict[str, Verdict] = {}
    dialect = connection.dialect.name
    for chunk in id_chunks(ids, most_of(dialect)):
        asked = {"in_scope": scope.key, "ids": listed(dialect, chunk)}
        rows = (await connection.execute(_verdicts_on(dialect), asked)).mappings()
        found |= {row["id"]: values.verdict_of(row) for row in rows}
    return sorted(found.values(), key=lambda verdict: (verdict.recorded_at, verdict.id))


@cache
def _verdicts_on(dialect: str) -> CompoundSelect[Any]:
    """By one side and by the other: for "or" SQLite would read all verdicts of the graph."""
    return union_all(*(_rows_by(dialect, schema.verdicts, side) for side in ("left", "right")))


async def of_episode(connection: AsyncConnection, scope: Scope, episode: EpisodeId) -> Records:
    claims, ends, denials = await _said(connection, "episode", scope, [episode])
    by_record = ("recorded_at", "id")
    judged = await _of(connection, schema.verdicts, "episode", scope, [episode], values.verdict_of, by_record)
    return Records(statements=(), claims=claims, ends=ends, denials=denials, verdicts=judged, spans=())


async def hulls(
    connection: AsyncConnection, scope: Scope, ids: Sequence[StatementId]
) -> dict[StatementId, Interval]:
    """The kept hulls that are not empty."""
    columns = schema.statements.c
    found: dict[StatementId, Interval] = {}
    for chunk in id_chunks(ids):
        query = select(columns.id, columns.hull_from, columns.hull_to).where(
            columns.scope == scope.key, columns.id.in_(chunk)
        )
        for id, start, end in await connection.execute(query):
            if start <= end:
                found[id] = Interval(None if start == UNKNOWN_START else start, None if end == OPEN else end)
    return found


async def orphans(
    connection: AsyncConnection, scope: Scope, ids: Sequence[EntityId], known_at: Revision
) -> list[EntityId]:
    node, statement = schema.entities.c, schema.statements.c
    counts_still = or_(
        *(
            exists(
                with_revocations(table)
                .where(counting(table, scope, known_at), table.c.statement == statement.id)
                .correlate(schema.statements)
            )
            for table, _ in RECORD_TABLES
        )
    )

    def named_as(role: Column[str]) -> Exists:
        naming = select(statement.id).where(statement.scope == scope.key, role == node.id, counts_still)
        return exists(naming.correlate(schema.entities))

    named = or_(*(named_as(role) for role in (statement.subject, statement.predicate, statement.object)))
    found: set[EntityId] = set()
    for chunk in id_chunks(ids):
        query = select(node.id).where(node.scope == scope.key, node.id.in_(chunk), ~named)
        found.update(await connection.scalars(query))
    return [id for id in dict.fromkeys(ids) if id in found]


async def counts(connection: AsyncConnection, scope: Scope, known_at: Revision) -> Counts:
    entity, statement = schema.entities.c, schema.statements.c
    nodes = (
        select(func.count())
        .select_from(schema.entities)
        .where(
            entity.scope == scope.key,
            entity.created_at <= known_at,
            entity.type != EntityType.PREDICATE.value,
        )
    )
    facts = (
        select(func.count())
        .select_from(schema.statements)
        .where(statement.scope == scope.key, has_span(believed(scope, known_at)))
    )
    claims = (
        with_revocations(schema.claims)
        .with_only_columns(func.count())
        .where(counting(schema.claims, scope, known_at))
    )
    return Counts(
        entities=await connection.scalar(nodes) or 0,
        statements=await connection.scalar(facts) or 0,
        claims=await connection.scalar(claims) or 0,
    )
