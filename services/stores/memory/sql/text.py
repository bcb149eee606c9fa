"""Documents, versions, episodes and passages in SQL; and what deleting an episode removes."""

import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import cache
from typing import Any, TypeVar

from sqlalchemy import ColumnElement, Select, Table, and_, bindparam, delete, exists, func, select, update
from sqlalchemy.ext.asyncio import AsyncConnection

from services.domain.ids import DocumentId, EpisodeId, JobId, PassageId, SessionId
from services.domain.instants import Instant
from services.domain.memory import DocumentVersion, Episode, Passage
from services.domain.scope import Scope
from services.stores.chunks import IN_CHUNK, in_chunks
from services.stores.errors import WriteConflict
from services.stores.memory.documents import TextGone
from services.stores.memory.port import EpisodeFilter
from services.stores.memory.sql import schema, values
from services.stores.memory.sql.documents import SqlDocumentTexts
from services.stores.memory.sql.dropping import drop_snapshots
from services.stores.memory.sql.fences import pass_fence
from services.stores.memory.sql.following import SqlFollowedTexts, count_change
from services.stores.memory.sql.known import check_unknown
from services.stores.memory.sql.staging import CLOSED
from services.stores.memory.sql.values import Stored, digest
from services.stores.paging import Listed, Page
from services.stores.sql.database import Database
from services.stores.sql.keyset import page_of
from services.stores.sql.one_of import listed, most_of, one_of
from services.stores.sql.rows import check_storable, insert_new
from services.stores.storable import is_storable

T = TypeVar("T")
I = TypeVar("I", bound=str)  # noqa: E741

_EPISODES, _PASSAGES, _VERSIONS = schema.episodes.c, schema.passages.c, schema.versions.c

_UNLEARNED = exists().where(
    _EPISODES.scope == _PASSAGES.scope, _EPISODES.id == _PASSAGES.episode, _EPISODES.unlearned_at.is_not(None)
)
"""Of a passage: understanding its episode failed."""

_LONG_ENOUGH = 40
"""Characters from which a text is cut out of a document wherever it stands. A shorter one may be part of
another sentence: it is cut only where it fills whole lines."""


class SqlTextStore(SqlDocumentTexts, SqlFollowedTexts):
    """TextStore over the tables of a database."""

    def __init__(self, database: Database) -> None:
        self._database = database

    async def save(
        self,
        scope: Scope,
        episodes: Sequence[Episode],
        passages: Sequence[Passage],
        version: DocumentVersion | None,
        generation: int | None = None,
        *,
        unknown: bool = False,
    ) -> None:
        """See the port. A repeated save brings nothing back of an episode that was deleted meanwhile.

        Raises ValueError for passages of an episode that is not there.
        """
        episode_rows = [values.episode_row(scope, episode) for episode in episodes]
        version_rows = [values.version_row(scope, version)] if version else []
        check_storable([*episode_rows, *version_rows])
        bare = {"session_key": None, "document_key": None, "version": None}
        check_storable(values.passage_row(scope, passage, bare) for passage in passages)
        async with self._database.write(scope) as connection:
            await pass_fence(connection, scope, generation)
            if version:
                await insert_new(connection, schema.versions, version_rows)
                await _check_owner(connection, scope, version)
            if unknown:
                await check_unknown(connection, scope, episodes, passages)
            came = await insert_new(connection, schema.episodes, episode_rows)
            came += await _save_passages(connection, scope, passages)
            if came:
                await count_change(connection, scope)

    async def episodes(self, scope: Scope, ids: Sequence[EpisodeId]) -> Sequence[Episode]:
        return await self._by_id(scope, schema.episodes, ids, values.episode_of)

    async def passages(self, scope: Scope, ids: Sequence[PassageId]) -> Sequence[Passage]:
        return await self._by_id(scope, schema.passages, ids, values.passage_of)

    async def passages_of(self, scope: Scope, episode: EpisodeId) -> Sequence[Passage]:
        if not is_storable(episode):
            return []
        query = select(schema.passages).where(_PASSAGES.scope == scope.key, _PASSAGES.episode == episode)
        return await self._all(scope, query.order_by(_PASSAGES.position, _PASSAGES.id), values.passage_of)

    async def episodes_of_job(self, scope: Scope, job: JobId) -> Sequence[Episode]:
        if not is_storable(job):
            return []
        query = select(schema.episodes).where(_EPISODES.scope == scope.key, _EPISODES.job == job)
        return await self._all(scope, query.order_by(_EPISODES.position, _EPISODES.id), values.episode_of)

    async def recent(
        self, scope: Scope, session: SessionId, before: Instant, limit: int
    ) -> Sequence[Episode]:
        """See the port. Deleted ones, and those held back, are left out."""
        columns = (_EPISODES.created_at, _EPISODES.position, _EPISODES.id)
        query = (
            select(schema.episodes)
            .where(_kept(scope), _EPISODES.session_key == digest(session), _EPISODES.created_at < before)
            .where(_EPISODES.held.is_(None))
            .order_by(*(column.desc() for column in columns))
            .limit(limit)
        )
        return await self._all(scope, query, values.episode_of)

    async def known_hashes(
        self, scope: Scope, session: SessionId | None, document: DocumentId | None, hashes: Sequence[str]
    ) -> frozenset[str]:
        """See the port. With both named, what either has."""
        known: set[str] = set()
        for column, name in ((_PASSAGES.session_key, session), (_PASSAGES.document_key, document)):
            if name is not None:
                known |= await self._known(scope, column == digest(name), _PASSAGES.hash, hashes)
        return frozenset(known)

    async def known_message_ids(
        self, scope: Scope, session: SessionId, message_ids: Sequence[str]
    ) -> frozenset[str]:
        asked = {digest(id): id for id in message_ids if id}
        in_session = _PASSAGES.session_key == digest(session)
        found = await self._known(scope, in_session, _PASSAGES.message_key, list(filter(None, asked)))
        return frozenset(asked[key] for key in found)

    async def latest_version(self, scope: Scope, document: DocumentId) -> DocumentVersion | None:
        query = _versions(scope, _VERSIONS.document_key == digest(document))
        return await self._first(scope, query.order_by(_VERSIONS.version.desc()), values.version_of)

    async def version(self, scope: Scope, document: DocumentId, version: int) -> DocumentVersion | None:
        query = _versions(scope, _VERSIONS.document_key == digest(document), _VERSIONS.version == version)
        return await self._first(scope, query, values.version_of)

    async def version_of_job(self, scope: Scope, job: JobId) -> DocumentVersion | None:
        if not is_storable(job):
            return None
        query = _versions(scope, _VERSIONS.job == job)
        return await self._first(scope, query.order_by(_VERSIONS.version.desc()), values.version_of)

    async def document_passages(
        self, scope: Scope, document: DocumentId, before_version: int, page: Page
    ) -> Listed[Passage]:
        query = select(schema.passages).where(
            _PASSAGES.scope == scope.key,
            _PASSAGES.document_key == digest(document),
            _PASSAGES.version < before_version,
        )
        return await self._page(scope, query, [_PASSAGES.id], page, values.passage_of)

    async def list_episodes(
        self, scope: Scope, session: SessionId | None, document: DocumentId | None, page: Page
    ) -> Listed[Episode]:
        query = select(schema.episodes).where(_kept(scope))
        if session is not None:
            query = query.where(_EPISODES.session_key == digest(session))
        if document is not None:
            query = query.where(_EPISODES.document_key == digest(document))
        return await self._page(
            scope, query, [_EPISODES.reference_time, _EPISODES.id], page, values.episode_of
        )

    async def latest_episodes(self, scope: Scope, where: EpisodeFilter, page: Page) -> Listed[Episode]:
        if not is_storable(where.source):
            return Listed([])
        query = select(schema.episodes).where(_kept(scope), *_chosen(where))
        order = [_EPISODES.reference_time, _EPISODES.id]
        return await self._page(scope, query, order, page, values.episode_of, descending=True)

    async def scan_passages(self, scope: Scope, page: Page) -> Listed[Passage]:
        query = select(schema.passages).where(_PASSAGES.scope == scope.key)
        return await self._page(scope, query, [_PASSAGES.id], page, values.passage_of)

    async def scan_episodes(self, scope: Scope, page: Page) -> Listed[Episode]:
        query = select(schema.episodes).where(_EPISODES.scope == scope.key)
        return await self._page(scope, query, [_EPISODES.id], page, values.episode_of)

    async def scan_versions(self, scope: Scope, page: Page) -> Listed[DocumentVersion]:
        order = [_VERSIONS.document_key, _VERSIONS.version]
        return await self._page(scope, _versions(scope), order, page, values.version_of)

    async def delete_episode(self, scope: Scope, episode: EpisodeId, at: Instant) -> bool:
        """See the port. With it go what is staged of it, quotes of it, its text in its document's versions.

        Its id and dates stay, and the names of its session and document.
        """
        return bool((await self.delete_episodes(scope, [episode], at)).episodes)

    async def delete_episodes(self, scope: Scope, episodes: Sequence[EpisodeId], at: Instant) -> TextGone:
        async with self._database.write(scope) as connection:
            ids = sorted({id for id in episodes if is_storable(id)})
            gone = [await _delete(connection, scope, id, at) for id in ids]
            removed = [passages for passages in gone if passages is not None]
            if removed:
                await count_change(connection, scope)
                await drop_snapshots(connection, scope)
        return TextGone(len(removed), sum(removed))

    async def mark_unlearned(self, scope: Scope, episode: EpisodeId, at: Instant) -> None:
        if not is_storable(episode):
            return
        staged = schema.staged.c
        closed = exists().where(
            staged.scope == scope.key, staged.episode == _EPISODES.id, staged.payload == CLOSED
        )
        this = and_(_EPISODES.scope == scope.key, _EPISODES.id == episode, ~closed)
        async with self._database.write(scope) as connection:
            await connection.execute(update(schema.episodes).where(this).values(unlearned_at=at))

    async def mark_learned(self, scope: Scope, episode: EpisodeId) -> None:
        if not is_storable(episode):
            return
        this = and_(_EPISODES.scope == scope.key, _EPISODES.id == episode)
        async with self._database.write(scope) as connection:
            await connection.execute(update(schema.episodes).where(this).values(unlearned_at=None, held=None))
            theirs = and_(
                _PASSAGES.scope == scope.key, _PASSAGES.episode == episode, _PASSAGES.held.is_not(None)
            )
            await connection.execute(update(schema.passages).where(theirs).values(held=None))

    async def count_episodes(self, scope: Scope) -> int:
        """How many there are, deleted ones left out."""
        async with self._database.read(scope) as connection:
            query = select(func.count()).select_from(schema.episodes).where(_kept(scope))
            return (await connection.execute(query)).scalar_one()

    async def _by_id(
        self,
        scope: Scope,
        table: Table,
        ids: Sequence[I],
        read: Callable[[Stored], T],
    ) -> list[T]:
        found: dict[str, T] = {}
        async with self._database.read(scope) as connection:
            dialect = connection.dialect.name
            for chunk in _id_chunks(ids, most_of(dialect)):
                asked = {"in_scope": scope.key, "ids": listed(dialect, chunk)}
                rows = (await connection.execute(_rows_by_id(dialect, table), asked)).mappings().all()
                found.update((row["id"], read(row)) for row in rows)
        return [found[id] for id in dict.fromkeys(ids) if id in found]

    async def _known(
        self, scope: Scope, where: ColumnElement[bool], column: ColumnElement[Any], asked: Sequence[str]
    ) -> set[str]:
        found: set[str] = set()
        async with self._database.read(scope) as connection:
            for chunk in _id_chunks(asked):
                query = (
                    select(column)
                    .distinct()
                    .where(_PASSAGES.scope == scope.key, where, column.in_(chunk), ~_UNLEARNED)
                )
                found.update((await connection.execute(query)).scalars())
        return found

    async def _all(self, scope: Scope, query: Select[Any], read: Callable[[Stored], T]) -> list[T]:
        async with self._database.read(scope) as connection:
            return [read(row) for row in (await connection.execute(query)).mappings()]

    async def _first(self, scope: Scope, query: Select[Any], read: Callable[[Stored], T]) -> T | None:
        found = await self._all(scope, query.limit(1), read)
        return found[0] if found else None

    async def _page(
        self,
        scope: Scope,
        query: Select[Any],
        order: Sequence[Any],
        page: Page,
        read: Callable[[Stored], T],
        descending: bool = False,
    ) -> Listed[T]:
        async with self._database.read(scope) as connection:
            rows = await page_of(connection, query, order, page, descending)
        return Listed([read(row) for row in rows.items], rows.after)


def _kept(scope: Scope) -> ColumnElement[bool]:
    return and_(_EPISODES.scope == scope.key, _EPISODES.deleted_at.is_(None))


def _chosen(where: EpisodeFilter) -> Iterator[ColumnElement[bool]]:
    if where.session is not None:
        yield _EPISODES.session_key == digest(where.session)
    if where.document is not None:
        yield _EPISODES.document_key == digest(where.document)
    if where.source:
        yield _EPISODES.source == where.source
    if where.since is not None:
        yield _EPISODES.reference_time >= where.since
    if where.until is not None:
        yield _EPISODES.reference_time < where.until
    if where.held:
        yield _EPISODES.held.is_not(None)


def _versions(scope: Scope, *where: ColumnElement[bool]) -> Select[Any]:
    return select(schema.versions).where(_VERSIONS.scope == scope.key, *where)


@cache
def _rows_by_id(dialect: str, table: Table) -> Select[Any]:
    """Those of a scope; made once."""
    these = one_of(dialect, table.c.id, "ids")
    return select(table).where(table.c.scope == bindparam("in_scope"), these)


def _id_chunks(ids: Iterable[I], size: int = IN_CHUNK) -> Iterator[list[I]]:
    every = list(ids)
    return in_chunks(every if is_storable("".join(every)) else filter(is_storable, every), size)


async def _check_owner(connection: AsyncConnection, scope: Scope, version: DocumentVersion) -> None:
    query = _versions(
        scope, _VERSIONS.document_key == digest(version.document), _VERSIONS.version == version.version
    )
    owner = (await connection.execute(query.with_only_columns(_VERSIONS.job))).scalar_one()
    if owner != version.job:
        raise WriteConflict("another job saved this version of the document")


async def _save_passages(connection: AsyncConnection, scope: Scope, passages: Sequence[Passage]) -> int:
    """How many are new."""
    episodes: dict[str, Stored] = {}
    for chunk in _id_chunks(passage.episode for passage in passages):
        # Locked until the end: a deletion that runs at the same time comes before or after the whole save.
        query = (
            select(schema.episodes)
            .where(_EPISODES.scope == scope.key, _EPISODES.id.in_(chunk))
            .order_by(_EPISODES.id)
            .with_for_update(read=True)
        )
        episodes |= {row["id"]: row for row in (await connection.execute(query)).mappings()}
    if missing := {passage.episode for passage in passages} - episodes.keys():
        raise ValueError(f"{len(missing)} episodes of these passages are not there")
    rows = [
        values.passage_row(scope, passage, episodes[passage.episode])
        for passage in passages
        if episodes[passage.episode]["deleted_at"] is None
    ]
    return await insert_new(connection, schema.passages, rows)


async def _delete(connection: AsyncConnection, scope: Scope, episode: EpisodeId, at: Instant) -> int | None:
    """How many passages went; None if the episode is not there or deleted already."""
    this = and_(_kept(scope), _EPISODES.id == episode)
    query = select(schema.episodes).where(this).with_for_update()
    row = (await connection.execute(query)).mappings().one_or_none()
    if row is None:
        return None
    of_episode = and_(_PASSAGES.scope == scope.key, _PASSAGES.episode == episode)
    texts = (await connection.execute(select(_PASSAGES.text).where(of_episode))).scalars().all()
    await connection.execute(delete(schema.passages).where(of_episode))
    staged = and_(schema.staged.c.scope == scope.key, schema.staged.c.episode == episode)
    await connection.execute(delete(schema.staged).where(staged))
    for table, text in ((schema.voice_claims, "quote"), (schema.voice_ends, "why")):
        cites = and_(table.c.scope == scope.key, table.c.episode == episode)
        await connection.execute(update(table).where(cites).values({text: ""}))
    if row["document_key"] is not None:
        await _cut_from_versions(connection, scope, row["document_key"], [row["text"], *texts])
    await connection.execute(
        update(schema.episodes).where(this).values(**values.EMPTY_EPISODE, deleted_at=at)
    )
    return len(texts)


async def _cut_from_versions(
    connection: AsyncConnection, scope: Scope, document_key: str, texts: Sequence[str]
) -> None:
    query = _versions(scope, _VERSIONS.document_key == document_key).with_for_update()
    for row in (await connection.execute(query)).mappings().all():
        left = cut(row["text"], texts)
        if left != row["text"]:
            this = and_(
                _VERSIONS.scope == scope.key,
                _VERSIONS.document_key == document_key,
                _VERSIONS.version == row["version"],
            )
            await connection.execute(update(schema.versions).where(this).values(text=left))


def cut(document: str, texts: Iterable[str]) -> str:
    """The document without these texts, longest first; short ones only where they fill whole lines."""
    for text in sorted({text.strip() for text in texts} - {""}, key=lambda text: (-len(text), text)):
        if len(text) >= _LONG_ENOUGH:
            document = document.replace(text, "")
        else:
            document = re.sub(rf"^[ \t]*{re.escape(text)}[ \t]*$", "", document, flags=re.MULTILINE)
    return document
