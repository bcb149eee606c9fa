"""Writes to the graph's tables: a commit as one transaction, and what forgetting empties."""

from collections.abc import Mapping, Sequence
from functools import cache

from sqlalchemy import ColumnElement, Delete, Table, Update, bindparam, case, delete, select, update
from sqlalchemy.ext.asyncio import AsyncConnection

from services.domain.graph import Span
from services.domain.records import Record, Verdict
from services.domain.scope import Scope
from services.stores.chunks import in_chunks
from services.stores.graph.port import ClosedSpan, Commit, Forgetting, Revocation
from services.stores.graph.sql import schema, values
from services.stores.graph.sql.conditions import id_chunks
from services.stores.graph.sql.schema import OPEN, UNKNOWN_START
from services.stores.sql.rows import Key, Row, check_storable, insert_new, insert_or_update
from services.stores.storable import is_storable

# Children after what they point at; every writer takes them in this order, so that none deadlocks.
_TEXTS: Mapping[Table, Mapping[str, str]] = {
    schema.entities: {"name": "", "key": "", "aliases": "[]"},
    schema.statements: {"fact": "", "literal_text": ""},
}
"""Columns that `forget` empties and a later commit fills again, each with its empty value."""
_RECORD_TEXTS: Mapping[Table, Sequence[str]] = {
    schema.claims: ("quote", "time_text"),
    schema.ends: ("quote",),
    schema.denials: ("quote",),
}

Batch = Sequence[tuple[Table, Sequence[Row]]]


def batch(scope: Scope, commit: Commit) -> Batch:
    """The rows of a commit. Raises UnstorableText if a text among them can't be stored."""
    key = scope.key
    rows: Batch = (
        (schema.entities, [values.entity_row(key, entity) for entity in commit.entities]),
        (schema.aliases, [values.alias_row(key, alias, commit.revision) for alias in commit.aliases]),
        (schema.statements, [values.statement_row(key, statement) for statement in commit.statements]),
        (schema.claims, [values.claim_row(key, claim) for claim in commit.claims]),
        (schema.ends, [values.end_row(key, end) for end in commit.ends]),
        (schema.denials, [values.denial_row(key, denial) for denial in commit.denials]),
        (schema.verdicts, [values.verdict_row(key, verdict) for verdict in commit.verdicts]),
        (schema.revocations, _revocations(key, commit)),
        (schema.spans, [values.span_row(key, span) for span in commit.opened]),
    )
    for _, table_rows in rows:
        check_storable(table_rows)
    # As JSON they would be stored escaped; they are refused like every other text.
    check_storable({"aliases": alias} for entity in commit.entities for alias in entity.aliases)
    return rows


async def write(connection: AsyncConnection, scope: Scope, commit: Commit, rows: Batch) -> None:
    """Inserts what is not there yet, widens hulls, and closes spans."""
    for table, table_rows in rows:
        if table in _TEXTS:
            # What is there stays as it is, unless its text was forgotten by an earlier revision.
            texts, forgotten = [*_TEXTS[table], "forgotten_at"], table.c.forgotten_at < commit.revision
            await insert_or_update(connection, table, table_rows, texts, where=forgotten)
        else:
            await insert_new(connection, table, table_rows)
    await _drop_forgotten_aliases(connection, scope, commit)
    await _widen(connection, scope, commit.opened)
    await _close(connection, scope, commit)


async def forget(connection: AsyncConnection, scope: Scope, forgetting: Forgetting) -> None:
    """Empties the text of statements with their records, of records alone, and of entities with aliases."""
    for chunk in id_chunks(forgetting.statements):
        await _empty(connection, scope, schema.statements, chunk, forgetting.revision)
        for table, names in _RECORD_TEXTS.items():
            await _empty_records(connection, scope, table, names, table.c.statement.in_(chunk))
        await _empty_reasons(connection, scope, chunk)
    for nodes in id_chunks(forgetting.entities):
        await _empty(connection, scope, schema.entities, nodes, forgetting.revision)
        await connection.execute(_aliases_of(scope, nodes))
    for some in in_chunks(forgetting.records):
        ids = [one.record for one in some if is_storable(one.record)]
        statements = sorted({one.statement for one in some if is_storable(one.statement)})
        for table, names in _RECORD_TEXTS.items():
            these = table.c.statement.in_(statements) & table.c.id.in_(ids)
            await _empty_records(connection, scope, table, names, these)
        await _empty_records(connection, scope, schema.verdicts, ["why"], schema.verdicts.c.id.in_(ids))
    await _retell(connection, scope, forgetting)


async def _empty(
    connection: AsyncConnection, scope: Scope, table: Table, ids: Sequence[str], revision: int
) -> None:
    values = {**_TEXTS[table], "forgotten_at": revision}
    if "literal_text" in values:
        # Only where there is a literal: NULL says that the object is an entity.
        literal = table.c.literal_text
        values["literal_text"] = case((literal.is_not(None), ""), else_=None)
    await connection.execute(
        update(table).where(table.c.scope == scope.key, table.c.id.in_(ids)).values(values)
    )


async def _empty_records(
    connection: AsyncConnection,
    scope: Scope,
    table: Table,
    names: Sequence[str],
    these: ColumnElement[bool],
) -> None:
    await connection.execute(
        update(table).where(table.c.scope == scope.key, these).values(dict.fromkeys(names, ""))
    )


async def _empty_reasons(connection: AsyncConnection, scope: Scope, statements: Sequence[str]) -> None:
    """Of the verdicts on these statements, on whichever side."""
    # One by one: an OR of both sides is looked up by the scope alone.
    for side in (schema.verdicts.c.left, schema.verdicts.c.right):
        await _empty_records(connection, scope, schema.verdicts, ["why"], side.in_(statements))


async def _retell(connection: AsyncConnection, scope: Scope, forgetting: Forgetting) -> None:
    sentences = {id: sentence for id, sentence in forgetting.retold if is_storable(id)}
    if not sentences:
        return
    columns = schema.statements.c
    statement = (
        update(schema.statements)
        # What was forgotten since stays so.
        .where(
            columns.scope == bindparam("in_scope"),
            columns.id == bindparam("of"),
            columns.forgotten_at.is_(None),
        )
        .values(fact=bindparam("sentence"))
    )
    await connection.execute(
        statement,
        [{"in_scope": scope.key, "of": of, "sentence": anew} for of, anew in sorted(sentences.items())],
    )
    for chunk in in_chunks(sentences):
        await _empty_reasons(connection, scope, chunk)


def _aliases_of(scope: Scope, nodes: Sequence[str]) -> Delete:
    aliases = schema.aliases.c
    return delete(schema.aliases).where(aliases.scope == scope.key, aliases.entity.in_(nodes))


async def _drop_forgotten_aliases(connection: AsyncConnection, scope: Scope, commit: Commit) -> None:
    """A commit that is applied late must not name again what a later revision forgot."""
    for chunk in id_chunks(alias.entity for alias in commit.aliases):
        asked = {"in_scope": scope.key, "ids": chunk, "revision": commit.revision}
        await connection.execute(_forgotten_aliases(), asked)


@cache
def _forgotten_aliases() -> Delete:
    aliases, node, this = schema.aliases.c, schema.entities.c, bindparam("in_scope", type_=Key)
    forgotten = select(node.id).where(
        node.scope == this,
        node.id.in_(bindparam("ids", expanding=True)),
        node.forgotten_at >= bindparam("revision"),
    )
    return delete(schema.aliases).where(aliases.scope == this, aliases.entity.in_(forgotten))


def _revocations(key: str, commit: Commit) -> list[Row]:
    """Those of the commit, and of records that come revoked already (an import)."""
    records: list[Record] = [*commit.claims, *commit.ends, *commit.denials, *commit.verdicts]
    found: dict[str, Row] = {}
    for record in records:
        if record.revoked_at is not None:
            statement = record.left if isinstance(record, Verdict) else record.statement
            found[record.id] = _revocation_row(key, Revocation(record.id, statement), record.revoked_at)
    for revocation in commit.revocations:
        found.setdefault(revocation.record, _revocation_row(key, revocation, commit.revision))
    return list(found.values())


def _revocation_row(key: str, revocation: Revocation, revision: int) -> Row:
    return {
        "scope": key,
        "record": revocation.record,
        "statement": revocation.statement,
        "revoked_at": revision,
    }


async def _widen(connection: AsyncConnection, scope: Scope, opened: Sequence[Span]) -> None:
    hulls: dict[str, tuple[int, int]] = {}
    for span in opened:
        first, last = hulls.get(span.statement, (OPEN, UNKNOWN_START))
        start = UNKNOWN_START if span.valid_at is None else span.valid_at
        end = OPEN if span.invalid_at is None else span.invalid_at
        hulls[span.statement] = min(first, start), max(last, end)
    if not hulls:
        return
    await connection.execute(
        _widening(),
        [
            {"in_scope": scope.key, "of": of, "start": start, "until": end}
            for of, (start, end) in sorted(hulls.items())
        ],
    )


@cache
def _widening() -> Update:
    columns = schema.statements.c
    start, until = (
        bindparam("start", type_=columns.hull_from.type),
        bindparam("until", type_=columns.hull_to.type),
    )
    return (
        update(schema.statements)
        .where(columns.scope == bindparam("in_scope"), columns.id == bindparam("of"))
        .values(
            hull_from=case((columns.hull_from > start, start), else_=columns.hull_from),
            hull_to=case((columns.hull_to < until, until), else_=columns.hull_to),
        )
    )


@cache
def _closing() -> Update:
    columns = schema.spans.c
    return (
        update(schema.spans)
        .where(
            columns.scope == bindparam("in_scope"),
            columns.statement == bindparam("of"),
            columns.id == bindparam("span"),
            columns.known_to == OPEN,
        )
        .values(known_to=bindparam("until"))
    )


async def _close(connection: AsyncConnection, scope: Scope, commit: Commit) -> None:
    if not commit.closed:
        return

    def place(closed: ClosedSpan) -> tuple[str, str]:
        return closed.statement, closed.span

    await connection.execute(
        _closing(),
        [
            {"in_scope": scope.key, "of": closed.statement, "span": closed.span, "until": commit.revision}
            for closed in sorted(commit.closed, key=place)
        ],
    )
