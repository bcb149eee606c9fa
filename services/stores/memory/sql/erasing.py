"""Erasing in memory's tables: what an entity leaves there, and texts that are written anew."""

from collections.abc import Iterable

from sqlalchemy import ColumnElement, Table, and_, delete, update
from sqlalchemy.ext.asyncio import AsyncConnection

from services.domain.scope import Scope
from services.stores.chunks import in_chunks
from services.stores.memory.fences import Purged, Rewritten
from services.stores.memory.sql import schema, values
from services.stores.memory.sql.dropping import drop_snapshots
from services.stores.memory.sql.following import count_change
from services.stores.memory.sql.staging import CLOSED
from services.stores.memory.sql.values import digest
from services.stores.sql.rows import check_storable
from services.stores.storable import is_storable

_EPISODE_TEXTS = ("text", "heading", "title", "source", "metadata")


async def purge(connection: AsyncConnection, scope: Scope, purged: Purged) -> None:
    """See ErasableMemory in the port."""
    claims, ends, decisions = schema.voice_claims, schema.voice_ends, schema.decisions
    for table, column in ((claims, claims.c.voice), (ends, ends.c.voice), (schema.voice, schema.voice.c.id)):
        await _delete(connection, scope, table, column, purged.voice)
    await _delete(connection, scope, claims, claims.c.id, purged.records)
    revoked = schema.voice_revocations
    await _delete(connection, scope, revoked, revoked.c.record, purged.records)
    await _empty(connection, scope, ends, ends.c.id, purged.ends)
    for column in (decisions.c.target, decisions.c.other):
        await _delete(connection, scope, decisions, column, purged.targets)
        await _empty(connection, scope, decisions, column, purged.reasons)
    merges, readings = schema.merges, schema.reading_revocations
    await _delete(connection, scope, merges, merges.c.id, purged.merges)
    await _delete(connection, scope, readings, readings.c.record, purged.merges)
    await _empty(connection, scope, merges, merges.c.id, purged.merge_reasons)
    await _delete(connection, scope, schema.archive, schema.archive.c.statement, purged.statements)
    await drop_snapshots(connection, scope)


async def rewrite(connection: AsyncConnection, scope: Scope, rewritten: Rewritten) -> None:
    """See ErasableMemory in the port."""
    episodes, versions, staged = schema.episodes, schema.versions, schema.staged
    for episode in rewritten.episodes:
        row = values.episode_row(scope, episode)
        texts = {name: row[name] for name in _EPISODE_TEXTS}
        check_storable([texts])
        this = and_(episodes.c.scope == scope.key, episodes.c.id == episode.id)
        await connection.execute(update(episodes).where(this).values(**texts))
    for chunk in in_chunks(one.id for one in rewritten.episodes):
        these = and_(staged.c.scope == scope.key, staged.c.episode.in_(chunk))
        await connection.execute(update(staged).where(these).values(payload=CLOSED))
    for version in rewritten.versions:
        changed = {"text": version.text, "title": version.title}
        check_storable([changed])
        that = and_(
            versions.c.scope == scope.key,
            versions.c.document_key == digest(version.document),
            versions.c.version == version.version,
        )
        await connection.execute(update(versions).where(that).values(**changed))
    await _delete(connection, scope, schema.passages, schema.passages.c.id, rewritten.passages)
    await count_change(connection, scope)
    await drop_snapshots(connection, scope)


async def _delete(
    connection: AsyncConnection, scope: Scope, table: Table, column: ColumnElement[str], ids: Iterable[str]
) -> None:
    for chunk in in_chunks(id for id in ids if is_storable(id)):
        await connection.execute(delete(table).where(table.c.scope == scope.key, column.in_(chunk)))


async def _empty(
    connection: AsyncConnection, scope: Scope, table: Table, column: ColumnElement[str], ids: Iterable[str]
) -> None:
    """Of these rows the reasons."""
    for chunk in in_chunks(id for id in ids if is_storable(id)):
        these = and_(table.c.scope == scope.key, column.in_(chunk))
        await connection.execute(update(table).where(these).values(why=""))
