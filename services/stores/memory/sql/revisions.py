"""The revision log in SQL: a compare-and-set that the primary key decides among processes."""

from collections.abc import Mapping, Sequence
from functools import cache
from typing import Any

from sqlalchemy import (
    ColumnElement,
    Select,
    Update,
    and_,
    bindparam,
    exists,
    func,
    literal_column,
    or_,
    select,
    update,
)
from sqlalchemy.ext.asyncio import AsyncConnection

from services.domain.ids import Revision
from services.domain.instants import Instant
from services.domain.scope import Scope
from services.stores.chunks import in_chunks
from services.stores.errors import WriteConflict
from services.stores.memory.following import TextChanges
from services.stores.memory.port import Decision, Head, LogState, RevisionEntry
from services.stores.memory.sql import schema
from services.stores.memory.sql.decisions import decision_rows
from services.stores.memory.sql.dropping import drop_snapshots
from services.stores.memory.sql.fences import pass_fence
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
            current, generation, texts, archives, labels = asked.one()
        changes = TextChanges(texts or 0)
        return Head(Revision(current or 0), generation or 0, changes, bool(archives), bool(labels))

    async def pending(self, scope: Scope) -> RevisionEntry | None:
        async with self._database.read(scope) as connection:
            return await _entry(connection, scope, _REVISIONS.published.is_(False))

    async def state(self, scope: Scope, commit_id: str) -> LogState:
        asked = {"in_scope": scope.key, "commit": commit_id if is_storable(commit_id) else ""}
        async with self._database.read(scope) as connection:
            rows = (await connection.execute(_state(), asked)).mappings().all()
        found = [_entry_of(row) for row in rows if row["revision"] is not None]
        last = max(found, key=lambda entry: entry.revision, default=None)
        done = [entry for entry in found if entry.commit_id == commit_id]
        return LogState(
            current=_published(last),
            pending=last if last and not last.published else None,
            done=max(done, key=lambda entry: entry.revision, default=None),
            generation=rows[0]["generation"] or 0,
            merged=rows[0]["merged"],
            archived=rows[0]["archived"],
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
            rows = (await connection.execute(_last(), {"in_scope": scope.key})).mappings()
            last = next(map(_entry_of, rows), None)
            if last and last.revision == after and not last.published:
                raise WriteConflict("the revision before is not published")
            # Of writers that get here together the first to commit wins, by the primary key.
            if after == (last.revision if last else 0) and await insert_new(
                connection, schema.revisions, [row]
            ):
                return _entry_of(row)
            entry = await _entry(connection, scope, _this(after + 1))
        if entry is None or entry.commit_id != commit_id:
            raise WriteConflict("another revision was begun")
        return entry

    async def publish(
        self,
        scope: Scope,
        revision: Revision,
        decisions: Sequence[Decision] = (),
        *,
        forgets: bool = False,
    ) -> bool:
        rows = decision_rows(scope, decisions)
        async with self._database.write(scope) as connection:
            await insert_new(connection, schema.decisions, rows)
            this = {"in_scope": scope.key, "this": revision}
            published = await connection.execute(_publishing(), this)
            if forgets:
                await drop_snapshots(connection, scope)
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
    changes = select(schema.text_changes.c.changes).where(schema.text_changes.c.scope == this)
    any_of = [
        select(table.c.scope).where(table.c.scope == this).exists()
        for table in (schema.archive, schema.summaries.session_labels)
    ]
    return select(*(part.scalar_subquery() for part in (latest, generation, changes)), *any_of)


@cache
def _state() -> Select[Any]:
    """The last revision and that of a commit, beside the fence's generation; a row though there are none."""
    this, commit = bindparam("in_scope", type_=Key), bindparam("commit", type_=Key)
    latest = select(func.max(_REVISIONS.revision)).where(_REVISIONS.scope == this).scalar_subquery()
    wanted = or_(_REVISIONS.revision == latest, _REVISIONS.commit_id == commit)
    asked = select(literal_column("1").label("one")).subquery("asked")
    fence = asked.outerjoin(schema.fences, schema.fences.c.scope == this)
    beside = fence.outerjoin(schema.revisions, and_(_REVISIONS.scope == this, wanted))
    any_of = (
        exists(select(table.c.scope).where(table.c.scope == this)).label(name)
        for name, table in (("merged", schema.merges), ("archived", schema.archive))
    )
    return select(schema.fences.c.generation, schema.revisions, *any_of).select_from(beside)


@cache
def _last() -> Select[Any]:
    here = select(schema.revisions).where(_REVISIONS.scope == bindparam("in_scope"))
    return here.order_by(_REVISIONS.revision.desc()).limit(1)


@cache
def _publishing() -> Update:
    this = and_(_REVISIONS.scope == bindparam("in_scope"), _REVISIONS.revision == bindparam("this"))
    begun = and_(this, _REVISIONS.published.is_(False))
    return update(schema.revisions).where(begun).values(published=True, payload=b"")


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
