"""Documents and sources as wholes, as rows: see services/stores/memory/documents.py."""

from collections.abc import Collection, Sequence
from typing import Any

from sqlalchemy import ColumnElement, LargeBinary, and_, cast, delete, func, or_, select, update
from sqlalchemy.ext.asyncio import AsyncConnection

from services.domain.ids import DocumentId, EpisodeId
from services.domain.instants import Instant
from services.domain.memory import Episode, Passage, VersionHead
from services.domain.scope import Scope
from services.stores.chunks import in_chunks
from services.stores.errors import WriteConflict
from services.stores.memory.documents import TextGone
from services.stores.memory.sql import schema, values
from services.stores.memory.sql.dropping import drop_snapshots
from services.stores.memory.sql.following import count_change
from services.stores.memory.sql.values import digest
from services.stores.sql.database import Database
from services.stores.sql.rows import insert_new
from services.stores.storable import is_storable

_EPISODES, _PASSAGES, _VERSIONS = schema.episodes.c, schema.passages.c, schema.versions.c
_HEAD = [_VERSIONS[name] for name in values.HEAD_COLUMNS]


class SqlDocumentTexts:
    """DocumentTexts over the tables of a database."""

    _database: Database

    async def version_heads(self, scope: Scope, document: DocumentId) -> Sequence[VersionHead]:
        """See the port. The size is counted by the database, so that no text is read."""
        of_document = _of_document(_VERSIONS, scope, document)
        async with self._database.read(scope) as connection:
            size = (
                func.octet_length(_VERSIONS.text)
                if connection.dialect.name == "postgresql"
                else func.length(cast(_VERSIONS.text, LargeBinary))
            )
            query = select(*_HEAD, size.label("size")).where(of_document).order_by(_VERSIONS.version.desc())
            return [values.head_of(dict(row)) for row in (await connection.execute(query)).mappings()]

    async def last_version(self, scope: Scope, document: DocumentId) -> int:
        async with self._database.read(scope) as connection:
            greatest = 0
            for columns in (_EPISODES, _VERSIONS):
                query = select(func.max(columns.version)).where(_of_document(columns, scope, document))
                greatest = max(greatest, (await connection.execute(query)).scalar_one() or 0)
        return greatest

    async def of_document(
        self, scope: Scope, document: DocumentId, version: int | None = None
    ) -> Sequence[Episode]:
        query = select(schema.episodes).where(_of_document(_EPISODES, scope, document))
        if version is not None:
            query = query.where(_EPISODES.version == version)
        order = (_EPISODES.version, _EPISODES.position, _EPISODES.id)
        async with self._database.read(scope) as connection:
            rows = (await connection.execute(query.order_by(*order))).mappings()
            return [values.episode_of(dict(row)) for row in rows]

    async def of_source(self, scope: Scope, source: str, limit: int) -> Sequence[Episode]:
        if not source or not is_storable(source):
            return []
        mine = and_(_EPISODES.scope == scope.key, _EPISODES.source == source, _EPISODES.deleted_at.is_(None))
        query = select(schema.episodes).where(mine).order_by(_EPISODES.id).limit(limit)
        async with self._database.read(scope) as connection:
            return [values.episode_of(dict(row)) for row in (await connection.execute(query)).mappings()]

    async def delete_versions(
        self,
        scope: Scope,
        document: DocumentId,
        version: int | None,
        seen: Collection[EpisodeId],
        keeping: tuple[Sequence[Episode], Sequence[Passage]],
        at: Instant,
    ) -> TextGone:
        """See the port. Staged facts and quotes of the voice go with the episodes."""
        whole = version is None
        these = _of_document(_VERSIONS, scope, document)
        if not whole:
            these = and_(these, _VERSIONS.version == version)
        async with self._database.write(scope) as connection:
            query = select(_VERSIONS.version).where(_of_document(_VERSIONS, scope, document))
            there = set((await connection.execute(query.with_for_update())).scalars())
            if any(episode.version not in there for episode in keeping[0]):
                raise WriteConflict("a version that says it as well was deleted")
            found = _of_document(_EPISODES, scope, document) & _EPISODES.deleted_at.is_(None)
            if not whole:
                found &= _EPISODES.version == version
            chosen = select(_EPISODES.id).where(found).order_by(_EPISODES.id).with_for_update()
            ids = [EpisodeId(id) for id in (await connection.execute(chosen)).scalars()]
            if not set(ids) <= set(seen):
                raise WriteConflict("an episode came meanwhile")
            await _keep(connection, scope, ids, *keeping)
            gone = await _empty(connection, scope, ids, [one.id for one in keeping[1]], at)
            await connection.execute(delete(schema.versions).where(these))
            await count_change(connection, scope)
            await drop_snapshots(connection, scope)
        return gone


async def _keep(
    connection: AsyncConnection,
    scope: Scope,
    leaving: Sequence[EpisodeId],
    episodes: Sequence[Episode],
    passages: Sequence[Passage],
) -> None:
    """Moves passages of `leaving` to other episodes. What is not there any more stays away."""
    rows = {episode.id: values.episode_row(scope, episode) for episode in episodes}
    await insert_new(connection, schema.episodes, list(rows.values()))
    for passage in passages:
        row = values.passage_row(scope, passage, rows[passage.episode])
        this = and_(_PASSAGES.scope == scope.key, _PASSAGES.id == passage.id, _PASSAGES.episode.in_(leaving))
        await connection.execute(update(schema.passages).where(this).values(**row))


async def _empty(
    connection: AsyncConnection, scope: Scope, ids: Sequence[EpisodeId], kept: Sequence[str], at: Instant
) -> TextGone:
    passages = 0
    for chunk in in_chunks(ids):
        of_these = and_(_PASSAGES.scope == scope.key, _PASSAGES.episode.in_(chunk))
        passages += (await connection.execute(delete(schema.passages).where(of_these))).rowcount
        staged = and_(schema.staged.c.scope == scope.key, schema.staged.c.episode.in_(chunk))
        await connection.execute(delete(schema.staged).where(staged))
        claims, ends = schema.voice_claims, schema.voice_ends
        cites = and_(claims.c.scope == scope.key, claims.c.episode.in_(chunk))
        if kept:  # its quote goes on to the episode that keeps the passage, when the episode is revoked
            cites &= or_(claims.c.passage.is_(None), claims.c.passage.not_in(kept))
        await connection.execute(update(claims).where(cites).values(quote=""))
        ended = and_(ends.c.scope == scope.key, ends.c.episode.in_(chunk))
        await connection.execute(update(ends).where(ended).values(why=""))
        these = and_(_EPISODES.scope == scope.key, _EPISODES.id.in_(chunk))
        emptied = {**values.EMPTY_EPISODE, "deleted_at": at}
        await connection.execute(update(schema.episodes).where(these).values(**emptied))
    return TextGone(len(ids), passages)


def _of_document(columns: Any, scope: Scope, document: DocumentId) -> ColumnElement[bool]:
    return and_(columns.scope == scope.key, columns.document_key == digest(document))
