"""Voice aspects in SQL, with their claims, ends and revocations, as known at a revision."""

from collections import defaultdict
from collections.abc import Iterable, Sequence
from typing import Any

from sqlalchemy import ColumnElement, Select, Subquery, Table, and_, case, exists, func, or_, select, update
from sqlalchemy.ext.asyncio import AsyncConnection

from services.domain.ids import EpisodeId, RecordId, Revision, VoiceId
from services.domain.instants import Instant
from services.domain.memory import VoiceAspect, VoiceClaim, VoiceEnd, VoiceKind
from services.domain.scope import Scope
from services.stores.chunks import in_chunks
from services.stores.memory.port import VoiceFilter, VoiceForgetting
from services.stores.memory.sql import schema, values
from services.stores.memory.sql.dropping import drop_snapshots
from services.stores.paging import Listed, Page
from services.stores.sql.database import Database
from services.stores.sql.keyset import page_of
from services.stores.sql.rows import check_storable, insert_new, insert_or_update
from services.stores.storable import is_storable

_VOICE = schema.voice.c
_REVOKED_AT = schema.voice_revocations.c.revoked_at


class SqlVoiceStore:
    """VoiceStore over tables of a database."""

    def __init__(self, database: Database) -> None:
        self._database = database

    async def apply(
        self,
        scope: Scope,
        revision: Revision,
        aspects: Sequence[VoiceAspect],
        claims: Sequence[VoiceClaim],
        ends: Sequence[VoiceEnd],
        revoked: Sequence[RecordId],
    ) -> None:
        """See the port. A forgotten aspect gets its text back; of several revocations the first stands.

        Raises UnstorableText before writing anything.
        """
        voice_rows = [values.voice_row(scope, aspect) for aspect in aspects]
        claim_rows = [values.voice_claim_row(scope, claim) for claim in claims]
        end_rows = [values.voice_end_row(scope, end) for end in ends]
        revocations = [
            {"scope": scope.key, "record": record, "revoked_at": revision}
            for record in dict.fromkeys(revoked)
        ]
        check_storable([*voice_rows, *claim_rows, *end_rows, *revocations])
        async with self._database.write(scope) as connection:
            texts, forgotten = ["text", "forgotten_at"], _VOICE.forgotten_at < revision
            await insert_or_update(connection, schema.voice, voice_rows, texts, where=forgotten)
            await insert_new(connection, schema.voice_claims, claim_rows)
            await insert_new(connection, schema.voice_ends, end_rows)
            await insert_new(connection, schema.voice_revocations, revocations)

    async def aspects(self, scope: Scope, ids: Sequence[VoiceId]) -> Sequence[VoiceAspect]:
        found: dict[str, VoiceAspect] = {}
        query = select(schema.voice).where(_VOICE.scope == scope.key)
        async with self._database.read(scope) as connection:
            for chunk in in_chunks(id for id in ids if is_storable(id)):
                rows = await _all(connection, query.where(_VOICE.id.in_(chunk)))
                found |= {aspect.id: aspect for aspect in await _whole(connection, scope, rows)}
        return [found[id] for id in dict.fromkeys(ids) if id in found]

    async def list_aspects(
        self, scope: Scope, kinds: Sequence[VoiceKind], known_at: Revision, page: Page
    ) -> Listed[VoiceAspect]:
        """See the port. With claims, ends and revocations recorded by `known_at`. No kinds means all."""
        claims = schema.voice_claims
        claimed = _with_revocations(claims).where(
            claims.c.voice == _VOICE.id, claims.c.scope == scope.key, _counts(claims, known_at)
        )
        query = select(schema.voice).where(_VOICE.scope == scope.key, exists(claimed))
        if kinds:
            query = query.where(_VOICE.kind.in_([kind.value for kind in kinds]))
        async with self._database.read(scope) as connection:
            rows = await page_of(connection, query, [_VOICE.created_at, _VOICE.id], page)
            return Listed(await _whole(connection, scope, rows.items, known_at), rows.after)

    async def list_held(
        self, scope: Scope, where: VoiceFilter, known_at: Revision, page: Page
    ) -> Listed[VoiceAspect]:
        if where.episode is not None and not is_storable(where.episode):
            return Listed([])
        said = _said(scope, where.episode, known_at)
        query = (
            select(schema.voice, said.c.start)
            .join(said, said.c.voice == _VOICE.id)
            .where(_VOICE.scope == scope.key)
        )
        if where.kinds:
            query = query.where(_VOICE.kind.in_([kind.value for kind in where.kinds]))
        if where.held_at is not None:
            query = query.where(said.c.start <= where.held_at, ~_over(scope, said, where.held_at, known_at))
        async with self._database.read(scope) as connection:
            rows = await page_of(connection, query, [said.c.start, _VOICE.id], page, descending=True)
            return Listed(await _whole(connection, scope, rows.items, known_at), rows.after)

    async def of_episode(self, scope: Scope, episode: EpisodeId) -> Sequence[VoiceAspect]:
        """Aspects with a claim or an end of this episode, with all their records; creation order."""
        if not is_storable(episode):
            return []
        cited = [
            _VOICE.id.in_(select(table.c.voice).where(table.c.scope == scope.key, table.c.episode == episode))
            for table in (schema.voice_claims, schema.voice_ends)
        ]
        query = select(schema.voice).where(_VOICE.scope == scope.key, or_(*cited))
        async with self._database.read(scope) as connection:
            rows = await _all(connection, query.order_by(_VOICE.created_at, _VOICE.id))
            return await _whole(connection, scope, rows)

    async def scan(self, scope: Scope, page: Page) -> Listed[VoiceAspect]:
        query = select(schema.voice).where(_VOICE.scope == scope.key)
        async with self._database.read(scope) as connection:
            rows = await page_of(connection, query, [_VOICE.created_at, _VOICE.id], page)
            return Listed(await _whole(connection, scope, rows.items), rows.after)

    async def forget_text(self, scope: Scope, forgetting: VoiceForgetting) -> None:
        check_storable({"text": sentence} for _, sentence in forgetting.retold)
        async with self._database.write(scope) as connection:
            await _forget_aspects(connection, scope, forgetting)
            for some in in_chunks(forgetting.records):
                voices, ids = sorted({voice for voice, _ in some}), [record for _, record in some]
                for table, text in _RECORD_TEXTS:
                    these = and_(table.c.voice.in_(voices), table.c.id.in_(ids))
                    await _empty(connection, scope, table, these, {text: ""})
            for voice, sentence in forgetting.retold:
                # What was forgotten since stays so.
                this = and_(_VOICE.id == voice, _VOICE.forgotten_at.is_(None))
                await _empty(connection, scope, schema.voice, this, {"text": sentence})
                await _empty(
                    connection, scope, schema.voice_ends, schema.voice_ends.c.voice == voice, {"why": ""}
                )
            await drop_snapshots(connection, scope)


_RECORD_TEXTS = ((schema.voice_claims, "quote"), (schema.voice_ends, "why"))


async def _forget_aspects(connection: AsyncConnection, scope: Scope, forgetting: VoiceForgetting) -> None:
    claims = schema.voice_claims
    supporting = _with_revocations(claims).where(
        claims.c.scope == scope.key, claims.c.voice == _VOICE.id, _REVOKED_AT.is_(None)
    )
    unsupported = and_(_VOICE.scope == scope.key, ~exists(supporting))
    for chunk in in_chunks(id for id in forgetting.aspects if is_storable(id)):
        query = select(_VOICE.id).where(unsupported, _VOICE.id.in_(chunk))
        found = (await connection.execute(query)).scalars().all()
        gone = {"text": "", "forgotten_at": forgetting.revision}
        await _empty(connection, scope, schema.voice, _VOICE.id.in_(found), gone)
        for table, text in _RECORD_TEXTS:
            await _empty(connection, scope, table, table.c.voice.in_(found), {text: ""})


async def _empty(
    connection: AsyncConnection,
    scope: Scope,
    table: Table,
    these: ColumnElement[bool],
    values: dict[str, Any],
) -> None:
    await connection.execute(update(table).where(table.c.scope == scope.key, these).values(values))


async def _all(connection: AsyncConnection, query: Select[Any]) -> list[dict[str, Any]]:
    return [dict(row) for row in (await connection.execute(query)).mappings()]


async def _whole(
    connection: AsyncConnection, scope: Scope, rows: Sequence[values.Stored], known_at: Revision | None = None
) -> list[VoiceAspect]:
    """The aspects of these rows with the claims and ends recorded by `known_at`, oldest first."""
    ids = [row["id"] for row in rows]
    claims, ends = schema.voice_claims, schema.voice_ends
    said = await _records(connection, scope, claims, ids, known_at)
    over = await _records(connection, scope, ends, ids, known_at)
    return [
        values.voice_of(
            row,
            tuple(map(values.voice_claim_of, said[row["id"]])),
            tuple(map(values.voice_end_of, over[row["id"]])),
        )
        for row in rows
    ]


async def _records(
    connection: AsyncConnection, scope: Scope, table: Table, ids: Iterable[str], known_at: Revision | None
) -> defaultdict[str, list[dict[str, Any]]]:
    found: defaultdict[str, list[dict[str, Any]]] = defaultdict(list)
    query = _with_revocations(table).where(table.c.scope == scope.key)
    if known_at is not None:
        query = query.where(table.c.recorded_at <= known_at)
    for chunk in in_chunks(ids):
        these = query.where(table.c.voice.in_(chunk)).order_by(table.c.recorded_at, table.c.id)
        for record in await _all(connection, these):
            if known_at is not None and (record["revoked_at"] or 0) > known_at:
                record["revoked_at"] = None
            found[record["voice"]].append(record)
    return found


def _said(scope: Scope, episode: EpisodeId | None, known_at: Revision) -> Subquery:
    """Of each aspect with a claim that counts, when it was first and last said."""
    claims = schema.voice_claims
    query = (
        _with_revocations(claims)
        .with_only_columns(
            claims.c.voice,
            func.min(claims.c.attested_at).label("start"),
            func.max(claims.c.attested_at).label("latest"),
        )
        .where(claims.c.scope == scope.key, _counts(claims, known_at))
        .group_by(claims.c.voice)
    )
    if episode is not None:
        query = query.having(func.max(case((claims.c.episode == episode, 1), else_=0)) == 1)
    return query.subquery()


def _over(scope: Scope, said: Subquery, at: Instant, known_at: Revision) -> ColumnElement[bool]:
    """True for an aspect that an end, which no claim follows, has ended by `at`."""
    ends = schema.voice_ends
    return exists(
        _with_revocations(ends)
        .where(
            ends.c.scope == scope.key,
            ends.c.voice == said.c.voice,
            ends.c.at >= said.c.latest,
            ends.c.at <= at,
            _counts(ends, known_at),
        )
        .correlate(said)
    )


def _with_revocations(table: Table) -> Select[Any]:
    revocations = schema.voice_revocations
    same = and_(revocations.c.scope == table.c.scope, revocations.c.record == table.c.id)
    return select(table, _REVOKED_AT).select_from(table.outerjoin(revocations, same))


def _counts(table: Table, known_at: Revision) -> ColumnElement[bool]:
    return and_(table.c.recorded_at <= known_at, or_(_REVOKED_AT.is_(None), known_at < _REVOKED_AT))
