"""The revision log in SQL: a compare-and-set that the primary key decides among processes."""

from collections.abc import Mapping, Sequence
from functools import cache
from typing import Any

from sqlalchemy import ColumnElement, Select, and_, bindparam, func, select, update
from sqlalchemy.ext.asyncio import AsyncConnection

from services.domain.ids import Revision
from services.domain.instants import Instant
from services.domain.scope import Scope
from services.stores.chunks import in_chunks
from services.stores.errors import WriteConflict
from services.stores.memory.following import TextState
from services.stores.memory.port import Head, LogState, RevisionEntry
from services.stores.memory.sql import schema
from services.stores.memory.sql.fences import fence_of, pass_fence
from services.stores.paging import Listed, Page
from services.stores.sql.database import Database
from services.stores.sql.keyset import page_of
from services.stores.sql.rows import Key, insert_new
from services.stores.storable import is_storable

_REVISIONS = schema.revisions.c


class SqlRevisionLog:
    """RevisionLog over a table of a database."""

    def __init__(self, database: Database) -> None:
        self._database = database

    async def current(self, scope: Scope) -> Revision:
        async with self._database.read(scope) as connection:
            return await _latest(connection, scope, _REVISIONS.published.is_(True))

    async def head(self, scope: Scope) -> Head:
        async with self._database.read(scope) as connection:
            asked = await connection.execute(_head(), {"in_scope": scope.key})
            current, generation, saved, passages, archives, labels = asked.one()
        texts = TextState(saved, passages)
        return Head(Revision(current or 0), generation or 0, texts, bool(archives), bool(labels))

    async def pending(self, scope: Scope) -> RevisionEntry | None:
        async with self._database.read(scope) as connection:
            return await _entry(connection, scope, _REVISIONS.published.is_(False))

    async def state(self, scope: Scope, commit_id: str) -> LogState:
        async with self._database.read(scope) as connection:
            last = await _entry(connection, scope)
            return LogState(
                current=_published(last),
                pending=last if last and not last.published else None,
                done=await _entry(connection, scope, _REVISIONS.commit_id == commit_id)
                if is_storable(commit_id)
                else None,
                generation=(await fence_of(connection, scope)).generation,
            )

    async def begin(
        self,
        scope: Scope,
        after: Revision,
        commit_id: str,
        at: Instant,
        payload: bytes,
        summary: str,
        generation: int | None = None,
    ) -> RevisionEntry:
        """See the port. The same commit begun again after the same revision gets its first entry.

        Raises WriteConflict too while `after` itself is not published, and for a commit id that another
        revision has.
        """
        row = {
            "scope": scope.key,
            "revision": after + 1,
            "commit_id": commit_id,
            "at": at,
            "published": False,
            "payload": payload,
            "summary": summary,
        }
        async with self._database.write(scope) as connection:
            await pass_fence(connection, scope, generation)
            last = await _entry(connection, scope)
            if last and last.revision == after and not last.published:
                raise WriteConflict("the revision before is not published")
            if after == (last.revision if last else 0):
                # Of writers that get here together the first to commit wins, by the primary key.
                await insert_new(connection, schema.revisions, [row])
            entry = await _entry(connection, scope, _this(after + 1))
        if entry is None or entry.commit_id != commit_id:
            raise WriteConflict("another revision was begun")
        return entry

    async def publish(self, scope: Scope, revision: Revision) -> bool:
        this = and_(_REVISIONS.scope == scope.key, _this(revision), _REVISIONS.published.is_(False))
        async with self._database.write(scope) as connection:
            published = await connection.execute(
                update(schema.revisions).where(this).values(published=True, payload=b"")
            )
            return bool(published.rowcount)

    async def entry(self, scope: Scope, commit_id: str) -> RevisionEntry | None:
        if not is_storable(commit_id):
            return None
        async with self._database.read(scope) as connection:
            return await _entry(connection, scope, _REVISIONS.commit_id == commit_id)

    async def at(self, scope: Scope, clock: Instant) -> Revision:
        async with self._database.read(scope) as connection:
            return await _latest(connection, scope, _REVISIONS.published.is_(True), _REVISIONS.at <= clock)

    async def clocks(self, scope: Scope, revisions: Sequence[Revision]) -> Mapping[Revision, Instant]:
        found: dict[Revision, Instant] = {}
        query = select(_REVISIONS.revision, _REVISIONS.at).where(_REVISIONS.scope == scope.key)
        async with self._database.read(scope) as connection:
            for chunk in in_chunks(revisions):
                rows = await connection.execute(query.where(_REVISIONS.revision.in_(chunk)))
                found.update((Revision(revision), Instant(at)) for revision, at in rows)
        return found

    async def between(self, scope: Scope, after: Revision, until: Revision) -> Sequence[RevisionEntry]:
        here = and_(_REVISIONS.scope == scope.key, _REVISIONS.published.is_(True))
        asked = and_(_REVISIONS.revision > after, _REVISIONS.revision <= until)
        query = select(schema.revisions).where(here, asked).order_by(_REVISIONS.revision)
        async with self._database.read(scope) as connection:
            return [_entry_of(dict(row)) for row in (await connection.execute(query)).mappings()]

    async def scan(self, scope: Scope, page: Page) -> Listed[RevisionEntry]:
        query = select(schema.revisions).where(_REVISIONS.scope == scope.key)
        async with self._database.read(scope) as connection:
            rows = await page_of(connection, query, [_REVISIONS.revision], page)
        return Listed([_entry_of(row) for row in rows.items], rows.after)

    async def since(self, scope: Scope, after: Revision, limit: int) -> Sequence[RevisionEntry]:
        this = and_(
            _REVISIONS.scope == scope.key, _REVISIONS.revision > after, _REVISIONS.published.is_(True)
        )
        query = select(schema.revisions).where(this).order_by(_REVISIONS.revision).limit(limit)
        async with self._database.read(scope) as connection:
            return [_entry_of(dict(row)) for row in (await connection.execute(query)).mappings()]


@cache
def _head() -> Select[Any]:
    """Everything of `Head` in one row: every read of memory begins with it. Made once."""
    this = bindparam("in_scope", type_=Key)
    published = and_(_REVISIONS.scope == this, _REVISIONS.published.is_(True))
    latest = select(_REVISIONS.revision).where(published).order_by(_REVISIONS.revision.desc()).limit(1)
    generation = select(schema.fences.c.generation).where(schema.fences.c.scope == this)
    counts = [
        select(func.count()).select_from(table).where(table.c.scope == this)
        for table in (schema.episodes, schema.passages)
    ]
    any_of = [
        select(table.c.scope).where(table.c.scope == this).exists()
        for table in (schema.archive, schema.summaries.session_labels)
    ]
    return select(*(part.scalar_subquery() for part in (latest, generation, *counts)), *any_of)


def _this(revision: int) -> ColumnElement[bool]:
    return _REVISIONS.revision == revision


def _newest(query: Select[Any], scope: Scope, *where: ColumnElement[bool]) -> Select[Any]:
    return query.where(_REVISIONS.scope == scope.key, *where).order_by(_REVISIONS.revision.desc()).limit(1)


async def _latest(connection: AsyncConnection, scope: Scope, *where: ColumnElement[bool]) -> Revision:
    query = _newest(select(_REVISIONS.revision), scope, *where)
    return Revision((await connection.execute(query)).scalar_one_or_none() or 0)


async def _entry(
    connection: AsyncConnection, scope: Scope, *where: ColumnElement[bool]
) -> RevisionEntry | None:
    query = _newest(select(schema.revisions), scope, *where)
    row = (await connection.execute(query)).mappings().one_or_none()
    return None if row is None else _entry_of(row)


def _published(last: RevisionEntry | None) -> Revision:
    """The latest published revision: only the last that was begun may be another."""
    if last is None:
        return Revision(0)
    return last.revision if last.published else Revision(last.revision - 1)


def _entry_of(row: Mapping[str, Any]) -> RevisionEntry:
    return RevisionEntry(
        revision=Revision(row["revision"]),
        commit_id=row["commit_id"],
        at=Instant(row["at"]),
        published=row["published"],
        payload=row["payload"],
        summary=row["summary"],
    )
